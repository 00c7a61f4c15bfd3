"""The watchdog thread beside user code: it sends signs of life, and finds user code that hangs.

While user code runs for a long time, the main thread can neither answer heartbeats nor flush. Meanwhile this thread
sends what was emitted and gives a sign of life twice a second: from a bolt a ``sync``, which Storm ignores when it did
not ask; from a spout, where a sync would end the command, a ``log`` of level 0. After
``multilang.process.timeout.secs`` it ends the process, and puts the main thread's stack into Storm's log.

It also logs the text on the stray streams, reports the metrics, and reports how often an error was repeated. It notices
that the output is not read any more, and makes sure that the process ends when it should. It sleeps while there is
nothing to do, unless a thread of the user's may emit something.
"""

from __future__ import annotations

import os
import select
import sys
from _thread import _count as count_threads
from _thread import allocate_lock, get_ident, start_new_thread
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.child.output import Output
    from multilang.child.stdio import Stdio
    from multilang.component.base import Component
    from multilang.component.collector import Collector
    from multilang.component.metrics import MetricsRegistry
    from multilang.component.repeats import Repeats
    from multilang.protocol import ChildConnection

_TICK = 0.05  # seconds between looks while user code runs: the longest that an emitted tuple waits
_IDLE_LOOKS = 20  # looks without work, after which it sleeps until it is woken
_SIGN_OF_LIFE = 0.5  # seconds, half of Storm's interval of heartbeats, so that one of them may come late
_GRACE = 5.0  # seconds that the end of the process may take
_ENDS = {2, 15}  # SIGINT and SIGTERM; importing the module for their names would cost time
_MAX_LINE = 8192  # bytes of stray text in one line of the log
_MAX_WAITING = 8 * 1024 * 1024  # characters of log that may wait for a parent that does not read
_PATIENCE = 2.0  # seconds that a writer of stray text is held up when the parent does not read

INFO, WARN = 2, 3


