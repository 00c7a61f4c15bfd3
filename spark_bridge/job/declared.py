"""The declared topology, which is what runs on Spark, and the refusal of what has no form there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.coordination import BatchBoltExecutor, CoordinatedBolt
from multilang.state.bolt import Stateful
from multilang.streams.marks import PassingBolt
from multilang.topology.errors import TopologyError
from multilang.topology.transform import transformed
from multilang.transactional.parts import coordinator_in

if TYPE_CHECKING:
    from multilang.topology.model import Topology


def is_transactional(topology: Topology) -> bool:
    """Return whether TransactionalTopologyBuilder made the topology."""
    return coordinator_in(topology) is not None


def without_checkpoints(topology: Topology) -> Topology:
    """Return the topology with all that its components ask for but checkpoints: Spark saves states in its own way."""
    return transformed(topology.declared, leaving=Stateful.transformations)


def as_declared(topology: Topology) -> Topology:
    """Return the topology as its author declared it, without checkpoints and coordination.

    Raises:
        TopologyError: A component runs in a wrapper that has no form on Spark; the message names the component.
    """
    declared = without_checkpoints(topology)
    for spec in declared.components.values():
        wrapper = spec.component
        if getattr(wrapper, "wrapped", None) is None or is_transactional(topology):
            continue
        if isinstance(wrapper, PassingBolt):  # a batch is complete without watermarks
            spec.component, spec.factory = wrapper.wrapped, wrapper.factory
            continue
        if isinstance(wrapper, CoordinatedBolt | BatchBoltExecutor):
            raise TopologyError(
                f"bolt {spec.id!r} ({type(innermost(wrapper)).__name__}) works on one id after the other, each with a beginning and "
                "an end, as requests of DRPC do, which Spark's batches don't have: run the topology on the embedded cluster or "
                "on Storm, or make it a transactional one (TransactionalTopologyBuilder), whose id is the batch"
            )
        raise TopologyError(
            f"{spec.kind} {spec.id!r} runs inside a {type(wrapper).__name__}, which has no form on Spark: run the topology on the "
            "embedded cluster or on Storm"
        )
    return declared
