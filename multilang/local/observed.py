"""The calls into user code of a run in one thread, and another thread that names those which take long."""

from __future__ import annotations

import weakref
from _thread import get_ident
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from multilang.child.calls import LongCalls, long_secs
from multilang.child.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from multilang.engine.plan import TaskPlan
    from multilang.local.actors import BoltActor

_WARNING = 3  # a log's level


class RunWork(Work):
    """The call into user code that a run's thread is in.

    Beside it, ``doing`` is the task and the method of a call that works on no tuple, a new pair for each call.

    Args:
        bolts: The tasks of bolts.
    """

    def __init__(self, bolts: Iterable[BoltActor]) -> None:
        super().__init__()
        self._bolts = bolts
        self._of: BoltActor | None = None

    def now(self) -> object | None:
        for bolt in self._bolts:
            scope = bolt.scope  # which the run's thread takes away when the task dies
            current = None if scope is None else scope.current
            if current is not None:
                self._of = bolt
                return current
        return self.doing

    def method(self, work: object) -> str:
        return work[1] if isinstance(work, tuple) else super().method(work)

    def task(self, work: object) -> Any:
        """Return the task that works on this."""
        return work[0] if isinstance(work, tuple) else self._of


class Observer:
    """Names the calls of a run that take long, from a thread of its own.

    Args:
        bolts: The tasks of bolts.
        conf: The topology's conf.
        log: Takes a line of a task's log.

    Attributes:
        work: The call that the run's thread is in.
    """

    def __init__(
        self, bolts: Mapping[int, BoltActor], conf: Mapping[str, Any], log: Callable[[TaskPlan, str, int], None]
    ) -> None:
        self.work = RunWork(bolts.values())
        self._log = log
        self._thread = 0
        self._named: Any = None  # the task of the call that was named last
        secs = long_secs(conf)
        self._calls = LongCalls(self.work, lambda: self._thread, self._name, secs)
        self._pause = min(secs / 4, 1.0)
        self._ended = Event()

    def start(self) -> None:
        """Begin to look; the thread ends with the observer, too."""
        self.here()
        Thread(target=_look, args=(weakref.ref(self), self._ended, self._pause), daemon=True).start()

    def here(self) -> None:
        """Note that this thread runs user code now."""
        self._thread = get_ident()

    def end(self) -> None:
        """Look a last time."""
        self._ended.set()
        self.look()

    def look(self) -> None:
        """Look once."""
        now = monotonic()
        self.work.look(now)
        self._calls.look(now)

    def _name(self, text: str, work: object) -> None:
        call = self._calls.call
        if call is not None:  # otherwise the call that was named is over, and another task may be in one
            self._named = self.work.task(work)
        task = self._named
        task.stats.call = call
        self._log(task.plan, f"{task.plan.component} task {task.plan.id} {text}", _WARNING)


def _look(observer: weakref.ref[Observer], ended: Event, pause: float) -> None:
    while not ended.wait(pause):
        found = observer()
        if found is None:
            return
        found.look()
        del found
