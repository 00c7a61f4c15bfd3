"""The names of settings and streams of chains."""

from __future__ import annotations

CHAINING = "multilang.chaining"
"""``off``, ``local`` or ``shuffle``, of a topology or a component."""
VIEW = "multilang.chaining.view"
"""The topology as it was declared, as far as a component's process needs it, set by ``by_chains`` in its own conf."""

OFF = "off"
LOCAL = "local"
SHUFFLE = "shuffle"
WAYS = (OFF, LOCAL, SHUFFLE)
DEFAULT = OFF

TICKS = "topology.tick.tuple.freq.secs"


def chain_name(members: list[str]) -> str:
    """Return the id of the component that a chain is."""
    return "+".join(members)


def chain_stream(member: str, stream: str) -> str:
    """Return the stream of a chain on which a member's tuples leave it."""
    return f"{member}:{stream}"
