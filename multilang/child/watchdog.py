"""The watchdog thread beside user code: it sends heartbeats, and ends a process whose user code hangs.

While user code runs for a long time, the main thread can neither answer heartbeats nor flush. Meanwhile this thread
sends what was emitted, and runs the task's parts (see parts). It also logs the captured streams, notices that the
output is not read any more, and makes sure that the process ends when it should. It sleeps while there is nothing to
do, unless a thread of the user's may emit something.
"""

from __future__ import annotations

import os
import select
import sys
from _thread import _count as count_threads
from _thread import get_ident, start_new_thread
from time import monotonic, sleep

from multilang.child.captured import INFO, WARN, CapturedStream
from multilang.child.parts import GRACE
from multilang.child.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.child.output import Output
    from multilang.child.stdio import Stdio
    from multilang.child.work import Part
    from multilang.protocol import ChildConnection

_TICK = 0.05  # seconds between looks while user code runs: the longest that an emitted tuple waits
_IDLE_LOOKS = 20  # looks without work, after which it sleeps until it is resumed
_LONGEST_SECS = 86_400.0  # of a sleep: C takes no number that is much larger
_ENDS = {2, 15}  # SIGINT and SIGTERM; importing the module for their names would cost time
_PATIENCE = 2.0  # seconds that a writer of captured text is held up when the parent does not read


class Watchdog:
    """The watchdog thread; see the module.

    Args:
        stdio: The process's descriptors.
        connection: The connection.
        output: The connection's output.

    Attributes:
        work: The work of user code.
        parts: The parts that it runs, in this order; more are added as the task becomes known.
        waker: A descriptor; a byte written to it resumes the thread.
    """

    def __init__(self, stdio: Stdio, connection: ChildConnection, output: Output) -> None:
        self.work = Work(self._wake)
        self.parts: list[Part] = [self.work]
        self._connection = connection
        self._output = output
        self._main = get_ident()
        self._interrupts = False
        self._wake_up, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        os.set_blocking(self._wake_up, False)
        self._ending_at: float | None = None
        self._flushed = True
        self._written = 0
        self._written_at = monotonic()
        self._idle_looks = 0
        self._status = 1
        self._captured = [
            CapturedStream(stdio.captured_output, "stdout", INFO, connection),
            CapturedStream(stdio.captured_error, "stderr", WARN, connection),
        ]

    def start(self, interrupts: bool) -> None:
        """Start the thread, which ends with the process.

        Args:
            interrupts: Whether a SIGTERM makes the main thread leave user code.
        """
        self._interrupts = interrupts
        start_new_thread(self._run, ())

    def _wake(self) -> None:
        self.work.parked = False
        try:
            os.write(self.waker, b"\0")
        except BlockingIOError:
            pass  # it has been resumed already

    def ending(self, status: int) -> None:
        """Make sure that the process ends soon, with this exit status."""
        self._status = status
        self._ending_at = monotonic() + GRACE
        self._wake()

    def end(self) -> None:
        """Do what the parts have left to do; the main thread calls this at the end."""
        for part in reversed(self.parts):
            part.end()
        self.drain()

    def drain(self) -> None:
        """Log what is in the captured pipes now; the main thread calls this at the end."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        self._drain()

    def _drain(self) -> None:
        for stream in self._captured:
            stream.drain()

    def _run(self) -> None:
        poll = select.poll()
        for fd in (*(stream.fd for stream in self._captured), self._wake_up):
            poll.register(fd, select.POLLIN)
        poll.register(self._output.fd, 0)  # reports only that the reader closed it
        while True:
            try:
                self._look(poll)
            except Exception as error:  # noqa: BLE001 - without this thread the worker would take the process for dead
                self._connection.error(f"multilang's own thread beside user code: {type(error).__name__}: {error}")
                sleep(1)

    def _look(self, poll: select.poll) -> None:
        held_up = any(stream.is_full for stream in self._captured) and monotonic() - self._written_at < _PATIENCE
        if held_up:
            sleep(_TICK / 5)
        secs = max(min(part.due for part in self.parts) - monotonic(), 0.0) if self.work.parked else _TICK
        for fd, _ in poll.poll(None if secs == float("inf") else min(secs, _LONGEST_SECS) * 1000):
            self.work.parked = False
            if fd == self._wake_up:
                # A signal's number is read here, too: the main thread may be in C code that does not return.
                if not _ENDS.isdisjoint(os.read(fd, 4096)) and self._ending_at is None:
                    self.ending(0)
            elif fd == self._output.fd:
                poll.unregister(fd)
                self._output.closed = True
                self._interrupt()
            elif not held_up:
                stream = next(each for each in self._captured if each.fd == fd)
                if stream.pump() is None:
                    poll.unregister(fd)  # no process can write to it any more
        now = monotonic()
        if self._ending_at is not None and now > self._ending_at:
            self._drain()
            self._output.flush_some()
            os._exit(self._status)
        self._run_parts(now)
        self._park_if_idle()

    def _interrupt(self) -> None:
        if self._ending_at is None:
            self.ending(0)
            if self._interrupts:
                from signal import SIGTERM, pthread_kill

                pthread_kill(self._main, SIGTERM)

    def _run_parts(self, now: float) -> None:
        for part in self.parts:
            part.look(now)
        self._idle_looks = self._idle_looks + 1 if self.work.seen is None else 0
        for stream in self._captured:
            stream.look()
        self._flushed = self._output.flush_some()
        sent, self._written = self._output.written - self._written, self._output.written
        if self._flushed or sent:
            self._written_at = now
            for stream in self._captured:
                stream.waiting = 0 if self._flushed else max(0, stream.waiting - sent)

    def _park_if_idle(self) -> None:
        has_work = (
            self._ending_at is not None
            or not self._flushed
            or any(stream.held for stream in self._captured)
            or any(part.has_work() for part in self.parts)
            or count_threads() > 1  # a user's thread may emit just when the main thread begins to wait
        )
        if self._idle_looks > _IDLE_LOOKS and not has_work:
            self._idle_looks = 0
            self.work.parked = True
            # work began at this very moment, and did not see that it has to resume this thread
            if self.work.now() is not None:
                self.work.parked = False
