"""Tuples inside a Spark task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.runtime.tuples import LocalTuple, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

Roots: TypeAlias = "int | tuple[int, ...]"
"""The spout tuples behind a tuple: one, several, or none (0)."""


class Failed(set[int]):
    """The roots of what bolts failed; ``timed_out``: of what they had neither acked nor failed at the end, as if it timed out."""

    __slots__ = ("timed_out",)

    def __init__(self) -> None:
        self.timed_out: set[int] = set()


OFFSET_BITS = 40  # of a root: the row's place in what its worker reads; the rest is the worker's number from 1 on


def root_of(worker: int, offset: int) -> int:
    """The root of a source's row."""
    return (worker + 1) << OFFSET_BITS | offset


def row_of(root: int) -> tuple[int, int]:
    """The worker and the offset of a root."""
    return (root >> OFFSET_BITS) - 1, root & ((1 << OFFSET_BITS) - 1)


class SparkTuple(LocalTuple):
    """A tuple with ``root``: what fails when it does. There are no edges to xor: a stage has seen all of its input when
    it ends, so what was neither acked nor failed by then is known, one by one.
    """

    __slots__ = ()

    def __init__(self, values: list[Any], stream: str, origin: Origin, root: Any) -> None:
        # Not LocalTuple's own: there is no edge, and this is the most frequent call of all.
        self.values = values
        self.stream = stream
        self.origin = origin
        self.root = root
        self.unfinished = True

    def __reduce__(self) -> Any:
        """A bolt that keeps it keeps the values; what became of it was settled when its round ended."""
        origin = self.origin
        return _kept, (self.values, self.stream, origin.component, origin.task, tuple(origin.index), self.unfinished)


def _kept(values: list[Any], stream: str, component: str, task: int, fields: tuple[str, ...], open: bool) -> SparkTuple:
    tup = SparkTuple(values, stream, Origin(component, stream, task, fields), 0)
    tup.unfinished = open
    return tup


def joined(anchors: Iterable[Any]) -> Roots:
    """The roots of what is anchored to all of these."""
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
