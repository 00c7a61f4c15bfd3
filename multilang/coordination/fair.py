"""A bolt in which no id makes the others wait (Storm's KeyedFairBolt)."""

from __future__ import annotations

import os
from _queue import Empty, SimpleQueue
from _thread import RLock, allocate_lock, start_new_thread
from collections import deque

from multilang.component.report import report_exception
from multilang.component.runner import start_bolt
from multilang.component.timers import NEVER, TaskTimers, TimerHandle
from multilang.component.wrapper import Wrapper
from multilang.coordination.program import ProgramBolt
from multilang.topology.shell import ShellBolt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from multilang.component.base import Component
    from multilang.component.clock import TaskClock
    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.timers import Scope
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple


class RoundRobin:
    """Tuples by key: one tuple of each key in turn, in the order in which the keys came."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[Tuple]] = {}
        self._keys: list[Hashable] = []
        self._at = 0

    def put(self, key: Hashable, tup: Tuple) -> None:
        """Add a tuple to its key's queue."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._keys.append(key)
        queue.append(tup)

    def take(self) -> Tuple | None:
        """Return the next tuple, or None when there is none."""
        if not self._keys:
            return None
        self._at %= len(self._keys)
        key = self._keys[self._at]
        queue = self._queues[key]
        tup = queue.popleft()
        if queue:
            self._at += 1
        else:
            del self._queues[key], self._keys[self._at]
        return tup


class _ThreadTimers(TaskTimers):
    """The timers of a bolt that two threads call: its own, in which they run, and the one that finishes ids."""

    def __init__(self, scope: Scope, clock: TaskClock, wake: Callable[[float], object]) -> None:
        self._lock = RLock()
        super().__init__(scope, clock, wake)

    def set(
        self,
        owner: Any,
        run: Callable[[Callable[[], object]], None],
        delay_secs: float,
        callback: Callable[[], object],
        every: float | None,
    ) -> TimerHandle:
        with self._lock:
            return super().set(owner, run, delay_secs, callback, every)

    def cancelled(self, handle: TimerHandle) -> None:
        with self._lock:
            super().cancelled(handle)

    def take(self, now: float, last: int | None = None) -> TimerHandle | None:
        with self._lock:
            return super().take(now, last)

    def cancel_all(self, owner: Any = None) -> None:
        with self._lock:
            super().cancel_all(owner)


class KeyedFairBolt(Wrapper):
    """A bolt around a bolt that gives it tuples of all ids in turn, however many tuples one of them has.

    The first value of a tuple is its id. Tuples are taken in at once and processed in a second thread, so the bolt's
    ``finished_id(id)`` may be called while ``process`` works on another id. In process and simulated, tuples come one
    at a time, and each is processed at once.

    Args:
        wrapped: The bolt: an instance, a class that needs no arguments, or a ShellBolt.
    """

    _SIGTERM = 15  # of the module signal, whose import would cost time

    worked: Callable[[], None] | None = None
    """Called in the second thread when a tuple has been processed."""

    def __init__(self, wrapped: Component | type[Component] | ShellBolt) -> None:
        if isinstance(wrapped, ShellBolt):
            wrapped = ProgramBolt(wrapped)
        made = wrapped() if isinstance(wrapped, type) else wrapped
        if isinstance(made, ProgramBolt):
            made.settles_each = True  # ``finished_id`` is called in the other thread
        super().__init__(made)

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._attach(collector, conf, context)
        self._ended: Any = None
        if not collector.takes_threads:
            self._inner = start_bolt(self.wrapped, collector, conf, context)
            return self._inner
        self._turns = RoundRobin()
        self._lock = allocate_lock()
        self._wake: SimpleQueue[bool] = SimpleQueue()
        main = collector.scope.timers
        self._timers = _ThreadTimers(collector.scope, main.clock, lambda _: self._wake.put(True))
        self._timers.on_awaited = main.on_awaited
        self._inner = start_bolt(self.wrapped, collector, conf, context)
        self._ended = allocate_lock()
        self._ended.acquire()
        self._thread = start_new_thread(self._work, ())
        return self._put

    def finished_id(self, id: Hashable) -> None:
        """Pass on that all tuples of ``id`` have been processed."""
        finished = getattr(self.wrapped, "finished_id", None)
        if finished is not None:
            finished(id)

    def timeout_id(self, id: Hashable) -> None:
        """Pass on that ``id`` will not be finished."""
        timeout = getattr(self.wrapped, "timeout_id", None)
        if timeout is not None:
            timeout(id)

    def close(self) -> None:
        if self._ended is not None:
            self._wake.put(False)
            self._ended.acquire(timeout=2)
        super().close()

    def _put(self, tup: Tuple) -> None:
        with self._lock:
            self._turns.put(tup.values[0], tup)
        self._wake.put(True)

    def _is_woken(self) -> bool:
        """Wait for a tuple, a new timer, or the time of a timer; return False at the end."""
        due = self._timers.next_due
        if due == NEVER:
            return self._wake.get()
        try:
            return self._wake.get(True, max(0.0, due - self._timers.clock.monotonic()))
        except Empty:
            return True

    def _work(self) -> None:
        tup, timers = None, self._timers
        try:
            while self._is_woken():
                with self._lock:
                    tup = self._turns.take()
                if tup is not None:
                    self._inner(tup)
                    if self.worked is not None:
                        self.worked()
                tup = None
                if timers.heap:
                    timers.run_due()
                if timers.awaited_reported:
                    timers.report_none_awaited()
        except Exception as error:  # noqa: BLE001 - it ends the process, as it would in the main thread
            report_exception(self.wrapped, error, tup, "in the thread of KeyedFairBolt")
            if tup is not None:
                (self._collector.fail if tup.unfinished else self._collector.fail_acked)(tup)
            os.kill(os.getpid(), self._SIGTERM)
        finally:
            self._ended.release()
