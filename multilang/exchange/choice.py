"""The choice between what comes of one tuple in a block and what comes of many, for components whose setting is ``auto``.

A block succeeds or fails as a whole, and stays in flight until the last of its tuples is done. So what comes of many tuples
of a spout may be in one block where nobody can notice more than a repeat: where the spout emits again whatever failed, and
where each bolt that gets what comes of it acks or fails a tuple without waiting for others. In a cycle, a block's tuples
would be tied to those that came later, and these to later ones, without end.

The choice holds for all that comes of a spout, since a tuple that failed must be able to travel apart on all its way.
"""

from __future__ import annotations

from multilang.component.base import Component
from multilang.component.bolt import Bolt
from multilang.component.spout import Spout
from multilang.exchange.names import BY_AUTO, BY_BLOCK
from multilang.settings import EXCHANGE
from multilang.topology.graph import cyclic, subscribers
from multilang.topology.shell import program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.topology import ComponentSpec, Topology
    from multilang.topology.model import Input

_TAKING = ("process", "process_many", "process_tick", "process_batches")
_REPLAYING = ("fail", "replay")


def by_root(
    topology: Topology, ways: Mapping[str, object], alone: Mapping[tuple[str, str, str], str | None]
) -> dict[str, str | None]:
    """Return for each component why it puts together only what comes of one tuple of a spout; None: it puts together many.

    Args:
        topology: The topology, with the conf of the run.
        ways: The setting of each component.
        alone: The reason for each subscription, as its source, stream and subscriber, that travels tuple by tuple, or None.
    """
    return _Choosing(topology, ways, alone).chosen()


class _Choosing:
    def __init__(
        self, topology: Topology, ways: Mapping[str, object], alone: Mapping[tuple[str, str, str], str | None]
    ) -> None:
        self._topology = topology
        self._ways = ways
        self._alone = alone
        self._subscribers = subscribers(topology.components.values())

    def chosen(self) -> dict[str, str | None]:
        """Return the reason for each component, or None."""
        components = self._topology.components
        behind = self._behind()
        found = {id: self._own_reason(spec, behind[id]) for id, spec in components.items()}
        left = list(components)
        while left:  # a reason goes on to all that get what comes of it
            spec = components[left.pop()]
            if found[spec.id] is None and self._ways[spec.id] == BY_AUTO:
                found[spec.id] = next(filter(None, (self._of_input(spec, each, found) for each in spec.inputs)), None)
            if found[spec.id] is not None:
                left.extend(id for id in self._subscribers[spec.id] if found[id] is None)
        return found

    def _behind(self) -> dict[str, str | None]:
        """Return for each component the reason that lies in one of those that get what comes of it, or None."""
        components = self._topology.components
        back = cyclic(self._subscribers)
        found: dict[str, str | None] = dict.fromkeys(components)
        left = []
        for id, spec in components.items():
            reason = f"its tuples may come back to {id!r}" if id in back else None
            if spec.kind == "bolt" and (reason := reason or _against_bolt(spec)) is not None:
                left.append((id, reason))
        for id, reason in left:  # which grows
            for input_ in components[id].inputs:
                if found[input_.component] is None:
                    found[input_.component] = reason
                    left.append((input_.component, reason))
        return found

    def _own_reason(self, spec: ComponentSpec, behind: str | None) -> str | None:
        """Return the reason that lies in a component, or in what gets its tuples."""
        way = self._ways[spec.id]
        if way != BY_AUTO:
            return None if way == BY_BLOCK else f"{EXCHANGE!r} of {spec.id!r} is {way!r}"
        if self._topology.conf.get("topology.acker.executors") == 0:
            return "without ackers ('topology.acker.executors' is 0) nothing bounds the tuples in flight"
        return (_against_spout(spec) if spec.kind == "spout" else None) or behind

    def _of_input(self, spec: ComponentSpec, input_: Input, found: Mapping[str, str | None]) -> str | None:
        """Return the reason that comes with what a component gets."""
        source = input_.component
        if found[source] is not None:
            return found[source]
        if self._alone[source, input_.stream, spec.id] is not None:
            return f"what {spec.id!r} gets from {source!r} travels tuple by tuple"
        return None if self._ways[source] == BY_AUTO else f"{EXCHANGE!r} of {source!r} is {self._ways[source]!r}"


def _against_spout(spec: ComponentSpec) -> str | None:
    component: Any = spec.component
    if _is_program(spec):
        return f"{spec.id!r} is a program of its own, which may drop what fails"
    if not _declares(component, "emits_again", Spout, _REPLAYING):
        return f"{spec.id!r} may drop what fails; if not, {type(component).__name__} says emits_again = True"
    if getattr(component, "max_replays", None) == 0:
        return f"{spec.id!r} drops what fails, as its max_replays is 0"
    return None


def _against_bolt(spec: ComponentSpec) -> str | None:
    component: Any = spec.component
    if _is_program(spec):
        return f"{spec.id!r} is a program of its own, which may keep tuples until others come"
    if acks_by_itself(component):
        return None
    reason = f"{spec.id!r} may keep tuples until others come"
    if component.wrapped is not None:  # state or coordination, which keep them whatever the bolt says
        return reason
    return f"{reason}; if not, {type(component).__name__} says acks_by_itself = True"


def acks_by_itself(component: Any) -> bool:
    """Return whether a bolt acks or fails each tuple without waiting for others, as far as its class says so."""
    return _declares(component, "acks_by_itself", Bolt, _TAKING)


def _is_program(spec: ComponentSpec) -> bool:
    return not isinstance(spec.component, Component) or program_of(spec.component) is not None


def _declares(component: Any, name: str, base: type, methods: tuple[str, ...]) -> bool:
    """Return whether a component's class says ``name``, and still does what the class did that says so.

    What a class says holds for a subclass, unless this has a method of its own in place of one that the class had.
    """
    if not getattr(component, name, False):
        return False
    kind = type(component)
    says = next((each for each in kind.__mro__ if name in vars(each)), None)
    if says is None or name in vars(component):
        return True  # the object itself says it
    for method in methods:
        its = getattr(says, method, None)
        if its is not getattr(base, method, None) and getattr(kind, method, None) is not its:
            return False
    return True
