"""The transactional topology as it was declared, for an engine that knows by itself when a batch is complete."""

from __future__ import annotations

from multilang.coordination import COORD_STREAM
from multilang.topology.model import Topology
from multilang.transactional.bolts import EmitterBolt, TransactionalBolt
from multilang.transactional.names import COMMIT_STREAM
from multilang.transactional.spout import TransactionalSpoutCoordinator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.topology.model import ComponentSpec


def coordinator_in(topology: Topology) -> ComponentSpec | None:
    """Return the coordinator of a transactional topology; None for any other topology."""
    for spec in topology.components.values():
        if isinstance(spec.component, TransactionalSpoutCoordinator):
            return spec
    return None


def plain(topology: Topology) -> Topology:
    """Return the topology as it was declared: the inverse of TransactionalTopologyBuilder.build.

    Its spout is the transactional spout. Its bolts are those inside the coordination: a BasicBolt, or a
    BatchBoltExecutor whose ``finished_id`` is to be called when all of a batch has come. The first value of every tuple
    is the attempt. A topology that is not transactional is returned as it is.
    """
    found = coordinator_in(topology)
    if found is None:
        return topology
    specs = {id: _unwrapped(spec) for id, spec in topology.components.items() if id != found.id}
    return Topology(topology.name, topology.conf, specs, module=topology.module)


def late(topology: Topology) -> frozenset[str]:
    """Return the bolts that finish in the commit phase: committers, and the bolts behind them."""
    bolts = {
        id: spec.component for id, spec in topology.components.items() if isinstance(spec.component, TransactionalBolt)
    }
    found = {id for id, bolt in bolts.items() if bolt.id_stream is not None}
    while more := {id for id, bolt in bolts.items() if id not in found and not found.isdisjoint(bolt.sources)}:
        found |= more
    return frozenset(found)


def _unwrapped(spec: ComponentSpec) -> ComponentSpec:
    wrapper = spec.component
    if not isinstance(wrapper, TransactionalBolt | EmitterBolt):
        return spec
    twin = spec.copy()
    if isinstance(wrapper, EmitterBolt):
        twin.kind = "spout"
        twin.component, twin.factory, twin.inputs = wrapper.wrapped.wrapped, None, []
    else:
        twin.component, twin.factory = wrapper.wrapped, wrapper.factory
        twin.inputs = [input_ for input_ in spec.inputs if input_.stream not in (COORD_STREAM, COMMIT_STREAM)]
    twin.streams = twin.component.declared_streams()
    return twin
