"""Windows by duration: each tuple is added to its slice of time, and windows consist of slices."""

from __future__ import annotations

from multilang.windowing.panes import EARLY, LATE, ON_TIME, Agenda, Pane, Windows
from multilang.windowing.running import Line, Merging, Slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple
    from multilang.windowing.panes import DroppedPane, Due, Holder, Keeper, Key


class TimeWindows(Windows):
    """Windows ``(end - length, end]``, in which each ``end`` is a multiple of ``slide``.

    They consist of ``Slices``.

    Args:
        keeper: The bolt.
        length: The length of a window, in milliseconds.
        slide: The distance of their ends, in milliseconds.
        lateness: The milliseconds for which evaluated windows are retained.
        merge: Merges the accumulators of slices; None: the keeper does that for each window.
        counts: Whether an accumulator is the number of tuples.
    """

    words = "windows by duration"

    def __init__(
        self,
        keeper: Keeper,
        length: int,
        slide: int,
        lateness: int = 0,
        merge: Callable[[Any, Any], Any] | None = None,
        counts: bool = False,
    ) -> None:
        super().__init__(keeper, lateness)
        self._put = keeper.put
        self._length = length
        self._slide = slide
        self._slices = Slices(length, slide)
        self._lines: dict[Key, Line] = {}
        self._merging = (
            None if lateness or length <= slide or merge is None else Merging(self._slices, keeper, merge, counts)
        )
        self._due = Agenda()
        self._expiring = Agenda()  # with lateness: the last ends of slices

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        slot = self._slices.slice_of(ts)
        line = self._lines.get(key)
        pane = None if line is None else line.get(slot)
        if pane is not None:
            self._put(key, slot, pane, tup)
        elif self._slices.is_in_a_window(slot):
            pane = self.keeper.begin(key, slot, tup)
            self._put_into(key, slot, pane)
        else:
            self.keeper.unassigned(tup)
            return
        if ts < self.watermark:
            self._fire_late(key, slot, pane)

    def advance(self, watermark: int) -> None:
        while (due := self._due.take(watermark)) is not None:
            end, keys = due
            self.watermark = end + 1
            self._fire(keys, end)
        self.watermark = max(self.watermark, watermark)
        while (due := self._expiring.take(watermark - self.lateness)) is not None:
            last, keys = due
            for key in keys:
                self._expire(key, last)

    def next_due(self) -> int | None:
        found, last = self._due.next, self._expiring.next
        if last is not None:
            last += self.lateness
        return last if found is None else found if last is None else min(found, last)

    def fire_early(self, key: Key, slot: int, pane: Pane) -> None:
        line = self._lines.get(key)
        if line is not None and line.get(slot) is pane and slot >= self.watermark:
            self._evaluate(key, slot, [pane], [pane], EARLY)

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        self._put_into(key, slot, pane)

    def holders(self) -> Iterator[Holder]:
        for line in self._lines.values():
            yield from line.values()

    def _put_into(self, key: Key, slot: int, pane: Pane) -> None:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line()
        line[slot] = pane
        slide = self._slide
        end = -(-max(slot, self.watermark) // slide) * slide
        last = self._slices.last_end(slot)
        if end <= last:
            self._due.add(end, key)
        if self.lateness:
            self._expiring.add(last, key)

    def _fire(self, keys: Iterable[Key], end: int) -> None:
        """Evaluate the windows of some keys that end at ``end``, and drop the panes that are in no later one."""
        dropped: list[DroppedPane] = []
        following: list[Key] = []
        if self._length == self._slide and not self.lateness:
            due = self._whole(keys, end, dropped)
        elif self._merging is not None:
            due = self._merging.windows(keys, self._lines, end, dropped, following)
        else:
            due = self._sliced(keys, end, dropped)
        try:
            self.keeper.fire_all((end - self._length, end), ON_TIME, end, due)
        finally:
            if dropped:
                self.keeper.drop_all(dropped)
        if following:
            self._due.at(end + self._slide).update(dict.fromkeys(following))

    def _whole(self, keys: Iterable[Key], end: int, dropped: list[DroppedPane]) -> Iterator[Due]:
        """Yield windows that are one slice each."""
        lines = self._lines
        for key in keys:
            line = lines[key]
            pane = line.pop(end)
            if not line:
                del lines[key]
            number, pane.fired = pane.fired, pane.fired + 1
            panes = (pane,)
            yield key, panes, panes, panes, number
            self._forget(dropped, key, end, pane)

    def _sliced(self, keys: Iterable[Key], end: int, dropped: list[DroppedPane]) -> Iterator[Due]:
        """Yield windows of which the keeper merges the slices."""
        slide = self._slide
        for key in keys:
            line = self._lines[key]
            slots = self._slices.within(line, end)
            panes = [line[slot] for slot in slots]
            yield key, panes, [line[slot] for slot in slots if slot > end - slide], panes, self._next_number(panes, end)
            if slots and self._slices.last_end(slots[-1]) > end:
                self._due.add(end + slide, key)
            if self.lateness:
                continue
            for slot in slots:
                if self._slices.last_end(slot) > end:
                    break
                pane = line.pop(slot)
                if not line:
                    del self._lines[key]
                self._forget(dropped, key, slot, pane)

    def _forget(self, dropped: list[DroppedPane], key: Key, slot: int, pane: Pane) -> None:
        """Drop a pane, together with others."""
        dropped.append((key, slot, pane))
        if len(dropped) >= self.keeper.most_dropped:
            self.keeper.drop_all(dropped)
            dropped.clear()

    def _fire_late(self, key: Key, slot: int, pane: Pane) -> None:
        line = self._lines[key]
        slide = self._slide
        for end in range(-(-slot // slide) * slide, min(self._slices.last_end(slot) + 1, self.watermark), slide):
            panes = [line[each] for each in self._slices.within(line, end)]
            self._evaluate(key, end, panes, [pane] if end - slide < slot else [], LATE)

    def _evaluate(self, key: Key, end: int, panes: Sequence[Pane], new: Sequence[Pane], timing: str) -> None:
        number = self._next_number(panes, end)
        self.keeper.fire(key, (end - self._length, end), panes, new, timing, number, end)

    def _next_number(self, panes: Sequence[Pane], end: int) -> int:
        """Return the number of earlier evaluations of the window, and count this one, unless it has no tuples to evaluate."""
        is_tumbling = self._length == self._slide
        if self.lateness:
            number = max(pane.numbers.get(end, 0) if pane.numbers else 0 for pane in panes)
        else:
            number = panes[0].fired if is_tumbling else 0
        if not any(pane.count for pane in panes):
            return number
        if self.lateness:
            first = panes[
                0
            ]  # which is retained as long as the window may get late tuples, and is saved with its number
            if first.numbers is None:
                first.numbers = {}
            first.numbers[end] = number + 1
        if is_tumbling:
            panes[0].fired += 1
        return number

    def _expire(self, key: Key, last: int) -> None:
        """Drop the panes that are in no window after the one that ends at ``last``."""
        line = self._lines.get(key) or Line()
        for slot in sorted(line):
            if self._slices.last_end(slot) > last:
                break
            self._drop(key, line, slot)

    def _drop(self, key: Key, line: Line, slot: int) -> None:
        pane = line.pop(slot)
        if not line:
            del self._lines[key]
        self.keeper.drop(key, slot, pane)
