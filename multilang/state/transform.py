"""The transformation of a topology with stateful bolts: it adds the checkpoint spout, its stream, and wrappers.

"For stateful topologies, the topology builder wraps the IStatefulBolt in a StatefulBoltExecutor which handles the state
commits on receiving the checkpoint tuples. The non stateful bolts are wrapped in a CheckpointTupleForwarder."
"""

from __future__ import annotations

from multilang.settings import ALIGNMENT, AT_LEAST_ONCE, EXACT, value
from multilang.state import settings
from multilang.state.bolt import Stateful
from multilang.state.checkpointed import Checkpointed, CheckpointTupleForwarder
from multilang.state.exact import ExactExecutor, ExactForwarder
from multilang.state.exact_spout import ExactCheckpointSpout
from multilang.state.executor import StatefulBoltExecutor
from multilang.state.names import MORE, SPOUT, STREAM, TURN
from multilang.state.replayable import ReplayableSpout
from multilang.state.shape import Part
from multilang.state.source import SourceExecutor
from multilang.state.spout import CheckpointSpout
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import Grouping
from multilang.topology.model import TASKS, ComponentSpec, Input, Topology, describe
from multilang.topology.shell import Foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_SPOUT_PENDING = "topology.max.spout.pending"


class _Kinds:
    """The classes of the wrappers and of the checkpoint spout for one alignment."""

    def __init__(
        self,
        executor: type[StatefulBoltExecutor],
        forwarder: type[CheckpointTupleForwarder],
        spout: type[CheckpointSpout],
    ) -> None:
        self.executor = executor
        self.forwarder = forwarder
        self.spout = spout


_AT_LEAST_ONCE = _Kinds(StatefulBoltExecutor, CheckpointTupleForwarder, CheckpointSpout)
_EXACT = _Kinds(ExactExecutor, ExactForwarder, ExactCheckpointSpout)


def stateful(topology: Topology) -> Topology:
    """Return the topology with checkpoints.

    Raises:
        TopologyError: Checkpoints can't pass through a component.
        ConfigError: A setting is wrong.
    """
    settings.check(topology.conf)
    specs = {id: spec.copy() for id, spec in topology.components.items()}
    exact = value(topology.conf, ALIGNMENT) == EXACT
    kinds = _EXACT if exact else _AT_LEAST_ONCE
    if exact:
        _check_exact(specs)
    _check_names(specs)
    _check_cycles(specs)
    inputs = {id: _checkpoint_inputs(specs, id, exact) for id, spec in specs.items() if spec.kind == "bolt"}
    with_state = [
        id for id, spec in specs.items() if isinstance(spec.component, Stateful) or (exact and spec.kind == "spout")
    ]
    parts = {id: Part.of(specs[id]) for id in with_state}
    for id, spec in specs.items():
        if spec.kind == "bolt" and not isinstance(spec.component, Foreign):
            wrapper = kinds.executor if isinstance(spec.component, Stateful) else kinds.forwarder
            _wrap(spec, wrapper, [Input(source, STREAM, Grouping("all")) for source in inputs[id]])
    if exact:
        for spec in specs.values():
            if spec.kind == "spout":
                spec.kind = "bolt"
                streams = (STREAM, TURN, MORE)
                _wrap(spec, SourceExecutor, [Input(SPOUT, stream, Grouping("all")) for stream in streams])
    spout = kinds.spout(with_state, value(topology.conf, ALIGNMENT), parts)
    if not exact:  # with exact alignment positions are part of the state
        spout.elsewhere = [
            (keys, dict(spec.conf))
            for spec in specs.values()
            if (keys := getattr(spec.component, "stored_elsewhere", None)) is not None
        ]
    own = {TASKS: 1, MAX_SPOUT_PENDING: None}  # overrides the topology's conf for spouts
    specs[SPOUT] = ComponentSpec(SPOUT, "spout", spout, streams=spout.declared_streams(), tasks=1, conf=own)
    return Topology(topology.name, topology.conf, specs, module=topology.module)


def _wrap(spec: ComponentSpec, wrapper: type[Checkpointed], inputs: list[Input]) -> None:
    component = wrapper(spec.component, spec.factory)  # type: ignore[arg-type]  # no shell component comes here
    spec.component = component
    spec.factory = None
    spec.streams = component.declared_streams()
    spec.inputs += inputs


def _check_exact(specs: Mapping[str, ComponentSpec]) -> None:
    for id, spec in specs.items():
        what = describe(spec.component)
        if isinstance(spec.component, Foreign):
            raise TopologyError(
                f"{spec.kind} {id!r} ({what}) is no Python component, and exact alignment needs checkpoints to pass through "
                f"each; use {ALIGNMENT}: {AT_LEAST_ONCE}"
            )
        if spec.kind == "spout" and not isinstance(spec.component, ReplayableSpout):
            raise TopologyError(
                f"spout {id!r} ({what}) can't go back to a position, which exact alignment needs of all spouts: make it a "
                f"multilang.state.ReplayableSpout, or use {ALIGNMENT}: {AT_LEAST_ONCE}"
            )


def _checkpoint_inputs(specs: Mapping[str, ComponentSpec], id: str, exact: bool) -> list[str]:
    """Return the components that send checkpoints to a bolt: the bolts before it, and for spouts the checkpoint spout.

    With exact alignment spouts run as bolts, and checkpoints come through them. Storm's wire has no checkpoints for a
    bolt in another language, so they go around such a bolt, from the components before it.
    """
    found: list[str] = []
    left = [id]
    while left:
        for input_ in specs[left.pop(0)].inputs:
            source = specs[input_.component]
            if source.kind == "spout" and not exact:
                name = SPOUT
            elif isinstance(source.component, Foreign):
                left.append(source.id)
                continue
            else:
                name = source.id
            if name not in found:
                found.append(name)
    return found or [SPOUT]  # a bolt that gets only ticks


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
                    f"bolt {id!r} gets tuples that came of its own, so that a checkpoint would wait for itself there: a "
                    "topology with stateful bolts can't have a cycle"
                )
            if source not in seen:
                seen.add(source)
                left += [input_.component for input_ in specs[source].inputs]