class Watchdog:
    """The watchdog thread; see the module.

    Attributes:
        busy: The thing that user code works on, set by the main thread; a current tuple of the collector comes first.
        waiting: Whether user code waits for task ids, in which time it is not to blame.
        send_meanwhile: Sends what was emitted and waits for more to be sent with, which it does not while user code works
            for long; None: nothing waits so.
        deadline: The seconds after which user code counts as hanging; 0 for no limit.
    """

    def __init__(self, stdio: Stdio, connection: ChildConnection, output: Output, spout: bool) -> None:
        self.busy: object | None = None
        self.waiting = False
        self.deadline = 300.0
        self.component: Component | None = None
        self.collector: Collector | None = None
        self.repeats: Repeats | None = None
        self.send_meanwhile: Callable[[], None] | None = None
        self.parked = False
        self.busy_secs: Callable[[], float] | None = None  # the time that a local parent is told
        self._stdio = stdio
        self._connection = connection
        self._output = output
        self.is_spout = spout
        self._main = get_ident()
        self.interrupts = False  # a SIGTERM makes the main thread leave user code
        self._wake_up, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        os.set_blocking(self._wake_up, False)
        self._ending_at: float | None = None
        self._seen: object | None = None  # the thing that was busy at the last look
        self._since = self._sign = self._idle_since = monotonic()
        self._flushed = True
        self._written = 0
        self._written_at = monotonic()
        self._idle_looks = 0
        self._status = 1
        self._stray = {
            stdio.stray_output: Stray("stdout", INFO, connection),
            stdio.stray_error: Stray("stderr", WARN, connection),
        }

    def start(self) -> None:
        """Start the thread, which ends with the process."""
        start_new_thread(self._run, ())

    def wake(self) -> None:
        """Note that user code begins after a pause."""
        self.parked = False
        try:
            os.write(self.waker, b"\0")
        except BlockingIOError:
            pass  # it has been woken already

    def ending(self, status: int) -> None:
        """Make sure that the process ends soon, with this exit status."""
        self._status = status
        self._ending_at = monotonic() + _GRACE
        self.wake()

    def drain(self) -> None:
        """Log what is in the stray pipes now; the main thread calls this at the end."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        self._drain()

    def _drain(self) -> None:
        for fd, stray in self._stray.items():
            while stray.pump(fd):
                pass
            stray.waiting = 0
            stray.finish()

    def _run(self) -> None:
        poll = select.poll()
        for fd in (*self._stray, self._wake_up):
            poll.register(fd, select.POLLIN)
        poll.register(self._output.fd, 0)  # with no events asked for, it tells only that the reader is gone
        while True:
            try:
                self._look(poll)
            except Exception as error:  # noqa: BLE001 - without this thread the worker would take the process for dead
                self._connection.error(f"multilang's own thread beside user code: {type(error).__name__}: {error}")
                sleep(1)

    def _look(self, poll: select.poll) -> None:
        held_up = self._log_is_full() and monotonic() - self._written_at < _PATIENCE
        if held_up:
            sleep(_TICK / 5)
        for fd, _ in poll.poll(None if self.parked else _TICK * 1000):
            if fd == self._wake_up:
                # A signal's number comes this way, too: the main thread may be in C code that does not return.
                if not _ENDS.isdisjoint(os.read(fd, 4096)) and self._ending_at is None:
                    self.ending(0)
            elif fd == self._output.fd:
                poll.unregister(fd)
                self._output.closed = True
                self._interrupt()
            elif not held_up and self._stray[fd].pump(fd) is None:
                poll.unregister(fd)  # no process can write to it any more
        now = monotonic()
        if self._ending_at is not None and now > self._ending_at:
            self._drain()
            self._output.flush_some()
            os._exit(self._status)
        self._look_after(now)
        self._park_if_idle()

    def _interrupt(self) -> None:
        if self._ending_at is None:
            self.ending(0)
            if self.interrupts:
                from signal import SIGTERM, pthread_kill

                pthread_kill(self._main, SIGTERM)

    def _look_after(self, now: float) -> None:
        busy = self._working_on()
        if busy is not self._seen or self.waiting:
            self._seen, self._since = busy, now
        if busy is None:
            self._idle_looks += 1
            self._idle_since = now
        else:
            self._idle_looks = 0
            # A bolt may be busy with many tuples of half a second each, while a heartbeat waits behind them. A spout
            # answers every command.
            quiet_since = self._since if self.is_spout else self._idle_since
            if now - quiet_since > _SIGN_OF_LIFE and now - self._sign > _SIGN_OF_LIFE:
                self._sign = now
                self._sign_of_life()
            if self.deadline and now - self._since > self.deadline:
                self._end_it(busy, now - self._since)
        for stray in self._stray.values():
            stray.look()
        component = self.component
        metrics = None if component is None else _metrics_of(component)
        if metrics is not None:
            metrics.report_if_due(now)
        if self.repeats is not None:
            self.repeats.tell_due()
        self._flush(now)

    def _flush(self, now: float) -> None:
        if self.send_meanwhile is not None:
            self.send_meanwhile()
        self._flushed = self._output.flush_some()
        sent, self._written = self._output.written - self._written, self._output.written
        if self._flushed or sent:
            self._written_at = now
            for stray in self._stray.values():
                stray.waiting = 0 if self._flushed else max(0, stray.waiting - sent)

    def _log_is_full(self) -> bool:
        return any(stray.waiting > _MAX_WAITING for stray in self._stray.values())

    def _working_on(self) -> object | None:
        current = None if self.collector is None else self.collector.scope.current
        return self.busy if current is None else current

    def _park_if_idle(self) -> None:
        work = (
            self._ending_at is not None
            or not self._flushed
            or any(stray.held for stray in self._stray.values())
            or (self.component is not None and _metrics_of(self.component) is not None)
            or (self.repeats is not None and self.repeats.untold)
            or count_threads() > 1  # a user's thread may emit just when the main thread begins to wait
        )
        if self._idle_looks > _IDLE_LOOKS and not work:
            self._idle_looks = 0
            self.parked = True
            # work began at this very moment, and did not see that it has to wake this thread
            if self._working_on() is not None:
                self.parked = False

    def _sign_of_life(self) -> None:
        if self.is_spout:
            self._connection.log("still at work", 0)
        else:
            busy = self.busy_secs
            self._connection.sign_of_life(None if busy is None else busy())

    def _end_it(self, busy: object, seconds: float) -> None:
        from traceback import format_stack

        frame = sys._current_frames().get(self._main)
        stack = "".join(format_stack(frame)) if frame is not None else "(no stack)\n"
        text = (
            f"user code of component {self._connection.component!r} (task {self._connection.task}) has not returned for "
            f"{seconds:.0f} s (multilang.process.timeout.secs: {self.deadline:g}) while working on {busy!r:.500}; "
            f"the process ends so that it is started again. It hangs here:\n{stack}"
        )
        self._connection.error(text)
        self._connection.log(text, 4)
        until = monotonic() + _GRACE
        while not self._output.flush_some() and monotonic() < until:
            select.select([], [self._stdio.output], [], 0.1)
        os._exit(1)


class Stray:
    """Text that was written to a standard stream, on its way into the log line by line."""

    def __init__(self, name: str, level: int, connection: ChildConnection) -> None:
        self.held = b""
        self._name = name
        self._level = level
        self._connection = connection
        self._dropped = 0
        self._looks = 0
        self._lock = allocate_lock()  # both threads call pump at the end
        self.waiting = 0  # characters that were logged and not sent yet

    def pump(self, fd: int) -> bool | None:
        """Log what is in the pipe; False when it is empty, None when no process can write to it any more."""
        with self._lock:
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                return False
            if not data:
                return None
            self._looks = 0
            lines = (self.held + data).split(b"\n")
            self.held = lines.pop()
            for line in lines:
                self._log(line)
            while len(self.held) > _MAX_LINE:
                self._log(self.held[:_MAX_LINE])
                self.held = self.held[_MAX_LINE:]
            return True

    def look(self) -> None:
        """Log a line that has not ended after a few looks."""
        if self.held or (self._dropped and not self.waiting):
            self._looks += 1
            if self._looks > 4:
                self.finish()

    def finish(self) -> None:
        """Log a line that has not ended, and how much was left out."""
        with self._lock:
            if self.held:
                self._log(self.held)
                self.held = b""
            self._say_what_was_left_out()

    def _log(self, line: bytes) -> None:
        if self.waiting > _MAX_WAITING:
            self._dropped += len(line) + 1
            return
        self._say_what_was_left_out()
        for start in range(0, len(line), _MAX_LINE):
            text = line[start : start + _MAX_LINE].decode("utf-8", "backslashreplace").rstrip("\r")
            if text:
                self.waiting += len(text)
                self._connection.log(f"{self._name}: {text}", self._level)

    def _say_what_was_left_out(self) -> None:
        if self._dropped and self.waiting <= _MAX_WAITING:
            self._connection.log(f"{self._name}: {self._dropped} bytes left out, since the log is not read", WARN)
            self._dropped = 0


def _metrics_of(component: Component) -> MetricsRegistry | None:
    from multilang.component.base import used_metrics  # the watchdog is there before any component is imported

    return used_metrics(component)
