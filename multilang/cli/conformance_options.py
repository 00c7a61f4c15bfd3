"""The options of a run of ``multilang conformance``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from multilang.cli.arguments import conf_option


def _streams(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, list[str]] | None:
    """Parse ``default=word,count``: the fields of a stream."""
    streams = {}
    for text in texts:
        name, equals, fields = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not STREAM=FIELD,FIELD; write for example default=word,count")
        streams[name] = [field for field in fields.split(",") if field]
    return streams or None


def _tuples(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> list[list[Any]]:
    tuples = []
    for text in texts:
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, list):
            raise click.BadParameter(
                f"""{text!r} is not a JSON array of values; write for example '["a sentence", 1]'"""
            )
        tuples.append(values)
    return tuples


def _required(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | str | None:
    if text is None or text == "all":
        return text
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither a number of cases nor all; write for example --require all")
    return int(text)


def _seconds(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
    """Parse a duration: ``90``, ``90s``, ``2m`` or ``1h``."""
    if text is None:
        return None
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        seconds = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise click.BadParameter(f"{text!r} is no duration; write for example 60s, 10m or 1h")
    return seconds


def output_file(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Check that a file's folder exists, so that the error comes before the run and not after it."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}")
    return path


def run_options(function: Any) -> Any:
    """Decorate a command with the program to test and all options."""
    output = click.Path(dir_okay=False, writable=True, path_type=Path)
    options = [
        click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND..."),
        click.option(
            "--case",
            "patterns",
            multiple=True,
            metavar="PATH",
            help="Only these: bolt/heartbeat/2, bolt/heartbeat, '*/log/*'.",
        ),
        click.option(
            "--exclude",
            "excluded",
            multiple=True,
            metavar="PATH",
            help="Not these; written as for --case.",
        ),
        click.option(
            "--require",
            "required",
            callback=_required,
            metavar="N|all",
            help="Fail unless so many cases have a verdict: with all, none may be skipped or blocked.",
        ),
        click.option(
            "--soak",
            callback=_seconds,
            metavar="DURATION",
            help="Instead of the cases: random legal conversations for so long, such as 60s.",
        ),
        click.option(
            "--fuzz",
            type=click.IntRange(min=1),
            metavar="N",
            help="Instead of the cases: N messages with random values and spellings of JSON.",
        ),
        click.option("--seed", type=int, help="The seed of --soak or --fuzz. [default: a new one, which is printed]"),
        click.option("--number", type=click.IntRange(min=0), help="Only this conversation of --soak or --fuzz."),
        click.option("--strict", is_flag=True, help="A SHOULD that is not kept fails, too."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0.1),
            default=10.0,
            show_default=True,
            help="Seconds that an answer may take.",
        ),
        click.option(
            "-j",
            "--jobs",
            type=click.IntRange(min=1),
            help="Cases at once, each with a process of its own. [default: two for each core, 8 at most]",
        ),
        click.option("--name", help="What the program is called in reports. [default: its command]"),
        click.option(
            "--tuple",
            "tuples",
            multiple=True,
            callback=_tuples,
            metavar="JSON",
            help="The values of a tuple for a bolt that does not keep the contract.",
        ),
        click.option(
            "--output",
            "streams",
            multiple=True,
            callback=_streams,
            metavar="STREAM=FIELDS",
            help="What a program that does not keep the contract emits: default=word,count.",
        ),
        click.option("--component", default="tested", show_default=True, help="The component's id, in the context."),
        conf_option("An entry of the topology's conf; VALUE is JSON or text."),
        click.option(
            "--contract/--no-contract",
            default=None,
            help="Whether the program keeps the conformance contract. [default: it is asked]",
        ),
        click.option("--junit", type=output, callback=output_file, metavar="FILE", help="Write JUnit's XML."),
        click.option(
            "--json",
            "as_json",
            type=output,
            callback=output_file,
            metavar="FILE",
            help="Write the result as data, for matrix too; - is standard output.",
        ),
        click.option(
            "--html", type=output, callback=output_file, metavar="FILE", help="Write a page to click through."
        ),
        click.option("--list", "only_list", is_flag=True, help="Show the cases, and run nothing."),
        click.option(
            "-v",
            "--verbose",
            count=True,
            help="Every case with its duration and its messages; -vv: with all of them.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function
