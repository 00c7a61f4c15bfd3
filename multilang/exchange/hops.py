"""The choice of each subscription's way: by the block, or tuple by tuple and why."""

from __future__ import annotations

from multilang.component.base import Component
from multilang.exchange.block import MAX_BYTES
from multilang.exchange.choice import by_root
from multilang.exchange.names import BY_AUTO, BY_TUPLE
from multilang.settings import EXCHANGE, MAX_BUFFER, value
from multilang.topology.graph import behind, subscribers
from multilang.topology.shell import program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from multilang.topology import ComponentSpec, Topology
    from multilang.topology.model import Input


_MOST_PER_LETTER = 8  # bytes on the wire of a letter of a block, which is escaped twice


class Hop:
    """A subscription, and the way of its tuples.

    Attributes:
        input: The subscription.
        target: The component that subscribes.
        against: The reason that its tuples travel one by one; None: they travel in blocks.
        by_root: The reason that a block has the descendants of one spout tuple only; None: of many.
    """

    __slots__ = ("against", "by_root", "input", "target")

    def __init__(self, input_: Input, target: str, against: str | None, by_root: str | None) -> None:
        self.input = input_
        self.target = target
        self.against = against
        self.by_root = by_root

    @property
    def by_block(self) -> bool:
        """True if its tuples travel in blocks."""
        return self.against is None

    @property
    def key(self) -> tuple[str, str, str]:
        """The source, the stream and the subscriber."""
        return self.input.component, self.input.stream, self.target

    def __str__(self) -> str:
        if self.against is not None:
            return f"tuple by tuple: {self.against}"
        return "by block" if self.by_root is None else f"by root: {self.by_root}"


class Plan:
    """The ways of a topology's tuples.

    Attributes:
        hops: All hops.
        by_root: For each component the reason that its blocks have the descendants of one spout tuple only; None: of many.
    """

    __slots__ = ("by_root", "hops")

    def __init__(self, hops: list[Hop], by_root: dict[str, str | None]) -> None:
        self.hops = hops
        self.by_root = by_root


def hops(topology: Topology, captured: Collection[tuple[str, str]] = ()) -> list[Hop]:
    """Return all hops of a topology; see ``planned``."""
    return planned(topology, captured).hops


def planned(topology: Topology, captured: Collection[tuple[str, str]] = ()) -> Plan:
    """Return the ways of a topology's tuples, as they are where its components are processes.

    Args:
        topology: The topology, with the conf of the run.
        captured: The streams, as (component, stream), whose tuples must be seen one by one.

    Raises:
        TopologyError: A setting has a wrong value.
    """
    alone = _alone(topology, captured)
    ways = {id: _way(topology, spec) for id, spec in topology.components.items()}
    reasons = by_root(topology, ways, {(each.component, each.stream, id): why for id, each, why in alone})
    return Plan([Hop(input_, id, why, reasons[input_.component]) for id, input_, why in alone], reasons)


def _alone(topology: Topology, captured: Collection[tuple[str, str]]) -> list[tuple[str, Input, str | None]]:
    """Return each subscription with its subscriber and the reason that its tuples travel one by one, or None."""
    against = {id: _against_component(topology, spec) for id, spec in topology.components.items()}
    after = subscribers(topology.components.values())
    for id, spout in topology.spouts.items():
        if getattr(spout.component, "fails_alone", False):
            for each in (id, *behind(after, id)):
                against[each] = (
                    against[each] or f"tuples that come of {id!r} must fail alone, since nobody replays them"
                )
    return [
        (
            spec.id,
            input_,
            against[input_.component] or against[spec.id] or _against_input(topology, input_, captured),
        )
        for spec in topology.components.values()
        for input_ in spec.inputs
    ]


def _way(topology: Topology, spec: ComponentSpec) -> object:
    return _value(topology, spec, EXCHANGE)


def _value(topology: Topology, spec: ComponentSpec, key: str) -> Any:
    return value(spec.conf if key in spec.conf else topology.conf, key)


def chooses(topology: Topology, spec: ComponentSpec) -> bool:
    """Return whether the library chooses what a component puts into a block together."""
    return _way(topology, spec) == BY_AUTO


def takes_blocks(topology: Topology, spec: ComponentSpec) -> bool:
    """Return whether a component may send and get blocks."""
    return _against_component(topology, spec) is None


def _against_component(topology: Topology, spec: ComponentSpec) -> str | None:
    how = _way(topology, spec)
    if not isinstance(spec.component, Component) or program_of(spec.component) is not None:
        return f"{spec.id!r} is a program of its own"
    limit = _value(topology, spec, MAX_BUFFER)
    if limit < _MOST_PER_LETTER * MAX_BYTES:
        return f"{MAX_BUFFER!r} of {spec.id!r} is {limit}, and a block may have {_MOST_PER_LETTER * MAX_BYTES} bytes"
    return f"{EXCHANGE!r} of {spec.id!r} is {how!r}" if how == BY_TUPLE else None


def _against_input(topology: Topology, input_: Input, captured: Collection[tuple[str, str]]) -> str | None:
    source = topology.components[input_.component].component
    grouping = input_.grouping
    if (input_.component, input_.stream) in captured:
        return "the stream is captured"
    if input_.stream.startswith("$"):
        return "the stream is the library's own, and nothing may overtake it"
    if getattr(source, "questions", None):
        return f"{input_.component!r} asks questions, each of which is answered alone"
    if grouping.is_direct:
        return "the stream is direct"
    if grouping.custom is not None:
        return "the grouping is an object of the topology's own"
    if not grouping.is_known:
        return "the grouping is a class of the topology's own"
    if grouping.prefers_local and topology.conf.get("topology.workers", 1) not in (None, 1):
        return "no task knows which others are in its worker (topology.workers is more than 1)"
    return None
