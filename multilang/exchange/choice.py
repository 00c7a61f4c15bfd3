"""The choice between blocks of one spout tuple's descendants and of many's, for components whose setting is ``auto``.

A block succeeds or fails as a whole, and stays in flight until the last of its tuples is done. So descendants of many
tuples may be in one block only where this causes no more than replays: where the spout replays whatever failed, and each
bolt downstream acks or fails a tuple without waiting for others. In a cycle, a block's tuples would be tied to later
ones, and these to later ones, without end.

The choice holds for all descendants of a spout's tuples, since a tuple that failed must be able to travel apart all the way.
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
    """Return for each component why its blocks have the descendants of one spout tuple only; None: of many.

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
        while left:  # a reason holds for all components downstream, too
            spec = components[left.pop()]
            if found[spec.id] is None and self._ways[spec.id] == BY_AUTO:
                found[spec.id] = next(filter(None, (self._of_input(spec, each, found) for each in spec.inputs)), None)
            if found[spec.id] is not None:
                left.extend(id for id in self._subscribers[spec.id] if found[id] is None)
        return found

    def _behind(self) -> dict[str, str | None]:
        """Return for each component the reason that lies in a component downstream of it, or None."""
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
        """Return the reason that lies in a component, or downstream of it."""
        way = self._ways[spec.id]
        if way != BY_AUTO:
            return None if way == BY_BLOCK else f"{EXCHANGE!r} of {spec.id!r} is {way!r}"
        if self._topology.conf.get("topology.acker.executors") == 0:
            return "without ackers ('topology.acker.executors' is 0) nothing bounds the tuples in flight"
        return (_against_spout(spec) if spec.kind == "spout" else None) or behind

    def _of_input(self, spec: ComponentSpec, input_: Input, found: Mapping[str, str | None]) -> str | None:
        """Return the reason that lies in an input of a component."""
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
        return f"{spec.id!r} may drop what fails; if not, set emits_again = True in {type(component).__name__}"
    if getattr(component, "max_replays", None) == 0:
        return f"{spec.id!r} drops what fails, as its max_replays is 0"
    return None


def _against_bolt(spec: ComponentSpec) -> str | None:
    component: Any = spec.component
    if _is_program(spec):
        return f"{spec.id!r} is a program of its own, which may hold tuples until others arrive"
    if acks_by_itself(component):
        return None
    reason = f"{spec.id!r} may hold tuples until others arrive"
    if component.wrapped is not None:  # state or coordination, which hold them whatever the bolt does
        return reason
    return f"{reason}; if not, set acks_by_itself = True in {type(component).__name__}"


def acks_by_itself(component: Any) -> bool:
    """Return whether a bolt's class declares that it acks or fails each tuple without waiting for others."""
    return _declares(component, "acks_by_itself", Bolt, _TAKING)


def _is_program(spec: ComponentSpec) -> bool:
    return not isinstance(spec.component, Component) or program_of(spec.component) is not None


def _declares(component: Any, name: str, base: type, methods: tuple[str, ...]) -> bool:
    """Return whether a component's class sets ``name``, and no subclass of that overrides one of the methods."""
    if not getattr(component, name, False):
        return False
    kind = type(component)
    declaring = next((each for each in kind.__mro__ if name in vars(each)), None)
    if declaring is None or name in vars(component):
        return True  # set by the object itself
    for method in methods:
        its = getattr(declaring, method, None)
        if its is not getattr(base, method, None) and getattr(kind, method, None) is not its:
            return False
    return True
