"""Tuples inside a Spark task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.runtime.tuples import LocalTuple, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

Roots: TypeAlias = "int | tuple[int, ...]"
"""The roots of a tuple: one, several, or none (0)."""


class FailedRoots(set[int]):
    """The roots of tuples that bolts failed.

    ``timed_out``: the roots of tuples that were neither acked nor failed at the end.
    """

    __slots__ = ("timed_out",)

    def __init__(self) -> None:
        self.timed_out: set[int] = set()


OFFSET_BITS = 40  # bits of a root for the row's offset at its worker; the others are the worker's number plus 1


def root_of(worker: int, offset: int) -> int:
    """Return the root of a source's row."""
    return (worker + 1) << OFFSET_BITS | offset


def row_of(root: int) -> tuple[int, int]:
    """Return the worker and the offset of a root."""
    return (root >> OFFSET_BITS) - 1, root & ((1 << OFFSET_BITS) - 1)


class SparkTuple(LocalTuple):
    """A tuple with ``root``, the spout tuples that fail if it fails.

    There is no xor of edges as in an acker: a stage has read all of its input when it ends, so the tuples that were
    neither acked nor failed are known one by one.
    """

    __slots__ = ()

    def __init__(self, values: list[Any], stream: str, origin: Origin, root: Any) -> None:
        # LocalTuple's own is not called: there is no edge, and nothing is called more often than this.
        self.values = values
        self.stream = stream
        self.origin = origin
        self.root = root
        self.unfinished = True

    def __reduce__(self) -> Any:
        """Pickle the values without the root: a tuple that a bolt keeps was acked or failed when its round ended."""
        origin = self.origin
        return _kept, (self.values, self.stream, origin.component, origin.task, tuple(origin.index), self.unfinished)


def _kept(values: list[Any], stream: str, component: str, task: int, fields: tuple[str, ...], open: bool) -> SparkTuple:
    tup = SparkTuple(values, stream, Origin(component, stream, task, fields), 0)
    tup.unfinished = open
    return tup


def joined(anchors: Iterable[Any]) -> Roots:
    """Return the roots of a tuple that is anchored to all of these."""
    roots: set[int] = set()
    for anchor in anchors:
        root = anchor.root
        if type(root) is int:
            roots.add(root)
        else:
            roots.update(root)
    roots.discard(0)
    if len(roots) > 1:
        return tuple(sorted(roots))
    return roots.pop() if roots else 0
