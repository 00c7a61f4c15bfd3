"""``multilang submit``: packs a topology, gives it to Nimbus, and waits until it runs."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from multilang import settings
from multilang.cli import exits
from multilang.cli.arguments import conf_option
from multilang.cli.loading import load
from multilang.cli.nimbus import NIMBUS, connected, faults
from multilang.cli.output import echo
from multilang.cli.package import ADD_JAR, ARTIFACTS, jars_of, listed, packed, packing, plan
from multilang.cli.project import Hooks, project_for
from multilang.cli.settings import ProjectCommand
from multilang.cli.topologies import show_errors
from multilang.component.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from multilang.engine.status import RunStatus
    from multilang.shipping.jar import Shipment
    from multilang.shipping.settling import Outcome


def _sent(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the argument and the options for what is sent, and where."""
    arguments = (
        click.argument("topology"),
        NIMBUS,
        click.option("--name", help="The name on the cluster; by default the topology's own."),
        conf_option(),
        click.option(
            "--credentials",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A JSON file of names and texts: Storm's credentials of the topology, which its workers' plugins get.",
        ),
        click.option("--dry-run", is_flag=True, help="Contact no cluster; show the files, the commands and the conf."),
        ADD_JAR,
        ARTIFACTS,
        packing,
    )
    for each in reversed(arguments):
        command = each(command)
    return command


@click.command(cls=ProjectCommand)
@_sent
@click.option("--inactive", is_flag=True, help="Start no component before multilang activate.")
@click.option(
    "--replace",
    is_flag=True,
    help="Take the place of the topology of its name that runs, if there is one; this is multilang deploy.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    metavar="SECS",
    help="The number of seconds to wait until it runs; 0: don't wait.",
)
def submit(
    topology: str,
    where: str | None,
    name: str | None,
    conf: dict[str, Any],
    credentials: Path | None,
    inactive: bool,
    replace: bool,
    wait: float,
    dry_run: bool,
    add_jar: tuple[Path, ...],
    artifacts: tuple[str, ...],
    **options: Any,
) -> int:
    """Submit a topology to a cluster, and wait until it runs.

    The workers need nothing but Python: multilang package --help lists what the jar contains.

    \b
    Exit status: 0  it runs (--wait 0: it was submitted)
                 2  the command line or the topology is wrong, or Nimbus refused it
                 3  it did not start in time
                 4  a component reported an error, which is shown
                69  no Nimbus can be reached
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    if replace and not wait:
        raise click.UsageError(
            "--replace waits until the new topology runs, so that the former one can come back: leave --wait 0 out"
        )
    given = _Given(topology, name, conf, credentials, dry_run, options)
    if dry_run:
        return given.show_plan()
    if replace:
        return _deploy(given, where, _Jars(add_jar, artifacts), wait, active=False if inactive else None)
    from multilang.shipping.submit import submit as send

    named, shipment = given.topology, given.shipment
    with connected(where) as nimbus, jars_of(add_jar, artifacts) as jars:
        echo(listed(shipment, every=False), err=True)
        send(nimbus, shipment, active=not inactive, credentials=given.credentials, jars=jars)
        echo(f"{named.name!r} was submitted to {nimbus.address}")
        given.was_submitted()
        if not wait:
            return exits.OK
        from multilang.shipping.settling import wait_until_running

        try:
            outcome = wait_until_running(nimbus, named.name, wait)
        except KeyboardInterrupt:
            echo(f"no longer waiting; it stays submitted, multilang kill {named.name} ends it", err=True)
            return exits.INTERRUPTED
    return _report(shipment, outcome, wait)


class _Given:
    """The topology that the command line names, packed and checked."""

    def __init__(
        self,
        topology: str,
        name: str | None,
        conf: dict[str, Any],
        credentials: Path | None,
        dry_run: bool,
        options: dict[str, Any],
    ) -> None:
        from multilang.shipping.credentials import read_credentials
        from multilang.shipping.submit import check_complete
        from multilang.shipping.thrift_topology import check_thrift

        with faults():
            try:
                settings.check(conf)  # otherwise each task's process would find the fault
                named = load(topology).with_conf(conf, name)
            except ConfigError as error:
                raise click.UsageError(str(error)) from error
            project = project_for(named)
            self._hooks = None if project is None or dry_run else Hooks(project, named.name)
            if self._hooks is not None:
                changed = dict(named.conf)
                self._hooks.call("pre_submit", changed)
                named = named.with_conf({key: value for key, value in changed.items() if value != named.conf.get(key)})
            check_thrift(named)
            self.shipment = packed(named, **options)
            check_complete(self.shipment)
            self.shipment.check()
            self.credentials = read_credentials(credentials) if credentials else {}
        self.topology = named

    def show_plan(self) -> int:
        """Show what would be submitted; return the exit status."""
        echo(listed(self.shipment, every=True))
        echo(plan(self.shipment))
        return exits.OK

    def was_submitted(self) -> None:
        """Call the project's hook for that."""
        if self._hooks is not None:
            self._hooks.call("post_submit", dict(self.topology.conf))


