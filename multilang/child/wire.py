"""The loop of a component on the multi-lang wire: it reads events, handles them, and writes."""

from __future__ import annotations

import os
from _thread import get_ident
from collections import deque
from time import monotonic, sleep

from multilang.component.timers import NEVER
from multilang.protocol.errors import LocalProtocolError, RemoteProtocolError
from multilang.protocol.messages import HEARTBEAT_STREAM, Heartbeat, TaskIds, Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from multilang.child.output import Output
    from multilang.child.work import Work
    from multilang.component.timers import TaskTimers
    from multilang.exchange.wire import Blocks
    from multilang.protocol import ChildConnection
    from multilang.protocol.messages import Message

READ = 65536  # bytes; more would cost latency and a spout's rate (256 KiB: 1.5 times)
HEARTBEAT = HEARTBEAT_STREAM.encode()
_HEARTBEAT_SIZE = 200  # bytes; anything longer holds more than a heartbeat
_PATIENCE = 10  # milliseconds to wait for a full pipe before more is read
_MAX_BACKLOG = 64 * 1024 * 1024  # bytes read ahead while the parent does not read; after that, reading stops, too
_REPORT_SECS = 0.2  # between two reports to a local parent of how long the component was busy
_LONGEST_POLL = 86_400_000  # milliseconds; C takes no number that is much larger


class EndOfInput(BaseException):
    """The parent closed our input, or reads our output no more: leave user code and end.

    It is a BaseException, so that user code which catches every Exception does not catch it.
    """


class TaskIdsWait:
    """An emit that waits for its task ids."""

    __slots__ = ("tasks",)

    def __init__(self) -> None:
        self.tasks: list[int] | None = None


class NoBlocks:
    """A task whose tuples travel one by one (see exchange.wire.Blocks)."""

    def close_blocks(self) -> None: ...

    def park(self) -> None: ...

    def unpark(self) -> None: ...


