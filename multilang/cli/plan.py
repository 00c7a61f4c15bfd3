"""``multilang plan``: the tasks and CPUs that a topology needs for a rate, from what its tuples cost when it was measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from multilang.cli import exits
from multilang.cli.arguments import conf_option
from multilang.cli.loading import load
from multilang.cli.output import echo, echo_document
from multilang.cli.settings import ProjectCommand
from multilang.cli.view import console
from multilang.component.errors import ConfigError
from multilang.local import LocalClusterError
from multilang.local.sizing import BUSY, measure
from multilang.settings import INPUT_FILES
from multilang.topology import TopologyError


@click.command(cls=ProjectCommand)
@click.argument("topology")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), required=True,
              help="Tuples per second that all spouts emit together.")  # fmt: skip
@click.option("--for", "seconds", type=click.FloatRange(min=0, min_open=True), default=10.0, show_default=True, metavar="SECS",
              help="How long the topology runs at most to be measured.")  # fmt: skip
@click.option("--input", "inputs", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Files for the spouts to read, as of `run`.")  # fmt: skip
@conf_option()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def plan(
    topology: str,
    rate: float,
    seconds: float,
    inputs: tuple[Path, ...],
    conf: dict[str, Any],
    as_json: bool,
) -> int:
    """Show how many tasks and CPUs a topology needs for a rate.

    The topology runs on this machine for a while, as fast as it goes, to measure what a tuple costs each component.
    """
    if inputs:
        conf = {**conf, INPUT_FILES: [str(file.resolve()) for file in inputs]}
    try:
        costs, per_source = measure(load(topology).with_conf(conf), seconds)
    except (ConfigError, TopologyError) as error:
        raise click.UsageError(str(error)) from error
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    needed = {cost.id: cost.needed(rate) for cost in costs}
    first = min(costs, key=lambda cost: cost.limit(needed[cost.id]))
    first_at = first.limit(needed[first.id])
    problems = [
        f"no number of tasks is enough for {cost.id!r}: the {cost.undivided} grouping does not divide its tuples, and lets the "
        f"spouts emit {cost.limit(cost.tasks) * BUSY:,.0f} tuples/s"
        for cost in costs
        if cost.undivided and cost.limit(cost.tasks) * BUSY < rate
    ]
    messages = None if per_source is None else per_source * rate
    if as_json:
        components = [
            {**vars(cost), "rate": rate * cost.per_source, "needed": needed[cost.id], "cpus": cost.cpus(rate)}
            for cost in costs
        ]
        found = {
            "components": components,
            "first": first.id,
            "first_at": first_at,
            "messages": messages,
            "problems": problems,
        }
        echo_document(found, indent=1)
        return exits.FAILED_TUPLES if problems else exits.OK
    table = Table("component", box=None, pad_edge=False)
    for name in ("tuples/s in", "measured", "us per tuple", "tasks", "CPUs"):
        table.add_column(name, justify="right")
    for cost in costs:
        row = (f"{rate * cost.per_source:,.0f}", f"{cost.tuples:,}", _short(cost.cost_us), f"{needed[cost.id]:,}")
        table.add_row(cost.id, *row, _short(cost.cpus(rate)))
    table.add_row("all", "", "", "", f"{sum(needed.values()):,}", _short(sum(cost.cpus(rate) for cost in costs)))
    console(sys.stdout).print(table)
    echo(f"first to reach its limit with these tasks: {first.id!r}, at {first_at:,.0f} tuples/s of the spouts")
    between = "" if messages is None else f", which move {messages:,.0f} messages/s between components"
    echo(f"not in these CPUs: Storm's workers{between}")
    for problem in problems:
        echo(problem)
    return exits.FAILED_TUPLES if problems else exits.OK


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}" if number < 1 else f"{number:.1f}"
