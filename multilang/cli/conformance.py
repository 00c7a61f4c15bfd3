"""``multilang conformance``: tests a program against the multi-lang protocol."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import randrange
from typing import Any

import click

from multilang.cli import exits
from multilang.cli.conformance_options import output_file, run_options
from multilang.cli.output import echo

KINDS = ("auto", "bolt", "spout")
_SEEDS = 10**6  # seeds that are chosen are below, so that they can be typed


class Kinds(click.Group):
    """A group for which ``conformance -- node x.js`` is ``conformance auto -- node x.js``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["auto", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Kinds, no_args_is_help=True)
def conformance() -> None:
    """Test a program, in any language, against Storm's multi-lang protocol.

    \b
      multilang conformance -- node mybolt.js            finds out whether it is a bolt or a spout; all cases
      multilang conformance spout -- ruby myspout.rb     it is a spout; all cases
      multilang conformance bolt --case bolt/heartbeat -- python3 mybolt.py
      multilang conformance record -o talk.jsonl -- python3 mybolt.py
      multilang conformance replay talk.jsonl -- node mybolt.js
      multilang conformance matrix a.json b.json --html matrix.html
      multilang conformance --soak 60s -- node mybolt.js
      multilang conformance --fuzz 1000 --seed 7 -- node mybolt.js

    \b
    Exit status: 0  every MUST that was asked is kept (--strict: every SHOULD, too; --require: as many were asked)
                 1  not every one is
                 2  the command line is wrong, or the program's kind can't be found out
                 3  the program can't be started
                 129, 130, 143  a hang-up, Ctrl-C or SIGTERM ended the run
    """  # noqa: D301 - click wants the very sign that backslash-b stands for


def _command(kind: str) -> None:
    helps = {
        "auto": "Find out whether it is a bolt or a spout, and test it.",
        "bolt": "Play ShellBolt against a program.",
        "spout": "Play ShellSpout against a program.",
    }

    @conformance.command(kind, help=helps[kind], context_settings={"allow_interspersed_args": False})
    @run_options
    def run(**options: Any) -> int:
        return run_cases(kind, **options)


for each in KINDS:
    _command(each)


def run_cases(
    kind: str,
    command: tuple[str, ...],
    patterns: tuple[str, ...],
    excluded: tuple[str, ...],
    only_list: bool,
    **options: Any,
) -> int:
    """Run the cases, write the reports, and return the exit status."""
    from multilang.cli.conformance_view import listed, printable
    from multilang.conformance import Target, Undecided, all_cases
    from multilang.conformance.case import selected

    known = all_cases(None if kind == "auto" else kind)
    try:
        out = selected(known, excluded) if excluded else []
        cases = [case for case in selected(known, patterns) if case not in out]
    except LookupError as error:
        raise click.UsageError(
            f"no case {error.args[0]!r}{_of(kind)}; multilang conformance --list shows them"
        ) from None
    if only_list:
        for line in listed(cases, options["verbose"]):
            echo(line)
        return exits.OK
    if not command:
        raise click.UsageError(
            "no program is given; write for example: multilang conformance bolt -- python3 mybolt.py"
        )
    if kind == "auto" and command[0] in KINDS and "--" in command:
        raise click.UsageError(f"the kind comes before its options: multilang conformance {command[0]} [OPTIONS] -- …")
    target = Target(
        list(command),
        kind,
        timeout=options["timeout"],
        component=options["component"],
        name=options["name"],
        streams=options["streams"],
        tuples=options["tuples"] or Target(()).tuples,
        conf=options["conf"],
        contract=options["contract"],
    )
    plan = _plan(**options)
    try:
        return _in_order(lambda: _run(target, cases, plan, **options))
    except Undecided as error:
        raise click.UsageError(printable(str(error))) from None


def _plan(*, soak: float | None, fuzz: int | None, seed: int | None, number: int | None, **_: Any) -> Any:
    """Return the random conversations to have instead of the cases, or None."""
    from multilang.conformance.soak import Plan

    if soak is not None and fuzz is not None:
        raise click.UsageError("--soak and --fuzz are two runs: give one of them")
    if soak is None and fuzz is None:
        if seed is not None or number is not None:
            raise click.UsageError(
                "--seed and --number are for --soak or --fuzz; write for example --soak 60s --seed 7"
            )
        return None
    chosen = randrange(_SEEDS) if seed is None else seed
    if soak is not None:
        return Plan("soak", chosen, seconds=soak, number=number)
    assert fuzz is not None
    return Plan("fuzz", chosen, messages=fuzz, number=number)


