"""Windows by count, or by count and duration: they take the tuples of a key one after the other."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from multilang.windowing.panes import EARLY, ON_TIME, Agenda, Pane, Windows
from multilang.windowing.running import Line, Merging, Slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.protocol.messages import Tuple
    from multilang.windowing.panes import DroppedPane, Holder, Keeper, Key


class CountWindows(Windows):
    """Windows of ``length`` tuples, one after every ``slide`` tuples of a key.

    Args:
        keeper: The bolt.
        length: The number of tuples in a window; the first ones may have fewer.
        slide: The number of tuples from the end of one to the end of the next.
        merge: Merges the accumulators of slices; None: the keeper does that for each window.
        counts: Whether an accumulator is the number of tuples.
    """

    words = "windows by count"

    in_order = True

    def __init__(
        self,
        keeper: Keeper,
        length: int,
        slide: int,
        merge: Callable[[Any, Any], Any] | None = None,
        counts: bool = False,
    ) -> None:
        super().__init__(keeper)
        self._slide = slide
        self._slices = Slices(length, slide)
        self._merging = None if length <= slide or merge is None else Merging(self._slices, keeper, merge, counts)
        self._counts: dict[Key, int] = {}
        self._lines: dict[Key, Line] = {}

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        keeper, slices = self.keeper, self._slices
        count = self._counts.get(key, 0) + 1
        slot = slices.slice_of(count)
        line = self._lines.get(key)
        pane = None if line is None else line.get(slot)
        if pane is not None:
            keeper.put(key, slot, pane, tup)
        elif slices.is_in_a_window(slot):
            pane = keeper.begin(key, slot, tup)
            self._put_into(key, slot, pane)
        if pane is not None:
            pane.last = ts
        self._counts[key] = count  # not earlier: a failed tuple is in no window
        if self.counted is not None:
            self.counted[key] = None
        if pane is None:
            keeper.unassigned(tup)
            return
        if count % self._slide == 0:
            self._fire(key, count, ts)

    def _put_into(self, key: Key, slot: int, pane: Pane) -> None:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line()
        line[slot] = pane

    def advance(self, watermark: int) -> None:
        self.watermark = watermark

    def next_due(self) -> int | None:
        return None

    def fire_early(self, key: Key, slot: int, pane: Pane) -> None:
        line = self._lines.get(key)
        if line is not None and line.get(slot) is pane:
            self.keeper.fire(key, (None, pane.last), [pane], [pane], EARLY, pane.fired, slot)
            pane.fired += 1

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        self._put_into(key, slot, pane)

    def holders(self) -> Iterator[Holder]:
        for line in self._lines.values():
            yield from line.values()

    def counts(self) -> dict[Key, int]:
        return self._counts

    def load_count(self, key: Key, count: int) -> None:
        self._counts[key] = count

    def _fire(self, key: Key, count: int, ts: int) -> None:
        """Evaluate the window that ends with a key's tuple number ``count``, of the time ``ts``."""
        lines, slices, keeper = self._lines, self._slices, self.keeper
        bounds = None, ts
        dropped: list[DroppedPane] = []
        if self._merging is not None:
            keeper.fire_all(bounds, ON_TIME, count, self._merging.windows((key,), lines, count, dropped, []))
        else:
            line = lines[key]
            panes = [line[slot] for slot in slices.within(line, count)]
            new = [line[slot] for slot in slices.first(count) if slot in line]
            keeper.fire(key, bounds, panes, new, ON_TIME, panes[0].fired if len(panes) == 1 else 0, count)
            dropped += [(key, slot, line.pop(slot)) for slot in slices.last(count) if slot in line]
            if not line:
                del lines[key]
        keeper.drop_all(dropped)


