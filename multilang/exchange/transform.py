"""The transformation of a topology before it is submitted: subscriptions that travel in blocks get a stream for them."""

from __future__ import annotations

from multilang.component.streams import Stream
from multilang.exchange.hops import chooses, planned, takes_blocks
from multilang.exchange.names import FIELDS, MAX_PENDING, STREAM
from multilang.settings import EDGES
from multilang.topology.groupings import Grouping
from multilang.topology.model import Input

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
    plan = planned(topology, captured)
    edges = {hop.key for hop in plan.hops if hop.by_block}
    if not edges:
        return topology
    changed = topology.with_conf({})
    seen = {(input_.component, input_.stream) for spec in topology.components.values() for input_ in spec.inputs}
    seen.update(captured)
    for id, spec in changed.components.items():
        if not takes_blocks(topology, spec):
            continue
        apart = plan.by_root[id] is not None
        found: dict[str, Any] = {"out": {}, "in": {}, "unread": [], "apart": apart}
        if not apart and chooses(topology, spec):
            found["careful"] = True
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
            if spec.kind == "spout":
                _let_pend(topology, spec, found)
    return changed


def _let_pend(topology: Topology, spec: ComponentSpec, edges: dict[str, Any]) -> None:
    """Let a spout have more messages in flight, if its tuples are several messages each.

    A tuple is a message for each task that gets it in a block. Tuple by tuple it is one for all of them, and so it counts
    once for ``topology.max.spout.pending``, as Storm compares it with messages. The spout's process counts tuples.
    """
    most = spec.conf.get(MAX_PENDING, topology.conf.get(MAX_PENDING))
    if type(most) is not int or most < 1:
        return
    messages = dict.fromkeys(edges["out"], 0)
    for target, input_ in topology.subscribers(spec.id):
        if input_.stream in messages:
            messages[input_.stream] += target.tasks if input_.grouping.is_to_all else 1
    most_messages = max(messages.values(), default=1)
    if most_messages > 1:
        edges["pending"] = most
        spec.conf[MAX_PENDING] = most * most_messages
