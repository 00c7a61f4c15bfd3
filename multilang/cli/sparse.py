"""``multilang sparse``, and the command ``sparse``: streamparse's commands for projects, with the options that people know."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilang.cli import exits
from multilang.cli.app import run as run_command
from multilang.cli.arguments import PROJECT_ENVIRONMENT, conf_entries
from multilang.cli.exits import fault
from multilang.cli.loading import load
from multilang.cli.logs import logs
from multilang.cli.nimbus import connected
from multilang.cli.output import echo
from multilang.cli.package import package
from multilang.cli.project import without_layer
from multilang.cli.quickstart import write_project
from multilang.cli.show import show_topology
from multilang.cli.submit import submit as submit_command
from multilang.cli.topologies import list_topologies, status
from multilang.compat.project import OTHER_CONFIG, Project, project_at
from multilang.compat.streamparse import version as streamparse
from multilang.component.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.shipping.nimbus import Nimbus

_FOREVER = 1e9  # seconds
_POLL = 0.5  # seconds

_NAME = click.option(
    "-n", "--name", help="The topology, a file in the project's folder; it may be left out if there is one."
)
_OVERRIDE = click.option("-N", "--override_name", "override", metavar="NAME", help="Its name on the cluster instead.")


def _config(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options with the environment, and the file that it is in, to a command."""
    option = click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        is_eager=True,  # before the environment is looked for
        expose_value=False,
        callback=_other_config,
        metavar="FILE",
        help="Another config.json.",
    )
    changed: Callable[..., Any] = option(PROJECT_ENVIRONMENT(command))
    return changed


_WAIT = click.option(
    "--wait", type=click.IntRange(min=0), default=5, show_default=True, help="Seconds to wait before a kill."
)


_WORDS = {"true": "true", "false": "false", "null": "null", "~": "null"}
_MEANINGLESS = "means nothing here: there is no SSH, and jars need no virtualenv"
_REFUSED = {
    "remove_logs": "Storm removes old logs by itself: logviewer.cleanup.age.mins of its storm.yaml sets the age",
    "slot_usage": "multilang list shows the topologies with their workers, and Storm's UI the slots of each host",
    "worker_uptime": "multilang status TOPOLOGY shows a topology's tasks, and Storm's UI since when its workers run",
}
_JARS = "a jar of streamparse's does not have this library: leave {} out, and submit packs the topology"


