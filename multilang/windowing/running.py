"""Sliding windows' accumulators, each from two merges or two changes, however many slices a window has."""

from __future__ import annotations

from multilang.windowing.panes import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Running:
    """The accumulators of one key's slices, merged for its windows.

    Time is cut into blocks as long as a window, so that a window is the end of a block and the beginning of the next
    one. The ends of a block are merged backwards once it is over, and the beginning of the next one grows with each
    slice: a slice is merged three times at most, and nothing is ever taken out of an accumulator (the algorithm of van
    Herk, and of Gil and Werman). The order of merges depends on the window's slices alone, so that a restart does not
    change the last digit of a sum.

    Args:
        merge: Merges two accumulators into a new one.
        length: The length of a window, in milliseconds.

    Attributes:
        newest: The end of the last slice so far.
    """

    __slots__ = (
        "_accumulator",
        "_before",
        "_block",
        "_count",
        "_length",
        "_merge",
        "_slices",
        "_total",
        "_totals",
        "newest",
    )

    def __init__(self, merge: Callable[[Any, Any], Any], length: int) -> None:
        self._merge = merge
        self._length = length
        self.newest = -(2**63)
        self._block = -(2**63)  # the number of the block of the last slice
        self._before: list[tuple[int, Any, int]] = []  # ends of the block before it, the longest one last
        self._slices: list[tuple[int, Pane]] = []  # those of the block so far
        self._accumulator: Any = None  # all of them
        self._count = 0
        self._total = Pane(None)
        self._totals = (self._total,)

    def add(self, slot: int, pane: Pane) -> None:
        """Add the next slice, which no tuple comes into any more."""
        block = (slot - 1) // self._length
        if block != self._block:
            self._turn(block)
        self._accumulator = self._merge(self._accumulator, pane.accumulator) if self._slices else pane.accumulator
        self._count += pane.count
        self._slices.append((slot, pane))
        self.newest = slot

    def drop(self, pane: Pane) -> None:
        """Note that a slice is in no later window."""

    def total(self, end: int) -> tuple[Pane]:
        """Return a pane with all of the window that ends at ``end``; it may be used until the next call."""
        low = end - self._length
        block = (end - 1) // self._length
        if block != self._block:
            self._turn(block)
        before, total = self._before, self._total
        while before and before[-1][0] <= low:
            before.pop()
        if not before:
            total.accumulator, total.count = self._accumulator, self._count
        else:
            _, accumulator, count = before[-1]
            total.accumulator = self._merge(accumulator, self._accumulator) if self._slices else accumulator
            total.count = count + self._count
        return self._totals

    def _turn(self, block: int) -> None:
        """Begin a new block."""
        before: list[tuple[int, Any, int]] = []
        if block == self._block + 1:
            accumulator, count = None, 0
            for slot, pane in reversed(self._slices):
                accumulator = self._merge(pane.accumulator, accumulator) if before else pane.accumulator
                count += pane.count
                before.append((slot, accumulator, count))
        self._block = block
        self._before = before
        self._slices = []
        self._accumulator = None
        self._count = 0


class Tally:
    """The number of tuples in one key's slices, of its windows: a slice is added once, and taken out once.

    Whole numbers allow what would change the last digits of others.

    Attributes:
        newest: The end of the last slice so far.
    """

    __slots__ = ("_total", "_totals", "newest")

    def __init__(self) -> None:
        self.newest = -(2**63)
        self._total = Pane(0)
        self._totals = (self._total,)

    def add(self, slot: int, pane: Pane) -> None:
        """Add the next slice, which no tuple comes into any more."""
        self._total.count += pane.count
        self.newest = slot

    def drop(self, pane: Pane) -> None:
        """Take out a slice, which is in no later window."""
        self._total.count -= pane.count

    def total(self, _end: int) -> tuple[Pane]:
        """Return a pane with all of the window; it may be used until the next call."""
        total = self._total
        total.accumulator = total.count
        return self._totals
