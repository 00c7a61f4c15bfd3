"""The paths of tuples from component to component."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from multilang.topology.model import ComponentSpec


def subscribers(specs: Iterable[ComponentSpec]) -> dict[str, list[str]]:
    """Return for each component those that subscribe to it, each once."""
    found: dict[str, dict[str, None]] = {}
    for spec in specs:
        found.setdefault(spec.id, {})
        for input_ in spec.inputs:
            found.setdefault(input_.component, {})[spec.id] = None
    return {id: list(each) for id, each in found.items()}


def behind(subscribers: Mapping[str, Sequence[str]], start: str) -> set[str]:
    """Return the components downstream of a component; also itself, if it is in a cycle.

    Args:
        subscribers: Those of each component.
        start: The component.
    """
    found: set[str] = set()
    left = list(subscribers[start])
    while left:
        id = left.pop()
        if id not in found:
            found.add(id)
            left.extend(subscribers[id])
    return found


def cyclic(subscribers: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the components in cycles.

    Args:
        subscribers: Those of each component.
    """
    return {id for id in subscribers if id in behind(subscribers, id)}