def _report(shipment: Shipment, outcome: Outcome, waited: float) -> int:
    name, status = shipment.topology.name, outcome.status
    if outcome.runs:
        inactive = f", inactive: multilang activate {status.topology} starts them" if status.state == "inactive" else ""
        echo(f"it runs: {_tasks(status)} in {_count(status.workers or 0, 'worker')}{inactive}")
        return exits.OK
    hint = f"it stays submitted; multilang status {name} shows more, multilang kill {name} ends it"
    if status.errors:
        show_errors(status)
        echo(hint, err=True)
        return exits.BROKE_OFF
    echo(f"after {waited:g} seconds it does not run: {outcome.problem}\n{hint}", err=True)
    return exits.NEVER_STARTED


def _tasks(status: RunStatus) -> str:
    own = [each for each in status.components if not each.id.startswith("__")]
    return f"{_count(sum(each.tasks for each in own), 'task')} of {_count(len(own), 'component')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


@click.command(cls=ProjectCommand)
@_sent
@click.option(
    "--drain",
    type=click.IntRange(min=0),
    metavar="SECS",
    help="Seconds for the running one's tuples in flight; its message timeout unless given.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECS",
    help="The number of seconds in which the new one must run.",
)
@click.option(
    "--settled",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECS",
    help="The seconds without an error, from the start of its last task, after which the new one counts as running.",
)
@click.option(
    "--blue-green",
    is_flag=True,
    help="Start the new one's workers, under another name, while the running one still works. The cluster needs slots for "
    "both.",
)
def deploy(
    topology: str,
    where: str | None,
    name: str | None,
    conf: dict[str, Any],
    credentials: Path | None,
    drain: int | None,
    wait: float,
    settled: float,
    blue_green: bool,
    dry_run: bool,
    add_jar: tuple[Path, ...],
    artifacts: tuple[str, ...],
    **options: Any,
) -> int:
    """Submit a topology in the place of the one of its name that runs; that one is restored if the new one does not run.

    The running one's spouts are stopped, its tuples in flight get time, and it is killed. Then the new one is submitted.
    If it reports an error or does not run in time, it is killed, and the former one is submitted again as it was.
    Ctrl-C, or SIGTERM, lets the former one continue, or restores it. If the command itself is killed, the next deploy puts things in
    order: the former one is stored in the cluster's blob store.

    \b
    Exit status: 0  the new one runs
                 2  the command line or the topology is wrong, or Nimbus refused it; what ran still runs
                 3  it did not start in time; the former one was restored
                 4  a component reported an error, which is shown; the former one was restored
                69  no Nimbus can be reached, or it went away: the next deploy resumes from there
               130  Ctrl-C; what ran still runs, or was restored
               143  SIGTERM; what ran still runs, or was restored
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    given = _Given(topology, name, conf, credentials, dry_run, options)
    if dry_run:
        return given.show_plan()
    return _deploy(given, where, _Jars(add_jar, artifacts), wait, drain=drain, settled=settled, beside=blue_green)


class _Jars(NamedTuple):
    """The further classes that the command line names."""

    add_jar: tuple[Path, ...]
    artifacts: tuple[str, ...]


def _deploy(given: _Given, where: str | None, classes: _Jars, wait: float, **how: Any) -> int:
    """Put a topology in the place of the one that runs, report how it ended, and return the exit status."""
    from multilang.shipping.deploy import deploy as put

    name = given.topology.name
    with connected(where) as nimbus, jars_of(*classes) as jars:
        echo(listed(given.shipment, every=False), err=True)
        before = signal.signal(signal.SIGTERM, _terminated)
        try:
            done = put(nimbus, given.shipment, timeout=wait, credentials=given.credentials, jars=jars, say=_log, **how)
        except _Terminated:
            return exits.TERMINATED
        except KeyboardInterrupt:
            return exits.INTERRUPTED
        finally:
            signal.signal(signal.SIGTERM, before)
    if done.new.runs:
        given.was_submitted()
        if done.name != name:
            echo(f"its name on the cluster is {done.name!r} until the next deployment")
    if done.new.runs or done.former is None:
        return _report(given.shipment, done.new, wait)
    if done.new.status.errors:
        show_errors(done.new.status)
    else:
        echo(f"after {wait:g} seconds it did not run: {done.new.problem}", err=True)
    again = (
        "the former one runs again"
        if done.rolled_back
        else f"the former one does not run yet, either; multilang status {done.former.name} shows more"
    )
    echo(again, err=True)
    return exits.BROKE_OFF if done.new.status.errors else exits.NEVER_STARTED


class _Terminated(KeyboardInterrupt):
    """A SIGTERM, as a cancelled CI job gets it: what runs is put in order as after Ctrl-C."""


def _terminated(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
    raise _Terminated


def _log(text: str) -> None:
    echo(f"[{time.strftime('%H:%M:%S')}] {text}", err=True)