class Latest(Windows):
    """Windows of the last ``length`` tuples of a key, at every multiple of ``slide`` milliseconds.

    A window is evaluated only if a tuple arrived since the end before: an unchanged one is not evaluated again.

    Args:
        keeper: The bolt.
        length: The number of tuples in a window.
        slide: The distance of their ends, in milliseconds.
    """

    words = "windows of the last tuples at each duration"

    in_order = True

    def __init__(self, keeper: Keeper, length: int, slide: int) -> None:
        super().__init__(keeper)
        self._length = length
        self._slide = slide
        self._lines: dict[Key, deque[tuple[int, Pane]]] = {}
        self._due = Agenda()
        self._serial = 0

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        self._serial += 1
        pane = self.keeper.begin(key, self._serial, tup)
        pane.last = ts
        self._append(key, self._serial, pane)

    def advance(self, watermark: int) -> None:
        while (due := self._due.take(watermark)) is not None:
            end, keys = due
            for key in keys:
                panes = [pane for _, pane in self._lines[key]]
                new = [pane for pane in panes if not pane.fired]
                self.keeper.fire(key, (None, end), panes, new, ON_TIME, 0, end)
                for pane in new:
                    pane.fired = 1
        self.watermark = watermark

    def next_due(self) -> int | None:
        return self._due.next

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        self._serial = max(self._serial, slot)
        self._lines.setdefault(key, deque()).append((slot, pane))
        end = -(-pane.last // self._slide) * self._slide
        if end < self.watermark:
            pane.fired = 1
        else:
            self._due.add(end, key)

    def holders(self) -> Iterator[Holder]:
        for line in self._lines.values():
            for _, pane in line:
                yield pane

    def _append(self, key: Key, slot: int, pane: Pane) -> None:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
        line.append((slot, pane))
        if len(line) > self._length:
            old, dropped = line.popleft()
            self.keeper.drop(key, old, dropped, bool(dropped.fired))
        self._due.add(-(-pane.last // self._slide) * self._slide, key)


class Recent(Windows):
    """Windows of the tuples of the last ``length`` milliseconds of a key, after every ``slide`` of its tuples.

    Args:
        keeper: The bolt.
        length: The length of a window, in milliseconds.
        slide: The number of tuples from one window to the next.
    """

    words = "windows of a duration at each count"

    in_order = True

    def __init__(self, keeper: Keeper, length: int, slide: int) -> None:
        super().__init__(keeper)
        self._length = length
        self._slide = slide
        self._counts: dict[Key, int] = {}
        self._lines: dict[Key, deque[tuple[int, Pane]]] = {}
        self._expiring: list[tuple[int, int, Key]] = []
        self._serial = 0

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        count = self._counts.get(key, 0) + 1
        pane = self.keeper.begin(key, count, tup)
        pane.last = ts
        self._counts[key] = count
        if self.counted is not None:
            self.counted[key] = None
        self._append(key, count, pane)
        if count % self._slide == 0:
            panes = [pane for _, pane in self._lines[key]]
            new = [pane for pane in panes if not pane.fired]
            self.keeper.fire(key, (ts - self._length, ts), panes, new, ON_TIME, 0, count)
            for pane in new:
                pane.fired = 1

    def advance(self, watermark: int) -> None:
        # The next tuples have timestamps from the watermark on, and their windows the times above that less the length.
        self.watermark = watermark
        while self._expiring and self._expiring[0][0] <= watermark:
            _, _, key = heappop(self._expiring)
            line = self._lines[key]
            slot, pane = line.popleft()
            if not line:
                del self._lines[key]
            self.keeper.drop(key, slot, pane, bool(pane.fired))

    def next_due(self) -> int | None:
        return self._expiring[0][0] - 1 if self._expiring else None

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        pane.fired = int(slot <= self._counts.get(key, 0) // self._slide * self._slide)
        self._append(key, slot, pane)

    def holders(self) -> Iterator[Holder]:
        for line in self._lines.values():
            for _, pane in line:
                yield pane

    def _append(self, key: Key, slot: int, pane: Pane) -> None:
        self._serial += 1
        self._lines.setdefault(key, deque()).append((slot, pane))
        heappush(self._expiring, (pane.last + self._length, self._serial, key))

    def counts(self) -> dict[Key, int]:
        return self._counts

    def load_count(self, key: Key, count: int) -> None:
        self._counts[key] = count