def _entries(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> None:
    """Take entries as streamparse does, with YAML's words for what JSON calls true, false and null."""
    context.ensure_object(dict).update(conf_entries(context, parameter, tuple(map(_as_json, texts))))


def _as_json(text: str) -> str:
    key, equals, value = text.partition("=")
    word = value.strip()
    if word in (word.lower(), word.title(), word.upper()):
        value = _WORDS.get(word.lower(), value)
    return f"{key}{equals}{value}"


def _ignored(*names: str, takes: bool = True) -> Callable[..., Any]:
    """Return an option of streamparse's that is accepted, so that scripts continue, and means nothing."""

    def note(_context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            click.echo(f"note: {names[-1]} {_MEANINGLESS}", err=True)

    return click.option(*names, is_flag=not takes, expose_value=False, hidden=True, callback=note)


def _alias(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback of an option that stands for an entry of the conf."""

    def note(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value is not None and value is not False:
            context.ensure_object(dict)[key] = value

    return note


def _debug(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        _entries(context, parameter, (f"topology.debug={value}",))


def _other_config(_context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if path is not None:
        os.environ[OTHER_CONFIG] = path


def _refused(*names: str, why: str) -> Callable[..., Any]:
    """Return an option of streamparse's that can't be accepted, because what it asks for would not be done."""

    def refuse(_context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            raise click.UsageError(f"{names[-1]}: {why.format(names[-1])}")

    return click.option(*names, expose_value=False, hidden=True, callback=refuse)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add streamparse's options for the conf to a command, which finds the conf in the context; later options win."""
    for option in (
        click.option(
            "-o",
            "--option",
            "entries",
            multiple=True,
            metavar="KEY=VALUE",
            callback=_entries,
            expose_value=False,
            help="A conf entry.",
        ),
        click.option(
            "-d",
            "--debug",
            is_flag=False,
            flag_value="true",
            metavar="[BOOLEAN]",
            expose_value=False,
            callback=_debug,
            help="Debugging output.",
        ),
        click.option(
            "-w",
            "--workers",
            type=click.IntRange(min=1),
            expose_value=False,
            callback=_alias("topology.workers"),
            help="The number of workers.",
        ),
        click.option(
            "-a",
            "--ackers",
            type=click.IntRange(min=0),
            expose_value=False,
            callback=_alias("topology.acker.executors"),
            help="The number of ackers.",
        ),
    ):
        command = option(command)
    return command


@click.group()
@click.version_option(
    package_name="storm-multilang", message=f"sparse {streamparse.__version__}, by storm-multilang %(version)s"
)
@click.pass_context
def sparse(context: click.Context) -> None:
    """Run streamparse's commands in one of its projects."""
    context.obj = {}


@sparse.command()
@_NAME
@_config
@_options
@click.option("-t", "--time", "seconds", type=int, default=0, help="Stop after this number of seconds; 0: run on.")
@click.pass_context
def run(context: click.Context, name: str | None, seconds: int) -> Any:
    """Run a topology on this machine."""
    return context.invoke(
        run_command, topology=_file(name), seconds=seconds if seconds > 0 else _FOREVER, conf=dict(context.obj)
    )


@sparse.command()
@_NAME
@_config
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The .jar to write.")
@click.option("-s", "--simple_jar", is_flag=True, expose_value=False, help="Accepted: every jar is a simple one.")
@click.pass_context
def jar(context: click.Context, name: str | None, output: Path | None) -> Any:
    """Pack a topology into a jar; without a name, each topology into one of its own."""
    files = [_file(name)] if name is not None or output is not None else _files()
    for file in files:
        status = context.invoke(package, topology=file, output=output)
        if status:
            return status
    return exits.OK


@sparse.command()
@_NAME
@_config
@_OVERRIDE
@_options
@click.option("-f", "--force", is_flag=True, help="Kill a topology of the same name first.")
@click.option("-i", "--inactive", is_flag=True, help="Start no component before it is activated.")
@click.option(
    "-r",
    "--requirements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE...",
    help="Other packages than its own.",
)
@click.argument("more", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, metavar="")
@_refused("-j", "--local_jar_path", why=_JARS)
@_refused("-R", "--remote_jar_path", why=_JARS)
@_WAIT
@_ignored("--overwrite_virtualenv", takes=False)
@_ignored("-u", "--uber_jar", takes=False)
@_ignored("--pool_size")
@_ignored("--timeout")
@_ignored("--user")
@click.pass_context
def submit(
    context: click.Context,
    name: str | None,
    override: str | None,
    force: bool,
    inactive: bool,
    requirements: tuple[Path, ...],
    more: tuple[Path, ...],
    wait: int,
) -> Any:
    """Submit a topology to the environment's cluster."""
    if more and not requirements:
        raise click.UsageError(f"submit takes no arguments: name the topology by -n, as in -n {more[0]}")
    file, where = _file(name), _nimbus()
    for key in _project().needless(_project().environment()[1]):
        echo(
            f"note: {key} in config.json means nothing here: there is no SSH, and workers need no virtualenv", err=True
        )
    known = override or load(file).name
    if force:
        with connected(where) as nimbus:
            _end(nimbus, known, wait)
    with without_layer([*requirements, *more]) as packages:
        return context.invoke(
            submit_command,
            topology=file,
            where=where,
            name=known,
            conf=dict(context.obj),
            inactive=inactive,
            requirements=packages,
        )


@sparse.command("list")
@_config
@_ignored("--timeout")
@click.pass_context
def list_all(context: click.Context) -> Any:
    """Show the topologies of the environment's cluster."""
    return context.invoke(list_topologies, where=_nimbus())


@sparse.command()
@_NAME
@_config
@_OVERRIDE
@_WAIT
@_ignored("--timeout")
def kill(name: str | None, override: str | None, wait: int) -> int:
    """Kill a topology on the environment's cluster."""
    known = override or name or load(_file(None)).name
    with connected(_nimbus()) as nimbus:
        nimbus.kill(known, wait)
    echo(f"{known} is being killed")
    return exits.OK


@sparse.command()
@_NAME
@_config
@_OVERRIDE
@click.option("-l", "--num_lines", "lines", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Show new lines.")
@click.option("--pattern", help="Only lines in which this regular expression is found.")
@_ignored("--pool_size")
@_ignored("--user")
@click.pass_context
def tail(
    context: click.Context, name: str | None, override: str | None, lines: int, follow: bool, pattern: str | None
) -> Any:
    """Show the end of the logs of a topology's workers."""
    known = override or name or load(_file(None)).name
    try:
        found = None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is no regular expression: {error}", param_hint="--pattern") from None
    raw = not follow and pattern is None
    return context.invoke(logs, name=known, where=_nimbus(), lines=lines, raw=raw, follow=follow, grep=found)


@sparse.command()
@_NAME
@_config
@_OVERRIDE
@click.option("--all", "every", is_flag=True, help="All topologies.")
@click.option("-c", "--component", expose_value=False, hidden=True)  # the table has every component
@click.pass_context
def stats(context: click.Context, name: str | None, override: str | None, every: bool) -> Any:
    """Show the figures of a topology, or of the cluster."""
    if every or (name is None and override is None):
        return context.invoke(list_topologies, where=_nimbus())
    return context.invoke(status, name=override or name, where=_nimbus())


@sparse.command()
@_NAME
@_config
@click.option("-o", "--output_file", type=click.Path(path_type=Path), metavar="FILE", help="Write it into a file.")
@_refused("-f", "--format", why="the diagram is text in Mermaid's form, which browsers and GitHub show; leave {} out")
def visualize(name: str | None, output_file: Path | None) -> int:
    """Show a topology as a diagram of Mermaid's."""
    shown = show_topology(load(_file(name)), "mermaid", {})
    if output_file is None:
        echo(shown, nl=False)
    else:
        output_file.write_text(shown, "utf-8")
        echo(f"written: {output_file}")
    return exits.OK


@sparse.command("update_virtualenv", context_settings={"ignore_unknown_options": True}, hidden=True)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, expose_value=False)
def update_virtualenv() -> int:
    """Do nothing, so that scripts continue."""
    echo(f"note: update_virtualenv {_MEANINGLESS}: submit packs the requirements", err=True)
    return exits.OK


@sparse.command("help")
@click.argument("command", required=False)
@click.pass_context
def help_of(context: click.Context, command: str | None) -> int:
    """Show the help of a command."""
    parent = context.parent
    assert parent is not None
    found = sparse if command is None else sparse.get_command(parent, command)
    if found is None:
        raise click.UsageError(f"there is no command {command!r}; there are {', '.join(sparse.list_commands(parent))}")
    echo(
        found.get_help(click.Context(found, info_name=command or "sparse", parent=parent if command else parent.parent))
    )
    return exits.OK


def _refuse(name: str, instead: str) -> None:
    @sparse.command(name, context_settings={"ignore_unknown_options": True}, hidden=True)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED, expose_value=False)
    def refuse() -> int:
        raise click.UsageError(f"{name} is not there: {instead}")


for _name, _instead in _REFUSED.items():
    _refuse(_name, _instead)


@sparse.command()
@click.argument("name")
def quickstart(name: str) -> int:
    """Make a project with a word count in it."""
    try:
        made = write_project(Path(name))
    except (OSError, ConfigError) as error:
        raise click.UsageError(f"the project {name!r} can't be made: {error}") from None
    echo("\n".join([*(f"  {each}" for each in made), f"try it: cd {name} && multilang sparse run"]))
    return exits.OK


def main() -> int:
    """Run the command ``sparse``, and return its exit status."""
    from multilang.cli import main as run_main

    sys.argv.insert(1, "sparse")
    return run_main()


def _project() -> Project:
    try:
        project = project_at(".")
    except ConfigError as error:
        raise fault(str(error)) from error
    if project is None:
        raise fault("there is no project of streamparse here, which has a config.json; go to its folder")
    return project


def _file(name: str | None) -> str:
    try:
        return _project().file(name)
    except ConfigError as error:
        raise fault(str(error)) from error


def _files() -> list[str]:
    project = _project()
    names = project.names()
    return [_file(None)] if len(names) < 2 else [_file(each) for each in names]


def _nimbus() -> str | None:
    project = _project()
    try:
        return project.nimbus(project.environment()[1])
    except ConfigError as error:
        raise fault(str(error)) from error


def _end(nimbus: Nimbus, name: str, wait: int) -> None:
    """Kill a topology if it runs, and wait until it has ended."""
    if any(each.name == name for each in nimbus.summary().topologies):
        nimbus.kill(name, wait)
        while any(each.name == name for each in nimbus.summary().topologies):
            time.sleep(_POLL)
