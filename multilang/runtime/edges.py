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
    """Return a function that gives one target after the other its roots and edge.

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


class Joined:
    """One root for all that is emitted with the same anchors, which come of several spout tuples.

    The acker takes it for a tuple tree of its own. When this is done, the acker gets an ack (or a fail) for each root of the
    anchors. So what comes of n spout tuples costs no more than what comes of one, however much that is.

    Args:
        anchors: The deliveries that the tuples are anchored to, of which each has one root at most.
        getrandbits: A source of random numbers with so many bits.

    Attributes:
        root: The root.
        total: All edges that were made so far, xored; 0: none were.
        members: The roots of the anchors, each with the edge that goes from it to this root.
    """

    __slots__ = ("_anchors", "_getrandbits", "members", "root", "total")

    def __init__(self, anchors: Sequence[Anchor], getrandbits: Callable[[int], int]) -> None:
        self._anchors = anchors
        self._getrandbits = getrandbits
        self.root = getrandbits(64)
        self.total = 0
        self.members: dict[int, int] = {}

    def __call__(self) -> tuple[int, int]:
        """Return the root and a new edge, for one target."""
        edge = self._getrandbits(64)
        if not self.members:
            self._begin()
        self.total ^= edge
        return self.root, edge

    def _begin(self) -> None:
        anchors: Any = self._anchors
        edge = self._getrandbits(64)
        members = self.members = dict.fromkeys([anchor.root for anchor in anchors], edge)
        if 0 not in members and len(members) == len(anchors):
            # One edge may be that of all, since the acker keeps roots apart.
            for anchor in anchors:
                anchor.edge ^= edge
            return
        members.clear()
        for anchor in anchors:
            root = anchor.root
            if root:
                edge = self._getrandbits(64)
                anchor.edge ^= edge
                members[root] = members.get(root, 0) ^ edge


def have_several_roots(anchors: Sequence[Anchor]) -> bool:
    """Return whether deliveries of which each has one root at most have several together."""
    try:
        roots: set[Any] = {anchor.root for anchor in anchors}
    except TypeError:
        return False  # one of them has several by itself
    return len(roots) - (0 in roots) > 1
