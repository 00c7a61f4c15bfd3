"""The parts of a transactional topology that an engine must know: its coordinator, and the bolts that finish late."""

from __future__ import annotations

from multilang.transactional.bolts import TransactionalBolt
from multilang.transactional.spout import TransactionalSpoutCoordinator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.topology.model import ComponentSpec, Topology


def coordinator_in(topology: Topology) -> ComponentSpec | None:
    """Return the coordinator of a transactional topology; None for any other topology."""
    for spec in topology.components.values():
        if isinstance(spec.component, TransactionalSpoutCoordinator):
            return spec
    return None


def late(topology: Topology) -> frozenset[str]:
    """Return the bolts that finish in the commit phase: committers, and the bolts behind them."""
    bolts = {
        id: spec.component for id, spec in topology.components.items() if isinstance(spec.component, TransactionalBolt)
    }
    found = {id for id, bolt in bolts.items() if bolt.id_stream is not None}
    while more := {id for id, bolt in bolts.items() if id not in found and not found.isdisjoint(bolt.sources)}:
        found |= more
    return frozenset(found)
