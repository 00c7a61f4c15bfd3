"""Run a whole topology on given tuples, to its end (Storm's Testing.completeTopology)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.spout import Spout
from multilang.local import LocalCluster
from multilang.testing.feeds import AckTracker, FixedTupleSpout
from multilang.topology.errors import TopologyError
from multilang.topology.model import ComponentSpec, Topology, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal

    from multilang.engine.counters import Counters
    from multilang.engine.tuples import LocalTuple
    from multilang.local import Faults
    from multilang.local.topology import TaskError


class CompletedTopology:
    """The results of a topology that ran to its end.

    Attributes:
        trackers: By spout, the AckTracker of the tuples given for it, whose ids are 1, 2, 3 and so on.
        counters: The counts by component; see LocalTopology.
        errors: The errors that were reported, or that ended tasks.
    """

    def __init__(
        self,
        tuples: Mapping[tuple[str, str], list[LocalTuple]],
        trackers: Mapping[str, AckTracker],
        counters: Mapping[str, Counters],
        errors: Sequence[TaskError],
    ) -> None:
        self._tuples = tuples
        self.trackers = trackers
        self.counters = counters
        self.errors = list(errors)

    def tuples(self, component: str, stream: str = "default") -> list[LocalTuple]:
        """Return all tuples that a component emitted on a stream, in order.

        Raises:
            LookupError: There is no such stream.
        """
        try:
            return self._tuples[component, stream]
        except KeyError:
            there = ", ".join(f"{name!r} stream {stream!r}" for name, stream in self._tuples)
            raise LookupError(f"the topology has no stream {stream!r} of {component!r}; it has {there}") from None

    def values(self, component: str, stream: str = "default") -> list[list[Any]]:
        """Return the values of these tuples.

        Raises:
            LookupError: There is no such stream.
        """
        return [tup.values for tup in self.tuples(component, stream)]


def complete_topology(
    topology: Topology,
    tuples: Mapping[str, Iterable[Sequence[Any] | Mapping[str, Any]]],
    mode: Literal["process", "inprocess", "simulated"] = "inprocess",
    *,
    conf: Mapping[str, Any] | None = None,
    timeout: float | None = 60,
    seed: int | None = None,
    faults: Faults | None = None,
) -> CompletedTopology:
    """Run ``topology`` with ``tuples`` instead of its spouts, until all are acked or failed.

    The topology itself is not changed.

    Args:
        topology: The topology.
        tuples: By spout, the tuples of its default stream: lists of values or dicts by fields. Spouts that are not
            named run as they are, and must come to an end.
        mode: The LocalCluster's mode.
        conf: Settings that override the topology's own.
        timeout: The longest wait in seconds, which are virtual ones when it is simulated; None for no limit.
        seed: The LocalCluster's seed.
        faults: The LocalCluster's faults.

    Returns:
        The emitted tuples, the acks and fails, and the counts.

    Raises:
        NotDrainedError: The topology does not come to its end in time.
        TopologyError: Tuples are given for a component that is no spout, or has no default stream.
    """
    spouts: dict[str, FixedTupleSpout] = {}
    specs = {id: spec.copy() for id, spec in topology.components.items()}
    for id, rows in tuples.items():
        spec = topology[id]
        if not (spec.kind == "spout" and isinstance(spec.component, Spout)) and spec.command is None:
            raise TopologyError(
                f"complete_topology: tuples are given for {id!r}, {describe(spec.component)}, which is no spout; name a spout"
            )
        spouts[id] = spout = _fixed(spec, rows)
        parallelism, tasks = spec.declared
        specs[id] = ComponentSpec(
            id, "spout", spout, streams=spec.streams, parallelism=parallelism, tasks=tasks, conf=spec.conf
        )
    # without a module, since processes must get the topology with its tuples
    whole = Topology(topology.name, topology.conf, specs)
    with LocalCluster(mode, seed=seed, faults=faults) as cluster:
        run = cluster.submit(whole, conf=conf, capture=list(specs))
        run.wait(timeout=timeout)
        captured = {
            (id, stream): run.captured(id, stream)
            for id, spec in run.plan.topology.components.items()
            if id in specs
            for stream in spec.streams
        }
        return CompletedTopology(
            captured, {id: spout.tracker for id, spout in spouts.items()}, run.counters, run.errors
        )


def _fixed(spec: ComponentSpec, rows: Iterable[Sequence[Any] | Mapping[str, Any]]) -> FixedTupleSpout:
    default = spec.streams.get("default")
    if default is None:
        raise TopologyError(
            f"complete_topology: spout {spec.id!r} has no default stream for the tuples that are given for it"
        )
    spout = FixedTupleSpout(default.fields, rows)
    spout.output_streams = {name: stream for name, stream in spec.streams.items() if name != "default"}  # type: ignore[misc]
    return spout
