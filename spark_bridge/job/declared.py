"""A topology as its author declared it, without the wrappers that other engines need around components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.coordination import BatchBoltExecutor, CoordinatedBolt
from multilang.state.plain import plain as without_checkpoints
from multilang.transactional.plain import coordinator_in
from multilang.transactional.plain import plain as without_coordination
from multilang.windowing.bolt import WindowedBolt
from spark_bridge.job.errors import NotOnSparkError

if TYPE_CHECKING:
    from multilang.topology.model import Topology


def is_transactional(topology: Topology) -> bool:
    """Return whether TransactionalTopologyBuilder made the topology."""
    return coordinator_in(topology) is not None


def as_declared(topology: Topology) -> Topology:
    """Return the topology with stateful bolts without checkpoints, and transactional bolts without coordination.

    Raises NotOnSparkError, with the component's name, for a wrapper that has no form on Spark, and for windows.
    """
    for spec in topology.components.values():
        bolt = innermost(spec.component)
        if isinstance(bolt, WindowedBolt):
            raise NotOnSparkError(
                f"bolt {spec.id!r} ({type(bolt).__name__}) works on windows, and the last ones would still be open when a job's or a "
                "batch's input ends: run the topology on the embedded cluster or on Storm"
            )
    plain = without_coordination(without_checkpoints(topology))
    for spec in plain.components.values():
        wrapper = spec.component
        if getattr(wrapper, "wrapped", None) is None or is_transactional(topology):
            continue
        if isinstance(wrapper, CoordinatedBolt | BatchBoltExecutor):
            raise NotOnSparkError(
                f"bolt {spec.id!r} ({type(innermost(wrapper)).__name__}) works on one id after the other, each with a beginning and "
                "an end, as requests of DRPC do, which Spark's batches don't have: run the topology on the embedded cluster or "
                "on Storm, or make it a transactional one (TransactionalTopologyBuilder), whose id is the batch"
            )
        raise NotOnSparkError(
            f"{spec.kind} {spec.id!r} runs inside a {type(wrapper).__name__}, which has no form on Spark: run the topology on the "
            "embedded cluster or on Storm"
        )
    return plain