class Wire:
    """Reads events, answers heartbeats, and passes everything else to ``on_tuple`` and ``on_command``, one by one.

    Args:
        connection: The connection.
        fd: The descriptor of the input.
        output: The connection's output.
        work: The work of user code, for the watchdog.
        events: The messages read with the handshake.
        reports_busy: Whether the parent is a local one, to which it reports how long the component was busy.

    Attributes:
        timers: A bolt's timers; a spout's run at its commands, since Storm listens to it only then.
        blocks: The unfinished blocks.
        on_tuple: Handles a bolt's tuples.
        on_command: Handles a spout's commands.
    """

    def __init__(
        self,
        connection: ChildConnection,
        fd: int,
        output: Output,
        work: Work,
        events: Iterable[Message] = (),
        reports_busy: bool = False,
    ) -> None:
        self.connection = connection
        self.output = output
        self.work = work
        self.timers: TaskTimers | None = None
        self.blocks: Blocks = NoBlocks()
        self.on_tuple: Callable[[Tuple], None] = _not_a_bolt
        self.on_command: Callable[[Message], None] = _not_a_spout
        self._fd = fd
        self._events: Iterator[Message] = iter(())  # the events that were read last, decoded one by one
        self._backlog: deque[Message] = deque()  # events that came while user code waited, or while the pipe was full
        self._unread = 0  # bytes that the backlog's events took
        self._failure: RemoteProtocolError | None = None
        self._ended = False
        self.stopping = False  # a signal came while the output was written
        self.closing = False  # no input is handled any more
        self.reports_busy = reports_busy
        self._began = monotonic()
        # The seconds in which it waited for input or for a full pipe, and the instant since when it waits again. They
        # are set together, since the watchdog reads them, too.
        self._waits: tuple[float, float | None] = (0.0, None)
        self._reported_at = 0.0  # the time of the last report to the parent of how long the component was busy
        self._main = get_ident()
        self._buffer = connection.write
        self._poll: Any = None  # for the input, while timers are pending
        self._enqueue(events)

    def read(self) -> bytes:
        """Wait for input.

        Raises:
            EndOfInput: The input has ended.
        """
        if self._failure is not None:
            raise self._failure
        if self._ended:
            raise EndOfInput
        start = self._pause()
        data = os.read(self._fd, READ)
        self._resume(start)
        if not data:
            self._ended = True
            self.connection.receive_data(data)
            raise EndOfInput
        self._unread += len(data)
        return data

    def busy_secs(self) -> float:
        """Return the seconds since the component's start in which it waited neither for input nor for a full pipe."""
        waited, since = self._waits
        return max((monotonic() if since is None else since) - self._began - waited, 0.0)

    def sleep(self, secs: float) -> None:
        """Wait for nothing but time, which does not count as busy."""
        start = self._pause()
        sleep(secs)
        self._resume(start)

    def _pause(self) -> float:
        now = monotonic()
        self._waits = self._waits[0], now
        return now

    def _resume(self, start: float) -> None:
        self._waits = self._waits[0] + monotonic() - start, None

    def busy_to_report(self) -> float | None:
        """Return ``busy_secs`` if it is time to report it to a local parent, otherwise None."""
        now = monotonic()
        if now - self._reported_at < _REPORT_SECS:
            return None
        self._reported_at = now
        return self.busy_secs()

    def read_ahead(self) -> None:
        """Read while user code waits, or while the pipe is full; events are queued in order."""
        self._enqueue(self._events)
        if not self._backlog:
            self._enqueue(self.connection.iter_data(self.read()))

    def _enqueue(self, events: Iterable[Message]) -> None:
        try:
            for event in events:
                self._backlog.append(event)
        except RemoteProtocolError as error:
            self._failure = error  # raised after everything before it was handled

    def loop(self) -> None:
        """Handle events until the input ends."""
        backlog = self._backlog
        on_tuple = self.on_tuple
        connection = self.connection
        work = self.work
        self._began, self._waits = monotonic(), (0.0, None)
        # A spout reports it with the answer to a command.
        reports_busy = self.reports_busy and self.on_command is _not_a_spout
        blocks = self.blocks
        timers = self.timers
        pending: Any = () if timers is None else timers.heap  # empty for a component without timers
        while True:
            while backlog:
                self._handle(backlog.popleft())
                if pending:
                    self.run_timers()
            if pending:
                self.run_timers()
            self._unread = 0
            if reports_busy:
                self._report_to_parent()
            self.flush()
            if self.output.closed or self.stopping:
                raise EndOfInput
            if backlog:
                continue
            # While this thread waits, other threads' messages are sent at once.
            connection.write = self._send_now
            try:
                blocks.park()
                if pending and not self._wait_for_input():
                    continue
                data = self.read()
            finally:
                connection.write = self._buffer
                blocks.unpark()
            if work.parked and (len(data) > _HEARTBEAT_SIZE or HEARTBEAT not in data):
                work.begins()
            self._events = connection.iter_data(data)
            for event in self._events:
                if type(event) is Tuple:
                    on_tuple(event)
                else:
                    self._handle(event)
                if pending:
                    self.run_timers()

    def _report_to_parent(self) -> None:
        """Report to a local parent that no timer is awaited any more, and how long the component was busy."""
        if self.timers is not None and self.timers.awaited_reported:
            self.timers.report_none_awaited()
        busy = self.busy_to_report()
        if busy is not None:
            self.connection.sign_of_life(busy)

    def _wait_for_input(self) -> bool:
        """Wait for input until the next timer is due; return whether there is input."""
        timers = self.timers
        assert timers is not None
        if timers.next_due == NEVER or self._ended or self._failure is not None:
            return True
        if self._poll is None:
            import select

            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLIN)
        start = self._pause()
        left = timers.next_due - start
        # Rounded up, since a poll that ends too early would only be repeated.
        ready = self._poll.poll(int(min(left * 1000, _LONGEST_POLL)) + 1 if left > 0 else 0)
        self._resume(start)
        return bool(ready)

    def run_timers(self) -> None:
        """Run the timers that are due, between two tuples."""
        timers, work = self.timers, self.work
        assert timers is not None
        now = timers.clock.monotonic()
        if timers.next_due > now:
            return
        work.begins()
        last = timers.serial
        while (handle := timers.take(now, last)) is not None:
            # A new object for each call: if the watchdog sees the same one again, the call hangs.
            work.doing = [handle]
            timers.fire(handle)
        work.doing = None

    def _handle(self, event: Message) -> None:
        if type(event) is Tuple:
            self.on_tuple(event)
        elif type(event) is Heartbeat:
            self.connection.sync(None, self.busy_secs() if self.reports_busy else None)
        elif type(event) is TaskIds:
            self._deliver(event)
        else:
            self.on_command(event)

    def deliver_later(self, callback: Callable[[list[int]], None], tasks: list[int]) -> None:
        """Call a callback with task ids that are known, when the present call into the component has returned.

        In another thread it is called at once, since the main thread may be waiting for input.
        """
        if get_ident() == self._main:
            self._backlog.append(TaskIds(tasks, callback))
        else:
            callback(tasks)

    def _deliver(self, event: TaskIds) -> None:
        """Give task ids to the emit that asked for them. Its callback is user code and may be slow."""
        token = event.token
        if type(token) is TaskIdsWait:
            token.tasks = event.tasks
            return
        work = self.work
        outer, work.doing = work.doing, event
        token(event.tasks)
        work.doing = outer

    def _send_now(self, text: str) -> None:
        self._buffer(text)
        if get_ident() != self._main:
            self.output.flush_some()

    def flush(self) -> None:
        """Send everything; read while the pipe is full, so that a parent that writes does not block."""
        self.blocks.close_blocks()
        if self.output.flush_some():
            return
        import select

        reading = False
        while not self.output.flush_some():
            if self.stopping:
                raise EndOfInput
            poll = select.poll()
            poll.register(self.output.fd, select.POLLOUT)
            if reading and not self._ended and self._failure is None and self._unread < _MAX_BACKLOG:
                poll.register(self._fd, select.POLLIN)
            start = self._pause()
            ready = poll.poll(_PATIENCE)
            self._resume(start)
            if not ready and not reading:
                reading = True  # a parent that does not read may be waiting for us to read
                self._enqueue(self._events)
            if any(fd == self._fd for fd, _ in ready):
                try:
                    self._enqueue(self.connection.iter_data(self.read()))
                except EndOfInput:
                    pass  # everything read before is still handled
                except RemoteProtocolError as error:
                    self._failure = error

    def abandon(self, seconds: float = 2.0) -> None:
        """Send what is left at the end, for as long as the parent takes it."""
        import select

        self.blocks.close_blocks()
        until = monotonic() + seconds
        while not self.output.flush_some() and monotonic() < until:
            select.select([], [self.output.fd], [], 0.1)

    def check_wait(self) -> None:
        """Raise LocalProtocolError if task ids can't be waited for; called before the emit is sent."""
        if get_ident() != self._main:
            raise LocalProtocolError(
                "need_task_ids waits by reading, which only the thread of process() and next_tuple() may do; "
                "use on_task_ids in other threads"
            )
        if self.closing:
            raise LocalProtocolError("need_task_ids waits for an answer, which close() would not get; emit without it")

    def wait_for(self, wait: TaskIdsWait) -> list[int]:
        """Flush, and read until the task ids arrive; queue the tuples that arrive before, and handle the commands.

        Without ackers Storm sends an ``ack`` command before the task ids, and waits for its sync.
        """
        self.work.waiting = True
        later: list[Message] = []
        try:
            while wait.tasks is None:
                self.flush()
                if self.output.closed or self.stopping:
                    raise EndOfInput
                if not self._backlog:
                    self.read_ahead()
                while self._backlog and wait.tasks is None:
                    event = self._backlog.popleft()
                    if type(event) is Tuple:
                        later.append(event)
                    else:
                        self._handle(event)
        finally:
            self._backlog.extendleft(reversed(later))
            self.work.waiting = False
        return wait.tasks


def _not_a_bolt(tup: Tuple) -> None:
    raise RemoteProtocolError(f"a spout was sent {tup!r}, which is for bolts")


def _not_a_spout(command: Message) -> None:
    raise RemoteProtocolError(f"a bolt was sent {command!r}, which is for spouts")
