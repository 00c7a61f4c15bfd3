"""Threads that make calls, for which a program's end does not wait.

The interpreter waits at its end for the calls of a ``ThreadPoolExecutor``. Calls of Spark's may take hours: a driver that an error
ends would go on for as long.
"""

from __future__ import annotations

import weakref
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    Result = TypeVar("Result")
    Calls: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]"


class Workers:
    """Up to ``most`` threads, which are started as they are needed, and end with this object.

    Args:
        most: The number of threads at most, and so of calls at once.
        name: What the threads do, for people.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = Lock()
        self._calls: Calls = SimpleQueue()
        self._idle = Semaphore(0)
        self._threads = 0
        self._over = False
        weakref.finalize(self, _end, self._calls, most).atexit = False

    def submit(self, call: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Have a thread make a call.

        Args:
            call: The function.
            arguments: What it is called with.

        Raises:
            RuntimeError: No more calls are taken, or no thread can be started.
        """
        future: Future[Result] = Future()
        with self._lock:
            if self._over:
                raise RuntimeError(f"the threads for {self._name!r} take no more calls")
            if not self._idle.acquire(blocking=False) and self._threads < self._most:
                self._start()
            self._calls.put((future, call, arguments))
        return future

    def shutdown(self) -> None:
        """Take no more calls, cancel those that wait, and let the threads end when they have made theirs."""
        with self._lock:
            self._over = True
            waiting = []
            try:
                while True:
                    item = self._calls.get_nowait()  # a thread may take the last one meanwhile
                    if item is not None:
                        waiting.append(item[0])
            except Empty:
                pass
            _end(self._calls, self._most)
        for future in waiting:
            future.cancel()

    def _start(self) -> None:
        try:
            Thread(target=_work, args=(self._calls, self._idle), name=self._name, daemon=True).start()
            self._threads += 1
        except RuntimeError:
            if not self._threads:
                raise


def _work(calls: Calls, idle: Semaphore) -> None:
    while (item := calls.get()) is not None:
        future, call, arguments = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call(*arguments))
            except BaseException as error:  # noqa: BLE001  # it is for whoever asks for the result
                future.set_exception(error)
        del item, future, call, arguments  # not to be kept while this waits
        idle.release()


def _end(calls: Calls, threads: int) -> None:
    for _ in range(threads):
        calls.put(None)
