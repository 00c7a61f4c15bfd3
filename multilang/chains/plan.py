"""The choice of the bolts that are joined to chains, with the reason for each subscription that is not."""

from __future__ import annotations

from multilang.chains.names import CHAINING, DEFAULT, LOCAL, OFF, SHUFFLE, TICKS, WAYS
from multilang.component.base import Component
from multilang.component.spout import Spout
from multilang.topology.errors import TopologyError
from multilang.topology.model import MAX_PARALLELISM, TASKS
from multilang.topology.shell import program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from multilang.topology import ComponentSpec, Topology
    from multilang.topology.model import Input

    Key = tuple[str, str, str]

_MAY_DIFFER = frozenset({CHAINING, TASKS, MAX_PARALLELISM, TICKS})


class Chains:
    """The chains of a topology.

    Attributes:
        members: The members of each chain by the id of its first, in an order in which sources come before subscribers.
        joined: The subscriptions inside of chains, each as its source, its stream and its subscriber.
        against: The reason for each other subscription.
    """

    def __init__(self, members: dict[str, list[str]], against: dict[Key, str], joined: set[Key]) -> None:
        self.members = members
        self.against = against
        self.joined = joined


def chains(topology: Topology, captured: Collection[tuple[str, str]] = ()) -> Chains:
    """Return the chains of a topology.

    Args:
        topology: The topology, with the conf of the run.
        captured: The streams, as (component, stream), whose tuples must be seen one by one.

    Raises:
        TopologyError: A setting has a wrong value.
    """
    return _Planning(topology, {component for component, _ in captured}).planned()


def way_of(topology: Topology, spec: ComponentSpec) -> str:
    """Return a component's ``multilang.chaining``.

    Raises:
        TopologyError: It has a wrong value.
    """
    way = spec.conf.get(CHAINING, topology.conf.get(CHAINING, DEFAULT))
    if way not in WAYS:
        raise TopologyError(
            f"{spec.kind} {spec.id!r}: conf {CHAINING!r} is {way!r}; write {', '.join(map(repr, WAYS[:-1]))} or {WAYS[-1]!r}"
        )
    return way  # type: ignore[no-any-return]


