"""Tuples that go nowhere, which Storm never looks at."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def nowhere(context: Any) -> Callable[[Any, Any], bool]:
    """Return a function of values and stream that tells whether an emit was refused for its number of values alone.

    Storm makes a tuple of the values for each task that it goes to. Without a subscriber to a declared stream it makes none,
    so that a wrong number of values does no harm: programs run there for years without anybody noticing.

    Args:
        context: The task's place in the topology, as the handshake tells it.
    """
    declared = context.get("stream->outputfields") or {}
    targets = context.get("stream->target->grouping") or {}
    unread = {stream: len(fields) for stream, fields in declared.items() if not targets.get(stream)}

    def goes_nowhere(values: Any, stream: Any) -> bool:
        number = unread.get("default" if stream is None else stream)
        return number is not None and isinstance(values, list | tuple) and len(values) != number

    return goes_nowhere