def _in_order(run: Callable[[], int]) -> int:
    """Return the exit status of ``run``, also when a signal ends it; then no process of the program is left."""
    from multilang.conformance import CannotStart

    received: list[int] = []

    def end(number: int, _frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
            signal.signal(number, end)
    try:
        return run()
    except KeyboardInterrupt:
        return 128 + (received or [signal.SIGINT])[0]
    except CannotStart as error:
        echo(f"Error: the program can't be started: {error}", err=True)
        return exits.NEVER_STARTED


def _of(kind: str) -> str:
    return "" if kind == "auto" else f" for a {kind}"


def _run(
    target: Any,
    cases: Any,
    plan: Any,
    *,
    jobs: int | None,
    strict: bool,
    verbose: int,
    required: int | str | None,
    **options: Any,
) -> int:
    from multilang.cli.conformance_view import to_junit, write_result
    from multilang.cli.view import console
    from multilang.conformance import Run
    from multilang.conformance.page import to_page
    from multilang.conformance.soak import RandomRun

    to_stdout = str(options["as_json"]) == "-"
    screen = console(sys.stderr if to_stdout else sys.stdout)
    done = 0
    with screen.status("starting …") as status:

        def report(case: Any) -> None:
            nonlocal done
            done += 1
            status.update(f"{done} cases done, last {case.path}")

        result = Run(target, jobs, report).run(cases) if plan is None else RandomRun(target, plan, report).run()
    if not result.cases:
        raise click.UsageError(f"the program is a {result.kind}, and none of the chosen cases is for one")
    least = len(result.cases) if required == "all" else None if required is None else int(required)
    write_result(result, screen, verbose, strict, least)
    texts: dict[str, Callable[[], str]] = {
        "junit": lambda: to_junit(result, strict),
        "as_json": result.to_json,
        "html": lambda: to_page([result]),
    }
    for name, text in texts.items():
        if name == "as_json" and to_stdout:
            sys.stdout.write(text())
        elif options[name] is not None:
            options[name].write_text(text(), "utf-8")
    return exits.FAILED_TUPLES if result.bad(strict, least) else exits.OK


@conformance.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--html",
    required=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=output_file,
    metavar="FILE",
    help="The page to write.",
)
def matrix(results: tuple[Path, ...], html: Path) -> int:
    """Put several results (written by --json) side by side on one page."""
    from multilang.conformance.errors import BadFile
    from multilang.conformance.page import to_page
    from multilang.conformance.result import read

    try:
        html.write_text(to_page(read(results)), "utf-8")
    except BadFile as error:
        raise click.UsageError(str(error)) from None
    return exits.OK


@conformance.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=output_file,
    metavar="FILE",
    help="The file for the conversation; if it exists, the pid is added to the name.",
)
def record(command: tuple[str, ...], output: Path) -> int:
    """Stand between a component and its parent (Storm), and record their messages.

    It is started in the place of the component: new ShellBolt("multilang", "conformance", "record", "-o",
    "/tmp/talk.jsonl", "--", "python3", "mybolt.py"). Its exit status is that of the component.
    """
    from multilang.conformance.record import record as run

    if not command:
        raise click.UsageError(
            "no program is given; write for example: multilang conformance record -o talk.jsonl -- python3 mybolt.py"
        )
    return _in_order(lambda: run(command, output))


@conformance.command()
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--ignore", multiple=True, metavar="COMMAND", help="Messages that are not compared, such as log.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="Seconds that an answer may take.",
)
def replay(recording: Path, command: tuple[str, ...], ignore: tuple[str, ...], timeout: float) -> int:
    """Play a recorded conversation to a program, and show the first answer that is different.

    Exit status: 0 when all answers are the same, 1 when not.
    """
    from multilang.cli.conformance_view import difference_shown
    from multilang.cli.view import console
    from multilang.conformance import Target
    from multilang.conformance.errors import BadFile
    from multilang.conformance.replay import read_recording
    from multilang.conformance.replay import replay as play

    if not command:
        raise click.UsageError(
            "no program is given; write for example: multilang conformance replay talk.jsonl -- python3 mybolt.py"
        )
    try:
        found = read_recording(recording)
    except BadFile as error:
        raise click.UsageError(str(error)) from None

    def run() -> int:
        difference = play(found, Target(list(command), timeout=timeout), ignore)
        screen = console(sys.stdout)
        if difference is not None:
            screen.print(difference_shown(difference, str(recording)))
            return exits.FAILED_TUPLES
        screen.print(f"{recording}: the same conversation, {len(found.messages)} messages", soft_wrap=True)
        return exits.OK

    return _in_order(run)
