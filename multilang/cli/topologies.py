"""The commands for topologies on a cluster."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.table import Table

from multilang.cli import exits
from multilang.cli.arguments import PROJECT_ENVIRONMENT, environment_option
from multilang.cli.nimbus import NIMBUS, WAIT, connected
from multilang.cli.output import echo
from multilang.cli.report import status_document
from multilang.cli.settings import ProjectCommand
from multilang.cli.view import NARROW, console
from multilang.engine.readable import milliseconds, number, per_second, percent
from multilang.helpers.masked import harmless, masked_text
from multilang.shipping.topology_status import least_uptime

if TYPE_CHECKING:
    from typing import Any

    from rich.console import Console

    from multilang.engine.status import RunStatus

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")


@click.command("list", cls=ProjectCommand)
@NIMBUS
@PROJECT_ENVIRONMENT
@_JSON
def list_topologies(where: str | None, as_json: bool) -> int:
    """Show the topologies of a cluster, and its supervisors."""
    with connected(where) as nimbus:
        summary = nimbus.summary()
        address = nimbus.address
    if as_json:
        echo(json.dumps(_summary(summary), indent=1))
        return exits.OK
    slots = sum(each.num_workers for each in summary.supervisors)
    used = sum(each.num_used_workers for each in summary.supervisors)
    version = next((each.version for each in summary.nimbuses if each.isLeader), "of an unknown version")
    echo(f"{address}: Storm {version}, supervisors: {len(summary.supervisors)}, slots in use: {used} of {slots}")
    if summary.topologies:
        table = _table("topology", "status", "up (s)", "workers", "executors", "tasks")
        for each in sorted(summary.topologies, key=lambda each: str(each.name)):
            numbers = (each.uptime_secs, each.num_workers, each.num_executors, each.num_tasks)
            table.add_row(each.name, each.status, *map(str, numbers))
        console(sys.stdout).print(table)
    return exits.OK


@click.command(cls=ProjectCommand)
@click.argument("name")
@NIMBUS
@PROJECT_ENVIRONMENT
@_JSON
def status(name: str, where: str | None, as_json: bool) -> int:
    """Show a topology's components with their counters, and the errors that they reported.

    Figures are as old as the executors' last report (executor.metrics.frequency.secs, 60 s unless the cluster sets it)
    and, where topology.stats.sample.rate is below 1, estimated.
    """
    with connected(where) as nimbus:
        found = nimbus.status(name)
    if as_json:
        echo(json.dumps(_document(found), indent=1))
        return exits.OK
    echo(f"{name} ({found.id}): {found.state.upper()}, up {found.seconds:.0f} s, workers: {found.workers}")
    screen = console(sys.stdout)
    screen.print(_components(found, screen))
    show_errors(found)
    for line in (*found.long_calls, *found.notes):
        echo(harmless(line), err=True)
    return exits.OK


@click.command(cls=ProjectCommand)
@click.argument("name")
@NIMBUS
@PROJECT_ENVIRONMENT
@WAIT
def kill(name: str, where: str | None, wait: int | None) -> int:
    """End a topology: its spouts are deactivated, and after a while its workers end."""
    with connected(where) as nimbus:
        nimbus.kill(name, wait)
    echo(f"{name} is being killed")
    return exits.OK


@click.command(cls=ProjectCommand)
@click.argument("name")
@NIMBUS
@PROJECT_ENVIRONMENT
def activate(name: str, where: str | None) -> int:
    """Let a topology's spouts emit again."""
    with connected(where) as nimbus:
        nimbus.activate(name)
    echo(f"{name} is active")
    return exits.OK


@click.command(cls=ProjectCommand)
@click.argument("name")
@NIMBUS
@PROJECT_ENVIRONMENT
def deactivate(name: str, where: str | None) -> int:
    """Stop a topology's spouts from emitting; the tuples that are in flight are processed."""
    with connected(where) as nimbus:
        nimbus.deactivate(name)
    echo(f"{name} is inactive")
    return exits.OK


def _executors(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for text in texts:
        component, _, number = text.rpartition("=")
        if not component or not number.isascii() or not number.isdigit() or int(number) == 0:
            raise click.BadParameter(
                f"{text!r} is not COMPONENT=NUMBER; write for example split=4 (the project's environment is --environment NAME here)"
            )
        found[component] = int(number)
    return found


@click.command(cls=ProjectCommand)
@click.argument("name")
@NIMBUS
@environment_option("--environment")  # -e is for executors
@WAIT
@click.option("-n", "--workers", type=click.IntRange(min=1), help="A new number of workers.")
@click.option(
    "-e",
    "--executors",
    multiple=True,
    metavar="COMPONENT=N",
    callback=_executors,
    help="A new number of a component's executors, at most that of its tasks.",
)
def rebalance(name: str, where: str | None, wait: int | None, workers: int | None, executors: dict[str, int]) -> int:
    """Distribute a topology's tasks over the workers again."""
    with connected(where) as nimbus:
        nimbus.rebalance(name, wait, workers, executors)
    echo(f"{name} is being rebalanced")
    return exits.OK


def _components(status: RunStatus, screen: Console) -> Table:
    """Return the table of a topology's components; on a narrow terminal without what Storm measures in its windows."""
    narrow = screen.width < NARROW
    more = () if narrow else ("latency", "rate", "capacity")
    table = _table("component", "executors", "tasks", "running", "emitted", "acked", "failed", *more)
    for each in status.components:
        numbers = (each.executors, each.tasks, each.up, each.emitted, each.acked, each.failed)
        measured = () if narrow else (milliseconds(each.latency_ms), per_second(each.rate), percent(each.capacity))
        table.add_row(each.id, *map(number, numbers), *measured)
    return table


def _document(status: RunStatus) -> dict[str, Any]:
    """Return the status as JSON, with the keys that Storm has for some of it."""
    document = status_document(status)
    for error in document["errors"]:
        error["text"] = error["message"]
    return {
        "id": status.id,
        "name": status.topology,
        "status": status.state.upper(),
        "uptime": int(status.seconds),
        "workers": status.workers,
        "least_uptime": least_uptime(status),
        **document,
    }


def show_errors(status: RunStatus) -> None:
    """Print the errors that components reported to standard error."""
    now = time.time()
    for error in status.errors:
        times = f", {error.times:,} times" if error.times > 1 else ""
        span = "" if error.first_time is None else f" in {(error.time or 0) - error.first_time} s"
        where = "" if error.where is None else f" on {error.where}"
        echo(
            f"error in {error.component!r}{where}, {max(0.0, now - (error.time or 0)):.0f} s ago{times}{span}:",
            err=True,
        )
        echo("".join(f"    {harmless(line)}\n" for line in masked_text(error.message).splitlines()), err=True, nl=False)


def _table(name: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(name, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="left" if column == "status" else "right", no_wrap=True)
    return table


def _summary(summary: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        kind: [dict(vars(each)) for each in getattr(summary, kind)]
        for kind in ("nimbuses", "supervisors", "topologies")
    }
