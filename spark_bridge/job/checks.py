"""Checks of a run on Spark, before any job starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.state.bolt import Stateful
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.windowing.bolt import WindowedBolt
from multilang.windowing.stateful import StatefulWindowedBolt
from spark_bridge.job.spouts import check_bound
from spark_bridge.job.states import States

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from multilang.topology.model import Topology
    from spark_bridge.job.states import NoStates

# Methods of stateful bolts that have no place on Spark: name, when they are called elsewhere, what to use instead.
_LATE_HOOKS = (
    ("pre_commit", "committed", "pre_prepare"),
    ("pre_rollback", "rolled back", "init_state, which a new bolt is given after each rollback"),
)


def check_state(topology: Topology, states: States | NoStates, spark: SparkSession) -> None:
    """Raise TopologyError for a state that executors can't reach, or a bolt that acts later than Spark lets it."""
    if isinstance(states, States) and states.is_local and not str(spark.sparkContext.master).startswith("local"):
        raise TopologyError(
            f"the state is in the {states.describe()}, which executors on other machines can't read: use a Redis"
        )
    for id, spec in topology.bolts.items():
        if not isinstance(spec.component, Stateful):
            continue
        for hook, when, instead in _LATE_HOOKS:
            if getattr(type(spec.component), hook) not in (
                getattr(Stateful, hook),
                getattr(StatefulWindowedBolt, hook),
            ):
                raise TopologyError(
                    f"bolt {id!r} does something in {hook}, and on Spark it is not there any more when its state is {when}: do it "
                    f"in {instead}, or run the topology on the embedded cluster or on Storm"
                )


def windowed_bolts(topology: Topology) -> list[str]:
    """Return the bolts that work on windows."""
    return [id for id, spec in topology.bolts.items() if isinstance(spec.component, WindowedBolt)]


def check_query(topology: Topology) -> None:
    """Raise TopologyError for windows without state in a query, whose rows are done with each batch."""
    for id in windowed_bolts(topology):
        bolt = topology.components[id].component
        if not isinstance(bolt, Stateful):
            raise TopologyError(
                f"bolt {id!r} ({type(bolt).__name__}) keeps tuples in windows beyond their batch, and they would be lost with the query: "
                "make it a StatefulWindowedBolt, whose windows are in the state"
            )


def check_spouts(
    topology: Topology,
    sourced: set[str],
    limits: Mapping[str, int],
    *,
    is_transactional: bool,
    is_exact: bool,
) -> None:
    """Raise TopologyError for a spout without a source that needs one or has no end, and for a wrong limit.

    Args:
        topology: The topology.
        sourced: The spouts with sources.
        limits: Spout id -> how many tuples it may emit at most.
        is_transactional: Whether the run is one transaction.
        is_exact: Whether the run's states are aligned exactly.
    """
    spouts = topology.spouts
    for id, limit in limits.items():
        if id not in spouts or id in sourced:
            why = "has a source" if id in sourced else f"is no spout; {did_you_mean(id, spouts)}"
            raise TopologyError(f"limits: {id!r} {why}")
        if type(limit) is not int or limit < 0:
            raise TopologyError(f"limits: {id!r} is bounded by {limit!r}; use a number of tuples")
    for id, spec in spouts.items():
        if id not in sourced and is_transactional:
            raise TopologyError(
                f"spout {id!r} makes transactions, and here the rows of its source are one: give it a source, "
                f"{{{id!r}: rdd}}"
            )
        if id not in sourced and is_exact:
            raise TopologyError(
                f"spout {id!r} has no source, and with exact alignment what fails is read again from the start: give it "
                f"one, {{{id!r}: rdd}}"
            )
        if id not in sourced:
            check_bound(spec, limits.get(id))


def outputs_of(topology: Topology, wanted: Iterable[str | tuple[str, str]] | None) -> list[tuple[str, str]]:
    """Return the streams to keep, as (component, stream)."""
    every = [(id, stream) for id, spec in topology.components.items() for stream in spec.streams]
    if wanted is None:
        read = {(input_.component, input_.stream) for spec in topology.bolts.values() for input_ in spec.inputs}
        return [key for key in every if key not in read and topology.components[key[0]].kind == "bolt"]
    found: list[tuple[str, str]] = []
    for each in [wanted] if isinstance(wanted, str) else wanted:
        keys = [key for key in every if key == each or key[0] == each]
        if not keys:
            component = each if isinstance(each, str) else each[0]
            raise TopologyError(
                f"outputs: there is no stream {each!r}; {did_you_mean(str(component), {key[0] for key in every})}"
            )
        found += [key for key in keys if key not in found]
    return found
