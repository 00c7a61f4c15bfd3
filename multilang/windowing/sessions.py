"""Sessions: windows that grow with their tuples, and merge when a tuple falls between two of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from operator import attrgetter

from multilang.windowing.panes import EARLY, LATE, ON_TIME, RETRACTED, Pane, Windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.protocol.messages import Tuple
    from multilang.windowing.panes import Holder, Keeper, Key


class _Session:
    """A session; ``slot`` is its place in the state, and ``is_over`` is true when another has taken its tuples."""

    __slots__ = ("is_done", "is_over", "pane", "slot")

    def __init__(self, slot: int, pane: Pane) -> None:
        self.slot = slot
        self.pane = pane
        self.is_done = False  # evaluated at its end
        self.is_over = False


_first = attrgetter("pane.first")
_slot = attrgetter("slot")


class SessionWindows(Windows):
    """Sessions of each key: tuples that are less than ``gap`` milliseconds apart belong to one session.

    A session ends ``gap`` after its last tuple. Its start is the time of its first tuple.

    Args:
        keeper: The bolt.
        gap: The gap, in milliseconds.
        lateness: The milliseconds for which evaluated sessions are retained.
    """

    words = "sessions"

    def __init__(self, keeper: Keeper, gap: int, lateness: int = 0) -> None:
        super().__init__(keeper, lateness)
        self._gap = gap
        self._lines: dict[Key, list[_Session]] = {}
        self._due: list[tuple[int, int, Key, _Session]] = []
        self._serial = 0
        self._pushed = 0

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        gap = self._gap
        overlapping = self._overlapping(key, ts)
        # The tuple is added first: one that fails neither makes a session longer nor joins two.
        if not overlapping:
            session = self._begin(key, ts, tup)
            pane = session.pane
        else:
            session = overlapping[0]
            pane = session.pane
            if len(overlapping) > 1:
                self.keeper.check_merge(key, [each.pane for each in overlapping], tup)
            self.keeper.put(key, session.slot, pane, tup)
            pane.first = min(pane.first, ts)
            pane.last = max(pane.last, ts)
            for each in overlapping[1:]:
                self._absorb(key, session, each)
        if session.is_done or pane.last + gap <= self.watermark:
            if pane.last + gap <= self.watermark:
                session.is_done = True
                self._evaluate(key, session, LATE)
            else:
                session.is_done = False  # it continues
                self._schedule(key, session)

    def advance(self, watermark: int) -> None:
        due, gap = self._due, self._gap
        while due and due[0][0] <= watermark:
            at, _, key, session = heappop(due)
            if session.is_over:
                continue
            end = session.pane.last + gap
            if not session.is_done:
                if end > at:
                    self._schedule(key, session)
                    continue
                self.watermark = max(self.watermark, end)
                session.is_done = True
                self._evaluate(key, session, ON_TIME)
                if self.lateness:
                    self._push(end + self.lateness, key, session)
                    continue
            elif end + self.lateness > at:
                self._push(end + self.lateness, key, session)
                continue
            self._remove(key, session)
            self.keeper.drop(key, session.slot, session.pane)
        self.watermark = max(self.watermark, watermark)

    def next_due(self) -> int | None:
        return self._due[0][0] - 1 if self._due else None

    def fire_early(self, key: Key, slot: int, pane: Pane) -> None:
        for session in self._lines.get(key, ()):
            if session.pane is pane and not session.is_done:
                self._evaluate(key, session, EARLY)

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        self._serial = max(self._serial, slot)
        if pane.fired and pane.numbers is None:  # stored by a version that had one number for all starts of a session
            pane.numbers = {pane.first: pane.fired}
        if pane.numbers and len(pane.numbers) > 1:  # stored by a version in which the name was the start
            pane.numbers = {pane.first: pane.numbers.get(pane.first, 0)}
        session = _Session(slot, pane)
        insort(self._lines.setdefault(key, []), session, key=_first)
        end = pane.last + self._gap
        if end <= self.watermark:
            session.is_done = True
            end += self.lateness
        self._push(end, key, session)

    def holders(self) -> Iterator[Holder]:
        for line in self._lines.values():
            for session in line:
                yield session.pane

    def _begin(self, key: Key, ts: int, tup: Tuple) -> _Session:
        """Return a new session that has a tuple."""
        self._serial += 1
        session = _Session(self._serial, self.keeper.begin(key, self._serial, tup))
        session.pane.first = session.pane.last = ts
        insort(self._lines.setdefault(key, []), session, key=_first)
        self._schedule(key, session)
        return session

    def _overlapping(self, key: Key, ts: int) -> list[_Session]:
        """Return the sessions that a tuple belongs to, in the order in which they were opened."""
        line, gap = self._lines.get(key), self._gap
        if line is None:
            return []
        # They are in the order of their times, and at least the gap apart.
        begin = end = bisect_left(line, ts + gap, key=_first)
        while begin and ts < line[begin - 1].pane.last + gap:
            begin -= 1
        return sorted(line[begin:end], key=_slot)

    def _remove(self, key: Key, session: _Session) -> None:
        line = self._lines[key]
        del line[bisect_left(line, session.pane.first, key=_first)]
        session.is_over = True
        if not line:
            del self._lines[key]

    def _schedule(self, key: Key, session: _Session) -> None:
        self._push(session.pane.last + self._gap, key, session)

    def _push(self, at: int, key: Key, session: _Session) -> None:
        self._pushed += 1
        heappush(self._due, (at, self._pushed, key, session))

    def _absorb(self, key: Key, session: _Session, other: _Session) -> None:
        one, two = session.pane, other.pane
        if one.numbers and two.numbers:
            self._retract(key, other)
        else:
            one.numbers = one.numbers or two.numbers
        self._remove(key, other)
        one.first = min(one.first, two.first)
        one.last = max(one.last, two.last)
        self.keeper.merge(key, one, two)
        two.held = []
        two.ids = None
        self.keeper.drop(key, other.slot, two, seen=False)

    def _retract(self, key: Key, session: _Session) -> None:
        """Evaluate a session under its name for the last time, since another one that was evaluated takes its tuples."""
        self.keeper.show_again(key, session.pane)
        self._evaluate(key, session, RETRACTED)

    def _evaluate(self, key: Key, session: _Session, timing: str) -> None:
        pane = session.pane
        # Its first evaluation gives it its name, which does not change when an earlier tuple arrives.
        name, number = next(iter(pane.numbers.items())) if pane.numbers else (pane.first, 0)
        if pane.count and (timing != ON_TIME or self.lateness):  # otherwise it is skipped, or dropped at once
            pane.numbers = {name: number + 1}
        self.keeper.fire(key, (pane.first, pane.last + self._gap), [pane], [pane], timing, number, name)
