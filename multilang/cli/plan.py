"""``multilang plan``: the tasks and CPUs that a topology needs for a rate, from what its tuples cost when it was measured."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from multilang.cli import exits
from multilang.cli.arguments import conf_option
from multilang.cli.loading import load
from multilang.cli.said import echo
from multilang.cli.settings import ProjectCommand
from multilang.cli.view import console
from multilang.component.errors import ConfigError
from multilang.errors import MultilangError
from multilang.local.measured import measure
from multilang.runtime.readable import UNKNOWN
from multilang.runtime.sizing import UTILIZATION, Costs, size
from multilang.topology import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.runtime.sizing import PlannedComponent, Sizing
    from multilang.topology import Topology

ACKERS = "topology.acker.executors"
WORKERS = "topology.workers"


@click.command(cls=ProjectCommand)
@click.argument("topology")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), required=True,
              help="Tuples per second that all spouts emit together.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), help="The number of workers [the topology's own, or 1].")
@click.option("--busy", "utilization", type=click.FloatRange(0, 1, min_open=True), default=UTILIZATION, show_default=True,
              help="The share of its time in which a task is busy at most.")  # fmt: skip
@click.option("--for", "seconds", type=click.FloatRange(min=0, min_open=True), default=10.0, show_default=True, metavar="SECS",
              help="How long the topology runs at most to be measured.")  # fmt: skip
@click.option("--costs", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="What --json wrote before, instead of a measurement.")  # fmt: skip
@click.option("--worker-us", type=click.FloatRange(min=0), metavar="MICROSECONDS",
              help="The CPU time of Storm's worker for a message between two components; docs/scaling.md says how to measure it.")  # fmt: skip
@click.option("--input", "inputs", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Files for the spouts to read, as of `run`.")  # fmt: skip
@conf_option()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def plan(
    topology: str,
    rate: float,
    workers: int | None,
    utilization: float,
    seconds: float,
    costs: Path | None,
    worker_us: float | None,
    inputs: tuple[Path, ...],
    conf: dict[str, Any],
    as_json: bool,
) -> int:
    """Say how many tasks and CPUs a topology needs for a rate.

    The topology runs on this machine for a while, as fast as it goes, to measure what a tuple costs each component.
    """
    if inputs:
        conf = {**conf, "multilang.input.files": [str(file.resolve()) for file in inputs]}
    loaded = load(topology)
    try:
        loaded = loaded.with_conf(conf)
        measured = measure(loaded, seconds) if costs is None else _read(costs, loaded)
    except (ConfigError, TopologyError) as error:
        raise click.UsageError(str(error)) from error
    except MultilangError as error:
        raise click.ClickException(str(error)) from error
    sizing = size(
        measured,
        rate,
        workers=workers or loaded.conf.get(WORKERS) or 1,
        ackers=loaded.conf.get(ACKERS),
        utilization=utilization,
        worker_us=worker_us,
    )
    if as_json:
        echo(json.dumps({"measured": measured.as_json(), "plan": sizing.as_json()}, indent=1))
    else:
        screen = console(sys.stdout)
        screen.print(_table(sizing))
        for line in _lines(sizing, measured):
            echo(line)
    return exits.FAILED_TUPLES if sizing.problems else exits.OK


def _read(path: Path, topology: Topology) -> Costs:
    """Return the costs of a file, which must be of this topology."""
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise MultilangError(f"{path} is no JSON: {error}") from error
    found = Costs.from_json(document.get("measured", document) if isinstance(document, dict) else {})
    known = {id for each in found.components for id in each.id.split("+")}
    missing = sorted(topology.components.keys() - known)
    others = sorted(known - topology.components.keys())
    if missing or others:
        wrong = (
            f"has no costs of {missing[0]!r}" if missing else f"has costs of {others[0]!r}, which the topology has not"
        )
        raise MultilangError(f"{path} {wrong}: measure anew, without --costs")
    return replace(found, notes=(*found.notes, f"the costs are those of {path}"))


def _table(sizing: Sizing) -> Table:
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("component", footer="all")
    names = ("tuples/s in", "us per tuple", "tasks", "CPUs")
    feet = ("", "", f"{sizing.tasks:,}", _cpus(sizing.cpus))
    for name, foot in zip(names, feet, strict=True):
        table.add_column(name, footer=foot, justify="right")
    for each in sizing.components:
        cost = f"{_us(each.cost_us)} ({_us(each.low_us)} to {_us(each.high_us)})"
        table.add_row(each.id, f"{each.rate:,.0f}", cost, _tasks(each), _cpus(each.cpus))
    return table


def _tasks(each: PlannedComponent) -> str:
    if each.least_tasks == each.most_tasks:
        return f"{each.tasks:,}"
    return f"{each.tasks:,} ({each.least_tasks:,} to {each.most_tasks:,})"


def _us(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 10 else f"{microseconds:.2g}"


def _cpus(cpus: float) -> str:
    return f"{cpus:,.0f}" if cpus >= 100 else f"{cpus:.2g}" if cpus < 1 else f"{cpus:.1f}"


def _lines(sizing: Sizing, costs: Costs) -> Iterator[str]:
    """Yield what is said below the table."""
    workers, tasks = sizing.workers, sizing.tasks
    yield (
        f"{sizing.rate:,.0f} tuples/s of the spouts, no task busy for more than {sizing.utilization:.0%} of its time; "
        f"{'1 worker' if workers == 1 else f'{workers:,} workers'}: {tasks / workers:,.1f} tasks and "
        f"{_cpus(sizing.cpus / workers)} CPUs each"
    )
    ackers = UNKNOWN if sizing.acker_rate is None else f"{sizing.acker_rate:,.0f} messages/s each"
    yield f"ackers: {sizing.ackers:,}, {ackers}" if sizing.ackers else "ackers: none"
    if sizing.in_blocks is not None:
        less = sizing.in_blocks
        yield (
            "counted with tuples that travel alone, since the blocks of multilang.exchange 'root' get smaller with more tasks; "
            f"if they stayed as large as in the measurement: {less.tasks:,} tasks, {_cpus(less.cpus)} CPUs"
        )
    if sizing.worker_cpus is not None:
        yield f"the workers' own processes: {_cpus(sizing.worker_cpus)} CPUs for {sizing.message_rate:,.0f} messages/s"
    elif sizing.message_rate is not None:
        yield (
            f"not in these CPUs: the workers' own processes (Java), for {sizing.message_rate:,.0f} messages/s between "
            "components (--worker-us)"
        )
    else:
        yield "not in these CPUs: the workers' own processes (Java)"
    yield f"first to give out with these tasks: {sizing.first!r}, at {sizing.first_at:,.0f} tuples/s of the spouts"
    yield f"first to give out with the measured tasks: {sizing.declared_first!r}, at {sizing.declared_at:,.0f}"
    how = "CPU time of the components' processes" if costs.by == "cpu" else "time in which the components did not wait"
    yield (
        f"measured: {how}, {costs.seconds:.1f} s on the embedded cluster ({costs.engine}) of a machine with {costs.cpus} CPUs, "
        f"{costs.source_tuples:,} tuples of the spouts; in brackets, the cheapest and the dearest part of that time"
    )
    for cost in costs.components:
        if cost.skew > 1.2 and cost.undivided is None:
            yield f"the busiest task of {cost.id!r} got {cost.skew:.1f} times the average, which is counted in"
    yield from costs.notes
    yield from sizing.problems
