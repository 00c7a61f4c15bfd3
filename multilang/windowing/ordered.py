"""Event time for windows by count: tuples wait until no earlier one is expected, and are added in the order of their times."""

from __future__ import annotations

from heapq import heappop, heappush

from multilang.component.errors import FailedException
from multilang.windowing.panes import Waiting, Windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.protocol.messages import Tuple
    from multilang.windowing.panes import Holder, Key, Pane


class Ordered(Windows):
    """Windows that get tuples in the order of their timestamps, and of their arrival if these are equal.

    Args:
        windows: The windows that need the order.
    """

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows.keeper)
        self.words = windows.words
        self.windows = windows
        self.waiting: list[tuple[int, int, Waiting]] = []
        self.serial = 0

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        self.serial += 1
        self.take(Waiting(key, self.serial, ts, tup))

    def take(self, waiting: Waiting) -> None:
        """Queue a tuple."""
        self.serial = max(self.serial, waiting.slot)
        heappush(self.waiting, (waiting.ts, waiting.slot, waiting))
        self.keeper.waits(waiting)

    def advance(self, watermark: int) -> None:
        heap, windows = self.waiting, self.windows
        while heap and heap[0][0] < watermark:
            ts, _, waiting = heappop(heap)
            windows.advance(ts)
            self.keeper.released(waiting)
            try:
                windows.add(waiting.key, ts, waiting.tup)
            except FailedException as error:  # from its aggregate: what process_window raises is no such thing
                self.keeper.refused(waiting.tup, error)
            else:
                self.keeper.added()
        windows.advance(watermark)
        self.watermark = watermark

    def next_due(self) -> int | None:
        due = self.windows.next_due()
        if not self.waiting:
            return due
        return self.waiting[0][0] if due is None else min(due, self.waiting[0][0])

    def fire_early(self, key: Key, slot: int, pane: Pane) -> None:
        self.windows.fire_early(key, slot, pane)

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        self.windows.load(key, slot, pane)

    def resume(self, watermark: int) -> None:
        super().resume(watermark)
        self.windows.resume(watermark)

    def holders(self) -> Iterator[Holder]:
        yield from self.windows.holders()
        for _, _, waiting in self.waiting:
            yield waiting

    def counts(self) -> dict[Key, int]:
        return self.windows.counts()

    def follow_counts(self, counted: dict[Key, None]) -> None:
        self.windows.follow_counts(counted)

    def load_count(self, key: Key, count: int) -> None:
        self.windows.load_count(key, count)
