"""The work of user code, of which the main thread tells the watchdog thread beside it."""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.component.timers import Scope


class Part:
    """Something that the watchdog thread looks after."""

    def look(self, now: float) -> None:
        """Do what is due, in the watchdog's thread; called every 50 ms while user code runs."""

    def has_work(self) -> bool:
        """Return whether something may become due while user code rests."""
        return False

    def end(self) -> None:
        """Do what is left to do, in the main thread, at the end of the task."""


class Work(Part):
    """The thing that user code works on. The main thread says it; the watchdog's thread looks how long it takes.

    Attributes:
        doing: What the main thread is at, outside of a tuple's processing; None if it waits.
        waiting: Whether user code waits for task ids, in which time it is not to blame.
        scope: The scope of the task's collector, whose current tuple comes before ``doing``.
        seen: What it was at the last look.
        since: The instant from which on it was that.
        idle_since: The instant of the last look at which there was nothing.
        parked: Whether the watchdog sleeps until it is woken, since there is nothing to do.

    Args:
        wake: Wakes the watchdog.
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

    def begins(self) -> None:
        """Wake the watchdog if it sleeps, since user code begins after a pause."""
        if self.parked and self._wake is not None:
            self._wake()

    def look(self, now: float) -> None:
        busy = self.now()
        if busy is not self.seen or self.waiting:
            self.seen, self.since = busy, now
        if busy is None:
            self.idle_since = now
