"""The main thread of a component, which alone works on blocks, and the queue of other threads' calls."""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections import deque
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class MainThread:
    """The thread that creates this object.

    A call of another thread is made by the main thread before it next emits, acks, fails or sends anything, or by that
    thread itself while the main thread waits for input. So calls of several threads take effect in their order.

    Args:
        send: Sends all open blocks, after the queued calls (``make_calls``).

    Attributes:
        id: Its number.
        calls: The queued calls of other threads.
    """

    def __init__(self, send: Callable[[], None]) -> None:
        self.id = get_ident()
        self.calls: deque[Callable[[], object]] = deque()
        self._send = send
        self._seen: object | None = None  # the first of the calls at the last look
        self._seen_at = 0.0
        self._working = allocate_lock()  # held by the main thread but while it waits for input
        self._working.acquire()

    def call(self, call: Callable[[], object]) -> None:
        """Make a call, after the queued ones, or queue it for the main thread."""
        if get_ident() == self.id:
            self.make_calls()
            call()
            return
        self.calls.append(call)
        self._send_meanwhile()

    def make_calls(self) -> None:
        """Make the queued calls."""
        calls = self.calls
        while calls:
            calls.popleft()()

    def waiting_secs(self) -> float:
        """Return for how many seconds the first queued call has been seen to wait; 0: none waits."""
        try:
            first = self.calls[0]
        except IndexError:
            self._seen = None
            return 0.0
        if first is not self._seen:
            self._seen, self._seen_at = first, monotonic()
        return monotonic() - self._seen_at

    def park(self) -> None:
        """Let other threads make their own calls while the main thread waits for input."""
        self._working.release()
        self._send_meanwhile()

    def unpark(self) -> None:
        """Keep other threads from making their calls."""
        # With a limit: a signal may have ended the wait before the lock was free.
        self._working.acquire(timeout=1)

    def _send_meanwhile(self) -> None:
        # Checked again after the lock is free: calls may have been queued meanwhile.
        while self.calls and self._working.acquire(False):
            try:
                self._send()
            finally:
                self._working.release()
