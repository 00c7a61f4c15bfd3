"""The transformation of a topology before it is submitted: subscriptions that travel in blocks get a stream for them."""

from __future__ import annotations

from multilang.blocks.names import BY_BLOCK, BY_TUPLE, EDGES, EXCHANGE, FIELDS, MAX_TUPLES, STREAM, TUPLES
from multilang.component.base import Component
from multilang.component.streams import Stream
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import Grouping
from multilang.topology.model import Input
from multilang.topology.shell import program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from multilang.topology import ComponentSpec, Topology


def by_blocks(topology: Topology, captured: Collection[tuple[str, str]] = ()) -> Topology:
    """Return ``topology`` with the subscriptions that may travel in blocks on direct streams for them.

    The topology itself, if there are none. Components find their part in their own conf, under ``EDGES``.

    Args:
        topology: The topology, with the conf of the run.
        captured: The streams, as (component, stream), whose tuples must be seen one by one.

    Raises:
        TopologyError: The setting has a wrong value.
    """
    blocks = {id for id, spec in topology.components.items() if _by_block(topology, spec)}
    edges = {
        (input_.component, input_.stream, spec.id)
        for spec in topology.components.values()
        for input_ in spec.inputs
        if {spec.id, input_.component} <= blocks
        and (input_.component, input_.stream) not in captured
        and _goes_in_blocks(topology, input_)
    }
    if not edges:
        return topology
    changed = topology.with_conf({})
    seen = {(input_.component, input_.stream) for spec in topology.components.values() for input_ in spec.inputs}
    seen.update(captured)
    for id, spec in changed.components.items():
        if id not in blocks:
            continue
        found: dict[str, Any] = {"out": {}, "in": {}, "unread": []}
        for target, input_ in topology.subscribers(id):
            if (id, input_.stream, target.id) in edges:
                found["out"].setdefault(input_.stream, {})[target.id] = input_.grouping.to_dict()
        inputs = []
        for input_ in spec.inputs:
            if (input_.component, input_.stream, id) not in edges:
                inputs.append(input_)
                continue
            if input_.component not in found["in"]:
                inputs.append(Input(input_.component, STREAM, Grouping("direct")))
            found["in"].setdefault(input_.component, {})[input_.stream] = input_.grouping.to_wire()
        if spec.kind == "bolt":
            found["unread"] = [name for name in spec.streams if (id, name) not in seen]
        if found["out"]:
            spec.streams = {**spec.streams, STREAM: Stream(FIELDS, direct=True)}
        if found["out"] or found["in"]:
            spec.inputs = inputs
            spec.conf = {**spec.conf, EDGES: found}
    return changed


def _by_block(topology: Topology, spec: ComponentSpec) -> bool:
    how = spec.conf.get(EXCHANGE, topology.conf.get(EXCHANGE, BY_TUPLE))
    if how not in (BY_TUPLE, BY_BLOCK):
        raise TopologyError(
            f"{spec.kind} {spec.id!r}: conf {EXCHANGE!r} is {how!r}; write {BY_TUPLE!r} or {BY_BLOCK!r}"
        )
    most = spec.conf.get(TUPLES, topology.conf.get(TUPLES, MAX_TUPLES))
    if type(most) is not int or most < 1:
        raise TopologyError(f"{spec.kind} {spec.id!r}: conf {TUPLES!r} is {most!r}; write a number from 1 on")
    return how == BY_BLOCK and isinstance(spec.component, Component) and program_of(spec.component) is None


def _goes_in_blocks(topology: Topology, input_: Input) -> bool:
    source = topology.components[input_.component].component
    grouping = input_.grouping
    if input_.stream.startswith("$") or getattr(source, "questions", None):
        return False  # what it asks is answered one by one, and nothing must overtake it
    if grouping.is_direct or grouping.custom is not None:
        return False
    return not grouping.is_near or topology.conf.get("topology.workers", 1) in (None, 1)
