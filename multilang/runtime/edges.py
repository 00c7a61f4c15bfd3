"""Edge ids: how a tuple that is emitted takes over the spout tuples behind its anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class Anchor(Protocol):
    """A delivery that tuples can be anchored to: ``root`` and ``edge`` as LocalTuple has them."""

    root: int | dict[int, int]
    edge: int


def edges(
    anchors: Sequence[Anchor], getrandbits: Callable[[int], int], rootless: int = 0
) -> Callable[[], tuple[Any, int]]:
    """For one target after the other: an edge from each anchor, xored into it, and the roots that come of them.

    ``rootless``: the edge where no anchor has a root.
    """

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
