"""The work of user code, as the watchdog thread sees it."""

from __future__ import annotations

from time import monotonic

from multilang.protocol.messages import Ack, Activate, Deactivate, Fail, Next, TaskIds, Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.component.timers import Scope

_METHODS = {
    Next: "next_tuple",
    Ack: "ack",
    Fail: "fail",
    Activate: "activate",
    Deactivate: "deactivate",
    TaskIds: "on_task_ids",
}


class Part:
    """A duty of the watchdog thread.

    Attributes:
        due: The instant of monotonic seconds at which it has something to do even if user code rests.
    """

    due = float("inf")

    def look(self, now: float) -> None:
        """Do what is due, in the watchdog's thread; called every 50 ms while user code runs."""

    def has_work(self) -> bool:
        """Return whether something may become due while user code rests."""
        return False

    def end(self) -> None:
        """Do what is left to do, in the main thread, at the end of the task."""


class Work(Part):
    """The work of user code, which the main thread sets; the watchdog thread measures how long it takes.

    Attributes:
        doing: The main thread's work outside of a tuple's processing; None if it waits.
        waiting: Whether user code waits for task ids, a time that does not count.
        scope: The scope of the task's collector, whose current tuple takes precedence over ``doing``.
        seen: The work at the last look.
        since: The instant of the first look at which it was the same.
        idle_since: The instant of the last look at which there was none.
        parked: Whether the watchdog sleeps until it is resumed, since there is nothing to do.

    Args:
        wake: Resumes the watchdog.
    """

    def __init__(self, wake: Callable[[], None] | None = None) -> None:
        self.parked = False
        self._wake = wake
        self.doing: object | None = None
        self.waiting = False
        self.scope: Scope | None = None
        self.seen: object | None = None
        self.since = self.idle_since = monotonic()

    def now(self) -> object | None:
        """Return what user code works on; None if it rests."""
        current = None if self.scope is None else self.scope.current
        return self.doing if current is None else current

    def method(self, work: object) -> str:
        """Return the name of the method that works on this."""
        if isinstance(work, Tuple):
            return "process_tick" if work.is_tick else "process"
        if isinstance(work, list):  # of Wire.run_timers
            return f"timer {work[0].name}"
        return work if isinstance(work, str) else _METHODS.get(type(work), "process")

    def begins(self) -> None:
        """Resume the watchdog if it sleeps, since user code begins after a pause."""
        if self.parked and self._wake is not None:
            self._wake()

    def look(self, now: float) -> None:
        busy = self.now()
        if busy is not self.seen or self.waiting:
            self.seen, self.since = busy, now
        if busy is None:
            self.idle_since = now
