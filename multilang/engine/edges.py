"""Edge ids: the random numbers that tie an emitted tuple to the spout tuples behind its anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Anchor(Protocol):
    """A delivery that tuples can be anchored to, with ``root`` and ``edge`` as in LocalTuple."""

    root: int | dict[int, int]
    edge: int


def edges(
    anchors: Sequence[Anchor], getrandbits: Callable[[int], int], rootless: int = 0
) -> Callable[[], tuple[Any, int]]:
    """Return a function that returns the roots and the edge of the next target.

    Each call makes a new edge from every anchor that has a root, and xors it into that anchor.

    Args:
        anchors: The deliveries that the tuple is anchored to.
        getrandbits: A source of random numbers with so many bits.
        rootless: The edge when no anchor has a root.
    """
    if len(anchors) == 1:
        (only,) = anchors
        if type(root_of_all := only.root) is int and root_of_all:

            def one_root() -> tuple[int, int]:
                edge = getrandbits(64)
                only.edge ^= edge
                return root_of_all, edge

            return one_root

    def roots() -> tuple[Any, int]:
        new: dict[int, int] = {}
        for anchor in anchors:
            root = anchor.root
            if root:
                edge = getrandbits(64)
                anchor.edge ^= edge
                for each in root if isinstance(root, dict) else (root,):
                    new[each] = new.get(each, 0) ^ edge
        if len(new) > 1:
            return new, 0
        return next(iter(new.items()), (0, rootless))

    return roots
