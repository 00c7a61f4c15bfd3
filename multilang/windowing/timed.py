"""Windows by duration: each tuple goes into the slice of time that it belongs to, and windows consist of slices."""

from __future__ import annotations

from math import gcd

from multilang.windowing.panes import EARLY, LATE, ON_TIME, Agenda, Pane, Windows
from multilang.windowing.running import Running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple
    from multilang.windowing.panes import Keeper, Key


class TimeWindows(Windows):
    """Windows ``(end - length, end]``, in which each ``end`` is a multiple of ``slide``.

    A slice is as long as the greatest common divisor of length and slide, so that no window cuts one, and a tuple is
    added once however many windows it is in.

    Args:
        keeper: The bolt.
        length: The length of a window, in milliseconds.
        slide: The distance of their ends, in milliseconds.
        lateness: The milliseconds for which evaluated windows are kept.
        merge: Merges the accumulators of slices; None: the keeper does that for each window.

    Attributes:
        step: The length of a slice.
        lines: The panes of each key, by the ends of their slices.
    """

    words = "windows by duration"

    def __init__(
        self,
        keeper: Keeper,
        length: int,
        slide: int,
        lateness: int = 0,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(keeper, lateness)
        self._put = keeper.put
        self._length = length
        self._slide = slide
        self.step = gcd(length, slide)
        self.lines: dict[Key, dict[int, Pane]] = {}
        self._merge = None if lateness or length <= slide else merge
        self._running: dict[Key, Running] = {}
        self._due = Agenda()
        self._expiring = Agenda()  # with lateness: the last ends of slices

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        step = self.step
        slot = -(-ts // step) * step
        pane = self.find(key, slot)
        if pane is None:
            self.keeper.unassigned(tup)
            return
        self._put(key, slot, pane, tup)
        if ts < self.watermark:
            self._fire_late(key, slot, pane)

    def advance(self, watermark: int) -> None:
        while (due := self._due.take(watermark)) is not None:
            end, keys = due
            self.watermark = end + 1
            for key in keys:
                self._fire(key, end)
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
        if self.lines.get(key, {}).get(slot) is pane and slot >= self.watermark:
            self._evaluate(key, slot, [pane], [pane], EARLY)

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        self.lines.setdefault(key, {})[slot] = pane
        self._register(key, slot)

    def find(self, key: Key, slot: int) -> Pane | None:
        """Return the pane of a slice, which is opened if there is none; None if no window has the slice."""
        line = self.lines.get(key)
        pane = None if line is None else line.get(slot)
        return self.opened(key, slot) if pane is None else pane

    def opened(self, key: Key, slot: int) -> Pane | None:
        """Return a new pane for a slice of time; None if no window has it, since there are gaps between them."""
        if slot <= -(-slot // self._slide) * self._slide - self._length:
            return None  # between two windows
        pane = self.keeper.open()
        self.lines.setdefault(key, {})[slot] = pane
        self._register(key, slot)
        return pane

    def _register(self, key: Key, slot: int) -> None:
        slide = self._slide
        end = -(-max(slot, self.watermark) // slide) * slide
        last = self._last(slot)
        if end <= last:
            self._due.add(end, key)
        if self.lateness:
            self._expiring.add(last, key)

    def _last(self, slot: int) -> int:
        """Return the end of the last window that a slice is in."""
        return (slot + self._length - 1) // self._slide * self._slide

    def _fire(self, key: Key, end: int) -> None:
        line = self.lines[key]
        slide = self._slide
        if self._length == slide and not self.lateness:
            pane = line.pop(end)
            if not line:
                del self.lines[key]
            self._evaluate(key, end, [pane], [pane], ON_TIME)
            self.keeper.gone(key, end, pane)
            return
        if self._merge is not None:
            self._fire_running(key, line, end, self._merge)
            return
        slots = self._slots(line, end)
        self._evaluate(
            key, end, [line[slot] for slot in slots], [line[slot] for slot in slots if slot > end - slide], ON_TIME
        )
        if slots and self._last(slots[-1]) > end:
            self._due.add(end + slide, key)
        if not self.lateness:
            for slot in slots:
                if self._last(slot) > end:
                    break
                self._drop(key, line, slot)

    def _fire_running(self, key: Key, line: dict[int, Pane], end: int, merge: Callable[[Any, Any], Any]) -> None:
        """Evaluate a window of which all but the last slices are merged already."""
        slide, step, low, keeper = self._slide, self.step, end - self._length, self.keeper
        running = self._running.get(key)
        if running is None:  # the first window, or the first one after a restart
            running = self._running[key] = Running(merge, self._length)
            for slot in sorted(line):
                if low < slot <= end - slide:
                    running.add(slot, line[slot])
        new = []
        for slot in (end,) if step == slide else range(end - slide + step, end + 1, step):
            pane = line.get(slot)
            if pane is not None:
                running.add(slot, pane)
                new.append(pane)
        panes = [line[slot] for slot in self._slots(line, end)] if keeper.needs_panes else ()
        keeper.fire(key, (low, end), panes, new, ON_TIME, 0, end, running)
        for slot in (low + slide,) if step == slide else range(low + step, low + slide + 1, step):
            pane = line.pop(slot, None)
            if pane is not None:
                keeper.gone(key, slot, pane)
        if running.newest > low + slide:
            self._due.add(end + slide, key)
        elif not line:
            del self.lines[key], self._running[key]

    def _fire_late(self, key: Key, slot: int, pane: Pane) -> None:
        line = self.lines[key]
        slide = self._slide
        for end in range(-(-slot // slide) * slide, min(self._last(slot) + 1, self.watermark), slide):
            panes = [line[each] for each in self._slots(line, end)]
            self._evaluate(key, end, panes, [pane] if end - slide < slot else [], LATE)

    def _slots(self, line: dict[int, Pane], end: int) -> list[int]:
        first = end - self._length + self.step
        if self._length // self.step <= len(line):
            return [slot for slot in range(first, end + 1, self.step) if slot in line]
        return sorted(slot for slot in line if first <= slot <= end)

    def _evaluate(self, key: Key, end: int, panes: Sequence[Pane], new: Sequence[Pane], timing: str) -> None:
        if self.lateness:
            number = max(pane.numbers.get(end, 0) if pane.numbers else 0 for pane in panes)
            first = panes[0]  # which lives as long as late tuples may come for the window, and is saved with its number
            if first.numbers is None:
                first.numbers = {}
            first.numbers[end] = number + 1
        else:
            number = panes[0].fired if self._length == self._slide else 0
        if self._length == self._slide:
            panes[0].fired += 1
        self.keeper.fire(key, (end - self._length, end), panes, new, timing, number, end)

    def _expire(self, key: Key, last: int) -> None:
        """Forget what is in no window after the one that ends at ``last``."""
        line = self.lines.get(key, {})
        for slot in sorted(line):
            if self._last(slot) > last:
                break
            self._drop(key, line, slot)

    def _drop(self, key: Key, line: dict[int, Pane], slot: int) -> None:
        pane = line.pop(slot)
        if not line:
            del self.lines[key]
        self.keeper.gone(key, slot, pane)
