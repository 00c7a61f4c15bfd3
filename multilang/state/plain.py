"""The stateful topology as it was declared, for an engine that saves states in another way."""

from __future__ import annotations

from multilang.state.checkpointed import Checkpointed
from multilang.state.names import MORE, SPOUT, STREAM, TURN
from multilang.state.source import SourceExecutor
from multilang.topology.model import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.topology.model import ComponentSpec


def plain(topology: Topology) -> Topology:
    """Return the topology as it was declared, without checkpoints: the inverse of ``stateful``.

    A topology that is not stateful is returned as it is.
    """
    if SPOUT not in topology.components:
        return topology
    specs = {id: _unwrapped(spec) for id, spec in topology.components.items() if id != SPOUT}
    return Topology(topology.name, topology.conf, specs, module=topology.module)


def _unwrapped(spec: ComponentSpec) -> ComponentSpec:
    twin = spec.copy()
    wrapper = spec.component
    if isinstance(wrapper, Checkpointed):
        twin.component = wrapper.wrapped
        twin.factory = wrapper.factory
        twin.streams = wrapper.wrapped.declared_streams()
        twin.inputs = [input_ for input_ in spec.inputs if input_.stream not in (STREAM, TURN, MORE)]
        if isinstance(wrapper, SourceExecutor):
            twin.kind = "spout"
    return twin
