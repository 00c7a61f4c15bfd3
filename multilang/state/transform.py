"""From a topology with stateful bolts to the plain topology that runs them: adds the checkpoint spout and stream.

"For stateful topologies, the topology builder wraps the IStatefulBolt in a StatefulBoltExecutor which handles the state
commits on receiving the checkpoint tuples. The non stateful bolts are wrapped in a CheckpointTupleForwarder."
"""

from __future__ import annotations

from multilang.state import settings
from multilang.state.bolt import Stateful
from multilang.state.checkpointed import CheckpointTupleForwarder
from multilang.state.executor import StatefulBoltExecutor
from multilang.state.names import SPOUT, STREAM, STREAMS
from multilang.state.spout import CheckpointSpout
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import Grouping
from multilang.topology.model import TASKS, ComponentSpec, Input, Topology
from multilang.topology.shell import ShellComponent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def stateful(topology: Topology) -> Topology:
    """See the module. Raises TopologyError for what checkpoints can't go through, ConfigError for a wrong setting."""
    settings.check(topology.conf)
    specs = {id: spec.copy() for id, spec in topology.components.items()}
    _check_names(specs)
    _check_cycles(specs)
    inputs = {id: _checkpoint_inputs(specs, id) for id, spec in specs.items() if spec.kind == "bolt"}
    spout = CheckpointSpout(_stateful_ids(specs), settings.alignment(topology.conf))
    for id, spec in specs.items():
        if spec.kind == "bolt" and not isinstance(spec.component, ShellComponent):
            wrapper = StatefulBoltExecutor if isinstance(spec.component, Stateful) else CheckpointTupleForwarder
            spec.component = wrapper(spec.component, spec.factory)
            spec.factory = None
            spec.streams = spec.component.declared_streams()
            spec.inputs += [Input(source, STREAM, Grouping("all")) for source in inputs[id]]
    specs[SPOUT] = ComponentSpec(SPOUT, "spout", spout, streams=STREAMS, tasks=1, conf={TASKS: 1})
    return Topology(topology.name, topology.conf, specs, module=topology.module)


def _stateful_ids(specs: Mapping[str, ComponentSpec]) -> list[str]:
    return [id for id, spec in specs.items() if isinstance(spec.component, Stateful)]


def _checkpoint_inputs(specs: Mapping[str, ComponentSpec], id: str) -> list[str]:
    """Where a bolt's checkpoints come from: the checkpoint spout in place of its spouts, and each bolt before it.

    A bolt in another language can't pass checkpoints on (on Storm's wire nothing else can speak of them): they go around
    it, from those before it.
    """
    found: list[str] = []
    left = [id]
    while left:
        for input_ in specs[left.pop(0)].inputs:
            source = specs[input_.component]
            if source.kind == "spout":
                name = SPOUT
            elif isinstance(source.component, ShellComponent):
                left.append(source.id)
                continue
            else:
                name = source.id
            if name not in found:
                found.append(name)
    return found or [SPOUT]  # a bolt that has ticks alone


def _check_names(specs: Mapping[str, ComponentSpec]) -> None:
    for id, spec in specs.items():
        if id == SPOUT:
            raise TopologyError(
                f"{spec.kind} {id!r}: the checkpoint spout of a stateful topology has this id; take another"
            )
        if STREAM in spec.streams:
            raise TopologyError(
                f"{spec.kind} {id!r}: the stream {STREAM!r} is that of checkpoints; give yours another name"
            )


def _check_cycles(specs: Mapping[str, ComponentSpec]) -> None:
    for id, spec in specs.items():
        seen: set[str] = set()
        left = [input_.component for input_ in spec.inputs]
        while left:
            source = left.pop()
            if source == id:
                raise TopologyError(
                    f"bolt {id!r} gets tuples that came of its own, and a checkpoint would wait for itself there: a "
                    "topology with stateful bolts can have no cycle"
                )
            if source not in seen:
                seen.add(source)
                left += [input_.component for input_ in specs[source].inputs]
