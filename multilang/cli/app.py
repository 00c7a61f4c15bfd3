"""The commands and their options. The modules beside this one have their code."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from multilang.cli.arguments import PROJECT_ENVIRONMENT, REPLAY, STAND_IN, conf_option, top_spec
from multilang.cli.exits import BROKE_OFF, BROKEN_PIPE, INTERRUPTED
from multilang.cli.live import PAGE
from multilang.cli.settings import ProjectCommand
from multilang.cli.watched import WatchedRun
from multilang.helpers.masked import harmless, masked_text

TOPOLOGY = (
    "TOPOLOGY is a file (examples/word_count.py), a file and a name in it (wordcount.py:small), module:name, a "
    "project of streamparse, or a topology of Flux's (topology.yaml)."
)

# Commands whose modules are imported when they are called: name -> (module in this package, the command's name in it).
ELSEWHERE = {
    **{name: ("package", name) for name in ("archive", "flux", "package")},
    **{name: ("topologies", name) for name in ("activate", "deactivate", "kill", "rebalance", "status")},
    "blob": ("blob", "blob"),
    "cluster": ("cluster", "cluster"),
    "config": ("config", "config"),
    "deploy": ("submit", "deploy"),
    "doctor": ("doctor", "doctor"),
    "drpc": ("drpc", "drpc"),
    "conformance": ("conformance", "conformance"),
    "list": ("topologies", "list_topologies"),
    "logs": ("logs", "logs"),
    "migrate": ("migrate", "migrate"),
    "new": ("new", "new"),
    "page": ("page", "page"),
    "plan": ("plan", "plan"),
    "spark": ("spark", "spark"),
    "sparse": ("sparse", "sparse"),
    "state": ("state", "state"),
    "submit": ("submit", "submit"),
}


class CommandGroup(click.Group):
    """The commands of this module, and those of ELSEWHERE."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, name = ELSEWHERE[cmd_name]
        command: click.Command = getattr(import_module(f"multilang.cli.{module}"), name)
        return command


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def app() -> None:
    """Run and show Storm topologies written in Python, and ship them to a cluster."""


@app.command(cls=ProjectCommand, epilog=TOPOLOGY)
@click.argument("topology")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Files for the spouts to read; they find the paths in the conf, multilang.input.files.",
)
@click.option(
    "--mode",
    type=click.Choice(["process", "inprocess", "simulated"]),
    default="process",
    show_default=True,
    help="Each task a process; all in this process; or on a virtual clock, repeatable by --seed.",
)
@click.option(
    "--until-drained", is_flag=True, help="Stop when the spouts have no more and every tuple is acked. [default]"
)
@click.option(
    "--for", "seconds", type=click.FloatRange(min=0, min_open=True), help="Stop after this number of seconds."
)
@conf_option()
@PROJECT_ENVIRONMENT
@click.option(
    "--exchange",
    type=click.Choice(["auto", "tuple", "root", "block"]),
    help="How tuples travel between processes: multilang.exchange of the topology.",
)
@click.option("--seed", type=int, help="Seed of all randomness: the same seed gives the same simulated run.")
@click.option(
    "--faults", is_flag=True, help="With --mode simulated: tasks die and messages are late; the seed decides which."
)
@click.option(
    "--top",
    metavar="COMPONENT:FIELD[:FIELD]",
    callback=top_spec,
    help="At the end, show the values of the first field that came most often or, with a second field, those with its greatest values.",
)
@click.option(
    "--rows", type=click.IntRange(min=1), default=10, show_default=True, help="The number of values that --top shows."
)
@click.option(
    "--prometheus",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve the status to Prometheus on this machine; 0: any free port.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write down what the spouts emit, with times, acks and fails; FILE must not exist.",
)
@REPLAY
@STAND_IN
@click.option(
    "--pace",
    type=click.Choice(["recorded", "fast"]),
    default="fast",
    show_default=True,
    help="With --replay: at the times of the recording, or as fast as it goes.",
)
@PAGE
@click.option("--watch", is_flag=True, help="Run it again whenever a file of its code is saved; Ctrl-C ends it.")
@click.option(
    "--json", "as_json", is_flag=True, help="Write the figures as one JSON document, and nothing else, to stdout."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no log of the components, only the result.")
@click.option("-v", "--verbose", count=True, help="More of the components' log: -v info, -vv debug, -vvv trace.")
def run(files: tuple[Path, ...], inputs: tuple[Path, ...], watch: bool, **options: Any) -> int:
    """Run a topology on this machine, and show the result.

    Without --for it runs until everything is processed. With --for it runs for exactly this time; with --for and
    --until-drained it runs for at most this time. Ctrl-C ends it at any time.

    \b
    Exit status: 0  every tuple was acked
                 1  tuples failed for good, or were still pending at the end
                 2  the command line, the topology or its conf is wrong
                 3  a component never started, or none had started when the time of --for was over
                 4  a component gave up or the run broke off
               130  ended by Ctrl-C, 143 by SIGTERM
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    from multilang.cli.run import run_topology

    watched = click.get_current_context().find_object(WatchedRun)
    if watch and watched is None:
        from multilang.cli.watch import run_and_watch

        words = sys.argv[1:]
        return run_and_watch(options["topology"], lambda run: run_app(words, run), as_json=options["as_json"])
    return run_topology([path.resolve() for path in (*inputs, *files)], watched=watched, **options)


@app.command(cls=ProjectCommand, epilog=TOPOLOGY)
@click.argument("topology")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "json"]),
    default="text",
    show_default=True,
    help="A table, a diagram for Markdown pages, or data.",
)
@conf_option("A conf entry, as of run and submit.")
@PROJECT_ENVIRONMENT
def show(topology: str, form: str, conf: dict[str, Any]) -> int:
    """Show a topology: its components, streams and groupings, and which tuples travel in blocks."""
    from multilang.cli.loading import load
    from multilang.cli.show import show_topology

    click.echo(harmless(show_topology(load(topology), form, conf)), nl=False)
    return 0


@app.command()
def version() -> int:
    """Show the versions that a bug report should name."""
    import platform

    import ujson

    from multilang import __version__

    click.echo(f"storm-multilang {__version__}")
    click.echo(
        f"Python {platform.python_version()} ({sys.executable}), ujson {ujson.__version__}, {platform.platform()}"
    )
    return 0


def run_app(arguments: list[str], watched: WatchedRun | None = None) -> int:
    """Run the command line, and return its exit status.

    Args:
        arguments: The words after the command's name.
        watched: The ``WatchedRun`` of a process that ``run --watch`` starts.
    """
    if sys.stdout is None:  # the command was started with a closed standard output
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the rest of the process
    try:
        status = app.main(arguments, prog_name="multilang", standalone_mode=False, obj=watched)
        sys.stdout.flush()
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        # A wrong setting is quoted, and may hold a password.
        click.echo(harmless(masked_text(text.getvalue())), err=True, nl=False)
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of our output, such as head, has closed it; click and rich exit then. The status must not be
        # theirs, 1, which means that tuples failed, and nothing may be flushed to the closed output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:  # such as a full disk; the status must not be 1, which means that tuples failed
        click.echo(harmless(masked_text(f"Error: {error}")), err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKE_OFF
    return status if isinstance(status, int) else 0
