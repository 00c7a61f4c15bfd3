"""The clock that a component reads as ``self.clock``."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VIRTUAL_EPOCH = 1_000_000_000.0
"""The time of day at which a virtual clock begins: 2001-09-09 01:46:40 UTC, in seconds since the epoch."""


class TaskClock:
    """A task's clock, in seconds: the machine's, or a virtual one in a simulated run and in tests.

    Attributes:
        monotonic: Returns the seconds since some fixed instant; they never go back. Durations are measured with it, and
            timers are due by it. Calling the clock itself (``self.clock()``) does the same.
        time: Returns the seconds since the epoch, for a time that is shown, sent or stored. It may go back when the
            machine's time is set.
    """

    __slots__ = ("monotonic", "time")

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, time_of_day: Callable[[], float] = time.time
    ) -> None:
        self.monotonic = monotonic
        self.time = time_of_day

    def __call__(self) -> float:
        """Return what ``monotonic`` returns."""
        return self.monotonic()


SYSTEM_CLOCK = TaskClock()
"""The machine's clock."""


def virtual_clock(now: Callable[[], float]) -> TaskClock:
    """Return the clock of tasks in a run whose time is ``now``, a function that returns virtual seconds."""
    return TaskClock(now, lambda: VIRTUAL_EPOCH + now())


class MovableClock(TaskClock):
    """The machine's clock, which can be moved on, so that what is due later becomes due now."""

    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        self._ahead = 0.0
        super().__init__(self._monotonic, self._time)

    def move_to(self, instant: float) -> None:
        """Move on to ``instant``, of ``monotonic``; an instant in the past leaves the clock where it is."""
        self._ahead = max(self._ahead, instant - time.monotonic())

    def _monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def _time(self) -> float:
        return time.time() + self._ahead
