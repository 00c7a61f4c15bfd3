"""The pipes of a topology's processes, served by one thread, to which other threads can pass calls."""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Pipes:
    """The watched pipes, and the calls that other threads ordered in the thread that serves them.

    ``order`` may be called in any thread, everything else in the serving thread alone.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._writing: set[int] = set()
        self._orders: deque[Callable[[], object]] = deque()
        self._wake_up, self._waker = os.pipe()
        self._closing = threading.Lock()
        os.set_blocking(self._wake_up, False)
        os.set_blocking(self._waker, False)
        self._selector.register(self._wake_up, selectors.EVENT_READ, self._clear_wakeup)

    def order(self, call: Callable[[], object]) -> None:
        """Let the serving thread call ``call`` in its next turn."""
        self._orders.append(call)
        with self._closing:
            if self._waker >= 0:  # otherwise the thread has ended, and the number may belong to another file by now
                try:
                    os.write(self._waker, b"x")
                except BlockingIOError:
                    pass  # it has been resumed already

    def run_orders(self) -> None:
        """Make the calls that other threads have ordered."""
        while self._orders:
            self._orders.popleft()()

    def serve(self, secs: float) -> None:
        """Serve every pipe that is ready, once; wait up to ``secs`` seconds for one."""
        for key, _ in self._selector.select(secs):
            key.data()

    def watch(self, fd: int, call: Callable[[], object]) -> None:
        """Call ``call`` when there is something to read."""
        self._selector.register(fd, selectors.EVENT_READ, call)

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor."""
        try:
            self._selector.unregister(fd)
        except (KeyError, ValueError):
            pass  # it was not watched

    def watch_writing(self, fd: int, call: Callable[[], object]) -> None:
        """Call ``call`` when the descriptor takes more data."""
        if fd not in self._writing:
            self._writing.add(fd)
            self._selector.register(fd, selectors.EVENT_WRITE, call)

    def unwatch_writing(self, fd: int) -> None:
        """Stop watching a descriptor for writing."""
        if fd in self._writing:
            self._writing.discard(fd)
            self.unwatch(fd)

    def close(self) -> None:
        """Close the selector and its own pipe; the watched pipes are their owners'."""
        self._selector.close()
        with self._closing:
            os.close(self._wake_up)
            os.close(self._waker)
            self._waker = -1

    def _clear_wakeup(self) -> None:
        try:
            os.read(self._wake_up, 4096)
        except BlockingIOError:
            pass
