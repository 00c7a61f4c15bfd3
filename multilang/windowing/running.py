"""Slices, which windows share, and the accumulators of sliding windows, each from a few merges however many slices it has."""

from __future__ import annotations

from multilang.windowing.panes import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from multilang.windowing.panes import DroppedPane, Due, Keeper, Key


class Line(dict[int, Pane]):
    """The panes of a key, by the ends of their slices.

    Attributes:
        running: The accumulators of those that sliding windows had; None: none yet since the task was started.
    """

    __slots__ = ("running",)

    running: Running | Tally | None

    def __init__(self) -> None:
        self.running = None


class Slices:
    """The slices of windows ``(end - length, end]``, in which each ``end`` is a multiple of ``slide``.

    They are cut where a window begins or ends, and nowhere else: there are one or two of them from one end to the next, whatever
    the lengths. So no window cuts a slice, and a tuple is added once however many windows it is in. A slice is known by its end.

    Args:
        length: The length of a window: a time, or a number of tuples.
        slide: The distance of the ends of windows.
    """

    def __init__(self, length: int, slide: int) -> None:
        self.length = length
        self.slide = slide
        self.rest = length % slide  # windows begin so long before the ends of others; 0: at these

    def slice_of(self, position: int) -> int:
        """Return the slice of a time, or of a tuple's number."""
        end = -(-position // self.slide) * self.slide
        return end - self.rest if position <= end - self.rest else end

    def is_in_a_window(self, slot: int) -> bool:
        """Return whether a slice is in a window, not between two."""
        return slot > -(-slot // self.slide) * self.slide - self.length

    def last_end(self, slot: int) -> int:
        """Return the end of the last window that a slice is in."""
        return (slot + self.length - 1) // self.slide * self.slide

    def first(self, end: int) -> Sequence[int]:
        """Return the slices of the window with this end that are in none before, in order."""
        return (end - self.rest, end) if self.rest else (end,)

    def last(self, end: int) -> Sequence[int]:
        """Return the slices of the window with this end that are in none after it, in order."""
        low = end - self.length
        return (low + self.rest, low + self.slide) if self.rest else (low + self.slide,)

    def within(self, line: Line, end: int) -> list[int]:
        """Return the slices of a line that the window with this end has, in order."""
        low, slide, rest = end - self.length, self.slide, self.rest
        if self.length // slide > len(line):
            return sorted(slot for slot in line if low < slot <= end)
        if not rest:
            return [slot for slot in range(low + slide, end + 1, slide) if slot in line]
        return [
            slot
            for begin in range(low, end, slide)
            for slot in (begin + rest, begin + slide)
            if slot in line and slot <= end
        ]


class Running:
    """The accumulators of one key's slices, merged for its windows.

    Time is cut into blocks as long as a window, so that a window is the end of a block and the beginning of the next
    one. The ends of a block are merged backwards once it is over, and the beginning of the next one grows with each
    slice: a slice is merged three times at most, and nothing is ever taken out of an accumulator (the algorithm of van
    Herk, and of Gil and Werman). The order of merges depends on the window's slices alone, so that a restart does not
    change the last digit of a sum.

    Args:
        merge: Merges two accumulators into a new one.
        length: The length of a window.

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


class Merging:
    """Evaluates windows of which all but the first slices are merged already.

    Args:
        slices: The slices.
        keeper: The bolt.
        merge: Merges two accumulators into a new one.
        counts: Whether an accumulator is the number of tuples.
    """

    def __init__(self, slices: Slices, keeper: Keeper, merge: Callable[[Any, Any], Any], counts: bool) -> None:
        self._slices = slices
        self._keeper = keeper
        self._merge = merge
        self._counts = counts

    def windows(
        self, keys: Iterable[Key], lines: dict[Key, Line], end: int, dropped: list[DroppedPane], following: list[Key]
    ) -> Iterator[Due]:
        """Yield the windows of some keys that have this end, and take what is in no later one out of their lines.

        Args:
            keys: The keys.
            lines: The lines of all keys, from which empty ones are removed.
            end: The end.
            dropped: Gets the panes that are taken out, unless there are so many that the bolt drops them.
            following: Gets the keys of which a slice is in the next window, too.
        """
        slices, keeper = self._slices, self._keeper
        needs_panes, most_dropped = keeper.needs_panes, keeper.most_dropped
        first, last, next_low = slices.first(end), slices.last(end), end + slices.slide - slices.length
        for key in keys:
            line = lines[key]
            running = line.running or self._start(line, end)
            new = []
            for slot in first:
                pane = line.get(slot)
                if pane is not None:
                    running.add(slot, pane)
                    new.append(pane)
            panes: Sequence[Pane] = [line[slot] for slot in slices.within(line, end)] if needs_panes else ()
            yield key, panes, new, running.total(end), 0
            for slot in last:
                pane = line.pop(slot, None)
                if pane is not None:
                    running.drop(pane)
                    dropped.append((key, slot, pane))
            if len(dropped) >= most_dropped:
                keeper.drop_all(dropped)
                dropped.clear()
            if running.newest > next_low:
                following.append(key)
            elif not line:
                del lines[key]

    def _start(self, line: Line, end: int) -> Running | Tally:
        """Begin with the slices of a line that the window before the one with this end had."""
        slices = self._slices
        running = line.running = Tally() if self._counts else Running(self._merge, slices.length)
        for slot in slices.within(line, end):
            if slot <= end - slices.slide:
                running.add(slot, line[slot])
        return running
