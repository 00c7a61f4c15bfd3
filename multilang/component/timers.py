"""The timers that a task's component has set.

A timer's callback runs in the component's own thread, between two calls of its other methods, never during one. An
engine gives each task a ``TaskTimers``, looks at ``next_due`` when it waits, and calls ``run_due``. A task without
timers costs its engine one look at an empty list.

- Timers that are due at the same instant run in the order in which they were set. A timer that a callback sets runs in
  a later turn, even with a delay of 0, so that tuples come in between.
- A repeated timer keeps to its grid: it is due at the instant of its first call plus a whole number of periods. If it
  is late it runs once, however many periods it missed.
- A cancelled timer never runs. Timers end with the task: a restarted task has none.
"""

from __future__ import annotations

from _thread import get_ident
from heapq import heapify, heappop, heappush

from multilang.component.clock import SYSTEM_CLOCK
from multilang.component.errors import ConfigError
from multilang.protocol.errors import LocalProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.component.clock import TaskClock
    from multilang.protocol.messages import Tuple

NEVER = float("inf")
_SHORTEST_SECS = 1e-6
_MIN_CANCELLED = 64  # cancelled timers in the heap, from which on they are removed when they are more than half of it


class Scope:
    """A task's tuple and anchors of the moment, shared by its collector and all filters around it.

    Attributes:
        current: The tuple that user code works on; None between tuples.
        anchors: The anchors of ``emit_anchored``: the tuple, or the batch, in process.
        timers: The task's timers, which its engine sets.
    """

    __slots__ = ("anchors", "current", "timers")

    timers: TaskTimers

    def __init__(self) -> None:
        self.current: Tuple | None = None
        self.anchors: Sequence[Tuple] = ()

    def leave_tuple(self) -> None:
        """Clear the tuple in process, since the call that follows works on none."""
        self.current = None
        self.anchors = ()


