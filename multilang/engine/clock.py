"""The clock of a run: the system's, or a virtual one that a simulation advances."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock(Protocol):
    """A clock in seconds that never goes back, and that can wait."""

    def now(self) -> float:
        """Return the seconds since some fixed instant."""

    def sleep(self, secs: float) -> None:
        """Wait for ``secs`` seconds."""


class SystemClock:
    """The machine's monotonic clock."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class VirtualClock:
    """A clock that starts at 0 and moves only by ``sleep`` and ``move_to``."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, secs: float) -> None:
        self._now += secs

    def move_to(self, instant: float) -> None:
        """Move on to ``instant``; an instant in the past leaves the clock where it is."""
        self._now = max(self._now, instant)


class Timers:
    """Calls that are due at an instant or at regular intervals; an event loop runs them, no thread does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[], object], float]] = []
        self._serial = 0
        self.next_due = float("inf")

    def after(self, secs: float, call: Callable[[], object]) -> None:
        """Call once, ``secs`` from now."""
        self._push(self._clock.now() + secs, call, 0.0)

    def at(self, due: float, call: Callable[[], object]) -> None:
        """Call once, at the instant ``due``."""
        self._push(due, call, 0.0)

    def every(self, secs: float, call: Callable[[], object]) -> None:
        """Call every ``secs`` seconds, the first time ``secs`` from now."""
        self._push(self._clock.now() + secs, call, secs)

    def run_due(self, now: float) -> None:
        """Run the calls that are due. A late one is called once, however many periods it missed."""
        while self._heap and self._heap[0][0] <= now:
            due, _, call, period = heapq.heappop(self._heap)
            if period:
                self._push(due + period * ((now - due) // period + 1), call, period)
            call()
        self.next_due = self._heap[0][0] if self._heap else float("inf")

    def _push(self, due: float, call: Callable[[], object], period: float) -> None:
        self._serial += 1  # calls that are due at the same instant are made in the order in which they were added
        heapq.heappush(self._heap, (due, self._serial, call, period))
        self.next_due = self._heap[0][0]