class _Planning:
    def __init__(self, topology: Topology, captured: Collection[str]) -> None:
        self._topology = topology
        self._ways = {id: way_of(topology, spec) for id, spec in topology.components.items()}
        order = in_order(topology.components)
        self._order = order
        self._reasons = {id: self._against(spec, id in captured) for id, spec in topology.components.items()}
        self._head = {id: id for id in topology.components}
        self._ticks: dict[str, object] = {}

    def planned(self) -> Chains:
        against: dict[Key, str] = {}
        joined: set[Key] = set()
        members = {id: [id] for id in self._topology.components}
        for id in self._order:
            spec = self._topology[id]
            reasons = {_key(spec, each): self._against_input(spec, each) for each in spec.inputs}
            apart = next((key for key, reason in reasons.items() if reason), None)
            if apart is not None:
                other = f"{id!r} takes {_shown(apart)} from elsewhere, too"
                against.update({key: reason or other for key, reason in reasons.items()})
                continue
            heads = {self._head[each.component] for each in spec.inputs}
            if len(heads) != 1:
                together = "its sources are not in one process" if heads else ""
                against.update(dict.fromkeys(reasons, together))
                continue
            (head,) = heads
            reason = self._against_member(self._topology[head], spec)
            if reason is not None:
                against.update(dict.fromkeys(reasons, reason))
                continue
            self._head[id] = head
            members[head].append(id)
            joined.update(reasons)
            if TICKS in spec.conf:
                self._ticks[head] = spec.conf[TICKS]
        for id in self._topology.components.keys() - set(self._order):
            spec = self._topology[id]
            against.update({_key(spec, each): "its tuples may come back to it" for each in spec.inputs})
        return Chains({head: found for head, found in members.items() if len(found) > 1}, against, joined)

    def _against(self, spec: ComponentSpec, captured: bool) -> str | None:
        """Return the reason for which a component is in no chain."""
        id, component = spec.id, spec.component
        if self._ways[id] == OFF:
            return f"{CHAINING!r} of {id!r} is {OFF!r}"
        if not isinstance(component, Component) or program_of(component) is not None:
            return f"{id!r} is a program of its own"
        if isinstance(component, Spout):
            return f"{id!r} is a spout, which stays in a process of its own"
        if component.wrapped is not None or component.transformations:
            return f"{id!r} needs what state, windows, batches or transactions put around it"
        if any(name.startswith("$") for name in spec.streams) or any(
            each.stream.startswith("$") for each in spec.inputs
        ):
            return f"{id!r} has streams of the library's own"
        if captured:
            return f"a stream of {id!r} is captured"
        for target, input_ in self._topology.subscribers(id):
            if not isinstance(target.component, Component) or program_of(target.component) is not None:
                return f"{target.id!r}, a program of its own, reads {id!r} and would see the chain"
            if input_.grouping.custom is not None:
                return f"the grouping from {id!r} to {target.id!r} is an object of the topology's own, and would see the chain"
        return None

    def _against_input(self, spec: ComponentSpec, input_: Input) -> str | None:
        """Return the reason for which a subscription is not inside of a chain."""
        source, grouping = self._topology[input_.component], input_.grouping
        reason = self._reasons[source.id] or self._reasons[spec.id]
        if reason is not None:
            return reason
        way = self._ways[spec.id]
        near = grouping.is_near or (way == SHUFFLE and grouping.is_arbitrary and grouping.custom is None)
        if not near:
            if way == LOCAL and grouping.is_arbitrary:
                return f"{CHAINING!r} of {spec.id!r} is {LOCAL!r}, and the grouping {grouping}"
            return f"the grouping is {grouping}"
        if spec.tasks != source.tasks:
            return f"{source.id!r} has {_count(source.tasks, 'task')}, and {spec.id!r} {spec.tasks}"
        if spec.parallelism != source.parallelism:
            return f"{source.id!r} has {_count(source.parallelism, 'executor')}, and {spec.id!r} {spec.parallelism}"
        return None

    def _against_member(self, head: ComponentSpec, spec: ComponentSpec) -> str | None:
        """Return the reason for which a bolt can't share the process of this chain."""
        mine, theirs = _process_conf(spec.conf), _process_conf(head.conf)
        for key in sorted(mine.keys() | theirs.keys()):
            if mine.get(key) != theirs.get(key):
                return f"{key!r} of {head.id!r} is {theirs.get(key)!r}, and that of {spec.id!r} {mine.get(key)!r}"
        if TICKS in spec.conf:
            ticks = self._ticks.get(head.id, head.conf.get(TICKS, self._topology.conf.get(TICKS)))
            if ticks not in (None, spec.conf[TICKS]):
                return f"{TICKS!r} of {spec.id!r} is {spec.conf[TICKS]!r}, and there are ticks each {ticks!r} s before"
        return None


def in_order(components: Mapping[str, ComponentSpec]) -> list[str]:
    """Return the components whose tuples can't come back to them, sources before subscribers."""
    left = {id: {input_.component for input_ in spec.inputs} for id, spec in components.items()}
    order: list[str] = []
    while ready := [id for id, sources in left.items() if not sources]:
        for id in ready:
            del left[id]
        order += ready
        for sources in left.values():
            sources.difference_update(ready)
    # What is left is in a cycle, or behind one: those behind, the last ones first, belong to the order.
    cyclic, tail = set(left), list[str]()
    while behind := [id for id in left if id in cyclic and not any(id in left[other] for other in cyclic)]:
        cyclic.difference_update(behind)
        tail = behind + tail
    return order + tail


def _key(spec: ComponentSpec, input_: Input) -> Key:
    return input_.component, input_.stream, spec.id


def _shown(key: Key) -> str:
    return repr(key[0]) if key[1] == "default" else f"{key[0]!r} ({key[1]})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s'[: number > 1]}"


def _process_conf(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that hold for a whole process."""
    return {
        key: value
        for key, value in conf.items()
        if key.startswith(("topology.", "multilang.")) and key not in _MAY_DIFFER
    }