class TimerHandle:
    """A timer that was set; ``Component.set_timer`` returns it.

    Attributes:
        due: The instant of its next call, in seconds of ``clock.monotonic()``.
    """

    __slots__ = ("_every", "_owner", "_run", "_timers", "awaited", "callback", "due")

    def __init__(
        self,
        timers: TaskTimers | None = None,
        owner: Any = None,
        run: Callable[[Callable[[], object]], None] | None = None,
        callback: Callable[[], object] | None = None,
        due: float = NEVER,
        every: float | None = None,
        awaited: bool = False,
    ) -> None:
        self._timers = timers
        self._owner = owner
        self._run = run
        self.callback = callback
        self.due = due
        self._every = every
        self.awaited = awaited

    @property
    def pending(self) -> bool:
        """True while its callback is still to be called, for the first time or again."""
        return self._timers is not None

    def cancel(self) -> None:
        """Have its callback not called any more; nothing happens if the timer is over already."""
        timers = self._timers
        if timers is not None:
            timers.cancelled(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimerHandle, ()  # elsewhere, or later, it is a timer that is over

    @property
    def name(self) -> str:
        """The name of what it calls."""
        callback: Any = getattr(self.callback, "func", self.callback)  # of a functools.partial
        name: str = getattr(callback, "__qualname__", type(callback).__name__)
        return name

    def __repr__(self) -> str:
        if self.callback is None or self._timers is None:
            return "<timer, over>"
        every = "" if self._every is None else f", every {self._every:g} s"
        return f"<timer {self.name}{every}>"


class TaskTimers:
    """The timers of one task, the earliest first; the task's engine makes it with the scope of the task's collector.

    Attributes:
        clock: The clock of the task's component.
        heap: The pending timers, and cancelled ones; an empty list means that there is nothing to do.
        next_due: The instant of the next call, infinity if there is none.
        is_idle: Returns whether a tuple came of ticks alone.
        awaited: The number of pending timers for which the end of a run waits: those that are called once and were not
            set by another timer, nor at a tick.
        on_awaited: Called with True when there is the first awaited timer since it was last called with False.
        awaited_reported: The argument of its last call.
    """

    def __init__(
        self,
        scope: Scope,
        clock: TaskClock = SYSTEM_CLOCK,
        wake: Callable[[float], object] | None = None,
        is_idle: Callable[[Any], bool] | None = None,
        thread: int | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        """Connect the timers with ``scope``.

        Args:
            scope: The scope of the task's collectors.
            clock: The clock by which timers are due.
            wake: Is called with ``next_due`` when that becomes earlier than at its last call.
            is_idle: Returns whether a tuple came of ticks alone.
            thread: The only thread that may set timers; None if the engine has no other.
            now: Returns the instant from which delays are counted, if that is not the clock's.
        """
        self.clock = clock
        self.heap: list[tuple[float, int, TimerHandle]] = []
        self.next_due = NEVER
        self.awaited = 0
        self.on_awaited: Callable[[bool], object] | None = None
        self.awaited_reported = False
        self.announced = NEVER
        self._scope = scope
        self._wake = wake
        self.is_idle = is_idle or _is_tick
        self._thread = thread
        self._now = clock.monotonic if now is None else now
        self._serial = 0
        self._cancelled = 0
        self._held = False
        self._firing = False
        scope.timers = self

    # ---- for the component ----

    def set(
        self,
        owner: Any,
        run: Callable[[Callable[[], object]], None],
        delay_secs: float,
        callback: Callable[[], object],
        every: float | None,
    ) -> TimerHandle:
        """Set a timer of a component; see Component.set_timer.

        Args:
            owner: The component.
            run: Calls the callback, and handles its exception.
            delay_secs: The seconds to the first call.
            callback: What is called.
            every: The seconds between calls; None for one call.
        """
        if self._thread is not None and get_ident() != self._thread:
            raise LocalProtocolError(
                f"component {owner.context.component!r} sets a timer in a thread of its own, where set_timer can't be "
                "called; put what the thread finds into a queue, which a timer that process or initialize set reads"
            )
        if not _is_secs(delay_secs):
            raise ConfigError(f"set_timer({delay_secs!r}, ...): the delay is a number of seconds from 0")
        if every is not None and not (_is_secs(every) and every):
            raise ConfigError(
                f"set_timer(..., every={every!r}): every is a number of seconds above 0, or None for once"
            )
        if not callable(callback):
            raise ConfigError(f"set_timer({delay_secs!r}, {callback!r}): give a function to call, such as self.flush")
        current = self._scope.current
        awaited = every is None and not self._firing and (current is None or not self.is_idle(current))
        handle = TimerHandle(self, owner, run, callback, self._now() + delay_secs, every, awaited)
        self._push(handle)
        if awaited:
            self.awaited += 1
            if not self.awaited_reported and self.on_awaited is not None:
                self.awaited_reported = True
                self.on_awaited(True)
        self._settle()
        return handle

    def cancelled(self, handle: TimerHandle) -> None:
        """Note that a timer was cancelled; it stays in the heap until it would be due, or until many are cancelled."""
        self._over(handle)
        self._cancelled += 1
        heap = self.heap
        if self._cancelled > _MIN_CANCELLED and self._cancelled > len(heap) // 2:
            heap[:] = [each for each in heap if each[2].pending and each[2].due == each[0]]
            heapify(heap)
            self._cancelled = 0
        self._settle()

    # ---- for the engine ----

    def run_due(self, after: Callable[[TimerHandle], object] | None = None) -> None:
        """Run the callbacks that are due now, each once; then call ``after`` each time, if it is given."""
        last, now = self._serial, self.clock.monotonic()
        while (handle := self.take(now, last)) is not None:
            self.fire(handle)
            if after is not None:
                after(handle)

    def take(self, now: float, last: int | None = None) -> TimerHandle | None:
        """Return the next timer that is due at ``now``, and set it again if it is a repeated one.

        Args:
            now: The instant.
            last: ``serial`` at an earlier moment: timers that were set after that are left for later.
        """
        heap = self.heap
        if self._held:
            return None
        while heap and heap[0][0] <= now:
            due, serial, handle = heap[0]
            if handle._timers is None or handle.due != due:
                heappop(heap)
                self._cancelled -= 1
                continue
            if last is not None and serial > last:
                break
            heappop(heap)
            period = handle._every
            if period is None:
                handle._timers = None
            else:
                handle.due = due + period * ((now - due) // period + 1)
                if handle.due <= now:  # rounding, or a period that is next to nothing beside the clock's own number
                    handle.due = now + max(period, _SHORTEST_SECS)
                self._push(handle)
            return handle
        self._settle()
        return None

    def take_early(self, handle: TimerHandle) -> None:
        """Take a pending timer before it is due, as ``take`` would when it is."""
        if handle._every is None:
            handle._timers = None
        else:
            handle.due += handle._every
            self._push(handle)
        self._cancelled += 1  # its old place in the heap
        self._settle()

    @property
    def serial(self) -> int:
        """A number that grows with each timer that is set."""
        return self._serial

    def fire(self, handle: TimerHandle) -> None:
        """Call the callback of a timer that ``take`` returned; its emits have no anchors by default."""
        run, callback = handle._run, handle.callback
        assert run is not None
        assert callback is not None
        self._scope.leave_tuple()
        self._firing = True
        try:
            run(callback)
        finally:
            self._firing = False
            if handle.awaited and handle._timers is None:
                handle.awaited = False
                self.awaited -= 1
            self._settle()

    def hold(self) -> None:
        """Run no timers until ``release``, since the task is not ready for them."""
        self._held = True
        self._settle()

    def release(self) -> None:
        """Run timers again; those that became due meanwhile are due now."""
        self._held = False
        self._settle()

    @property
    def held(self) -> bool:
        """True while timers wait for ``release``."""
        return self._held

    def cancel_all(self, owner: Any = None) -> None:
        """Cancel all timers, or those that ``owner`` set."""
        for _, _, handle in list(self.heap):
            if owner is None or handle._owner is owner:
                handle.cancel()
        if owner is None:
            self.heap.clear()
            self._cancelled = 0
            self._settle()

    def report_none_awaited(self) -> None:
        """Call ``on_awaited`` with False if there are no awaited timers any more."""
        if self.awaited_reported and not self.awaited and self.on_awaited is not None:
            self.awaited_reported = False
            self.on_awaited(False)

    # ---- inside ----

    def _push(self, handle: TimerHandle) -> None:
        self._serial += 1
        heappush(self.heap, (handle.due, self._serial, handle))

    def _over(self, handle: TimerHandle) -> None:
        handle._timers = None
        if handle.awaited:
            handle.awaited = False
            self.awaited -= 1

    def _settle(self) -> None:
        """Update ``next_due``."""
        heap = self.heap
        while heap and (heap[0][2]._timers is None or heap[0][2].due != heap[0][0]):
            heappop(heap)
            self._cancelled -= 1
        self.next_due = due = heap[0][0] if heap and not self._held else NEVER
        if due == NEVER:
            self.announced = NEVER
        elif due < self.announced and self._wake is not None:
            self.announced = due
            self._wake(due)

    def take_wakeup(self, due: float) -> bool:
        """Return whether the last call of ``wake`` was for ``due``, so that ``run_due`` must be called now."""
        if due != self.announced:
            return False
        self.announced = NEVER
        return True


def _is_secs(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < NEVER


def _is_tick(tup: Tuple) -> bool:
    return tup.is_tick
