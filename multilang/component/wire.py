"""A component on the multi-lang wire: its collector, and the loop that reads."""

from __future__ import annotations

import os
from _thread import get_ident
from collections import deque
from time import monotonic, sleep

from multilang.component.collector import BoltCollector, Collector, SpoutCollector, many_anchored
from multilang.component.timers import NEVER
from multilang.protocol.codec import id_as_received
from multilang.protocol.errors import LocalProtocolError, RemoteProtocolError
from multilang.protocol.fast import fast_ack, fast_emit
from multilang.protocol.messages import (
    HEARTBEAT_STREAM,
    Ack,
    Activate,
    Deactivate,
    Fail,
    Heartbeat,
    Next,
    TaskIds,
    Tuple,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.component.collector import Anchors, Settle
    from multilang.component.output import Output
    from multilang.component.runner import SpoutRunner
    from multilang.component.timers import TaskTimers
    from multilang.component.watchdog import Watchdog
    from multilang.protocol import ChildConnection
    from multilang.protocol.messages import Message, Values

_READ = 65536  # bytes; more would cost latency and a spout's rate (256 KiB: 1.5 times)
HEARTBEAT = HEARTBEAT_STREAM.encode()
_HEARTBEAT_SIZE = 200  # bytes; anything longer holds more than a heartbeat
_PATIENCE = 10  # milliseconds to wait for a full pipe before reading goes on meanwhile
_MAX_BACKLOG = 64 * 1024 * 1024  # bytes read ahead while the parent does not read; after that, reading stops, too
_TELL_SECS = 0.2  # between two times that a local parent is told, unasked, how long the component was busy
_LONGEST_POLL = 86_400_000  # milliseconds; C takes no number that is much larger
_MAX_NESTED = 50  # reliable emits of a spout, without ackers, between two waits for their acks
# Seconds; "if you have no tuples to emit for a next, you should sleep for a small amount of time before syncing".
_IDLE_SLEEPS = (0.001, 0.002, 0.004, 0.008, 0.016)


class EndOfInput(BaseException):
    """The parent closed our input, or reads our output no more: leave user code and end.

    It is a BaseException, so that user code which catches every Exception does not catch it.
    """


class _Wait:
    """An emit that waits for its task ids."""

    __slots__ = ("tasks",)

    def __init__(self) -> None:
        self.tasks: list[int] | None = None


class Wire:
    """Reads events, answers heartbeats, and passes everything else to ``on_tuple`` and ``on_command``, one by one."""

    def __init__(self, connection: ChildConnection, fd: int, output: Output) -> None:
        self.connection = connection
        self.output = output
        self.watchdog: Watchdog | None = None
        self.timers: TaskTimers | None = None
        """A bolt's timers; a spout's run at its commands, since Storm listens to it only then."""
        self.on_tuple: Callable[[Tuple], None] = _not_a_bolt
        self.on_command: Callable[[Message], None] = _not_a_spout
        self._fd = fd
        self._events: Iterator[Message] = iter(())  # the events that came last, decoded one by one
        self._backlog: deque[Message] = deque()  # events that came while user code waited, or while the pipe was full
        self._unread = 0  # bytes that the backlog's events took
        self._failure: RemoteProtocolError | None = None
        self._ended = False
        self.stopping = False  # a signal came while the output was written
        self.closing = False  # nothing that comes in is handled any more
        self.tells_busy = False  # the parent is our own, and wants to know how long the component was busy
        self._began = monotonic()
        self._waited = 0.0  # seconds, for input or for a full pipe
        self._told = 0.0  # the time when the parent was last told how long the component was busy
        self._main = get_ident()
        self._buffer = connection.write
        self._poll: Any = None  # for the input, while timers are pending

    def read(self) -> bytes:
        """Wait for input.

        Raises:
            EndOfInput: The input has ended.
        """
        if self._failure is not None:
            raise self._failure
        if self._ended:
            raise EndOfInput
        start = monotonic()
        data = os.read(self._fd, _READ)
        self._waited += monotonic() - start
        if not data:
            self._ended = True
            self.connection.receive_data(data)
            raise EndOfInput
        self._unread += len(data)
        return data

    def busy_secs(self) -> float:
        """Return the seconds since the component's start in which it waited neither for input nor for a full pipe."""
        return max(monotonic() - self._began - self._waited, 0.0)

    def busy_to_tell(self) -> float | None:
        """Return ``busy_secs`` if it is time to tell it to a local parent, otherwise None."""
        now = monotonic()
        if now - self._told < _TELL_SECS:
            return None
        self._told = now
        return self.busy_secs()

    def read_on(self) -> None:
        """Read while user code waits, or while the pipe is full; events are kept for later, in order."""
        self._keep(self._events)
        if not self._backlog:
            self._keep(self.connection.iter_data(self.read()))

    def _keep(self, events: Iterator[Message]) -> None:
        try:
            for event in events:
                self._backlog.append(event)
        except RemoteProtocolError as error:
            self._failure = error  # raised after everything before it was handled

    def next_event(self) -> Message:
        """Return the next event in order; used for the handshake, before ``loop``."""
        while not self._backlog:
            self.read_on()
        return self._backlog.popleft()

    def loop(self) -> None:
        """Handle events until the input ends."""
        backlog = self._backlog
        on_tuple = self.on_tuple
        connection = self.connection
        watchdog = self.watchdog
        assert watchdog is not None
        self._began, self._waited = monotonic(), 0.0
        tells_busy = self.tells_busy and not watchdog.is_spout  # a spout tells it with the answer to a command
        timers = self.timers
        pending: Any = () if timers is None else timers.heap  # empty for a component without timers
        while True:
            while backlog:
                self._handle(backlog.popleft())
                if pending:
                    self._run_timers()
            if pending:
                self._run_timers()
            self._unread = 0
            if tells_busy:
                self._tell_parent()
            self.flush()
            if self.output.closed or self.stopping:
                raise EndOfInput
            if backlog:
                continue
            # While this thread waits, other threads' messages are sent at once.
            connection.write = self._send_now
            try:
                if pending and not self._wait_for_input():
                    continue
                data = self.read()
            finally:
                connection.write = self._buffer
            if watchdog.parked and (len(data) > _HEARTBEAT_SIZE or HEARTBEAT not in data):
                watchdog.wake()
            self._events = connection.iter_data(data)
            for event in self._events:
                if type(event) is Tuple:
                    on_tuple(event)
                else:
                    self._handle(event)
                if pending:
                    self._run_timers()

    def _tell_parent(self) -> None:
        """Tell our own parent that no timer is to be waited for any more, and how long the component was busy."""
        if self.timers is not None and self.timers.told:
            self.timers.tell_none_awaited()
        busy = self.busy_to_tell()
        if busy is not None:
            self.connection.sign_of_life(busy)

    def _wait_for_input(self) -> bool:
        """Wait for input until the next timer is due; return whether there is something to read."""
        timers = self.timers
        assert timers is not None
        if timers.next_due == NEVER or self._ended or self._failure is not None:
            return True
        if self._poll is None:
            import select

            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLIN)
        start = monotonic()
        left = timers.next_due - start
        # Rounded up, since a poll that ends too early would only be repeated.
        ready = self._poll.poll(min(int(left * 1000) + 1, _LONGEST_POLL) if left > 0 else 0)
        self._waited += monotonic() - start
        return bool(ready)

    def _run_timers(self) -> None:
        """Run the timers that are due, between two tuples."""
        timers, watchdog = self.timers, self.watchdog
        assert timers is not None
        assert watchdog is not None
        now = timers.clock.monotonic()
        if timers.next_due > now:
            return
        if watchdog.parked:
            watchdog.wake()
        last = timers.serial
        while (handle := timers.take(now, last)) is not None:
            # A new object for each call: the watchdog takes the same one, seen again, for a call that hangs.
            watchdog.busy = [handle]
            timers.fire(handle)
        watchdog.busy = None

    def _handle(self, event: Message) -> None:
        if type(event) is Tuple:
            self.on_tuple(event)
        elif type(event) is Heartbeat:
            self.connection.sync(None, self.busy_secs() if self.tells_busy else None)
        elif type(event) is TaskIds:
            self._deliver(event)
        else:
            self.on_command(event)

    def _deliver(self, event: TaskIds) -> None:
        """Give task ids to the emit that asked for them. Its callback is user code and may be slow."""
        token = event.token
        if type(token) is _Wait:
            token.tasks = event.tasks
            return
        watchdog = self.watchdog
        assert watchdog is not None
        outer, watchdog.busy = watchdog.busy, event
        token(event.tasks)
        watchdog.busy = outer

    def _send_now(self, text: str) -> None:
        self._buffer(text)
        if get_ident() != self._main:
            self.output.flush_some()

    def flush(self) -> None:
        """Send everything; while the pipe is full, go on reading, so that a parent that writes does not block."""
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
            start = monotonic()
            ready = poll.poll(_PATIENCE)
            self._waited += monotonic() - start
            if not ready and not reading:
                reading = True  # a parent that does not read may be waiting for us to read
                self._keep(self._events)
            if any(fd == self._fd for fd, _ in ready):
                try:
                    self._keep(self.connection.iter_data(self.read()))
                except EndOfInput:
                    pass  # everything read before is still handled
                except RemoteProtocolError as error:
                    self._failure = error

    def abandon(self, seconds: float = 2.0) -> None:
        """Send what is left at the end, for as long as the parent takes it."""
        import select

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

    def wait_for(self, wait: _Wait) -> list[int]:
        """Flush, and read until the task ids have come; keep the tuples that come meanwhile, and handle the commands.

        Without ackers Storm sends an ``ack`` command before the task ids, and waits for its sync.
        """
        watchdog = self.watchdog
        if watchdog is not None:
            watchdog.waiting = True
        later: list[Message] = []
        try:
            while wait.tasks is None:
                self.flush()
                if self.output.closed or self.stopping:
                    raise EndOfInput
                if not self._backlog:
                    self.read_on()
                while self._backlog and wait.tasks is None:
                    event = self._backlog.popleft()
                    if type(event) is Tuple:
                        later.append(event)
                    else:
                        self._handle(event)
        finally:
            self._backlog.extendleft(reversed(later))
            if watchdog is not None:
                watchdog.waiting = False
        return wait.tasks


class _WireCollector(Collector):
    """The calls that both collectors share."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire
        self._connection = wire.connection

    def log(self, message: str, level: int = 2) -> None:
        """See Collector."""
        self._connection.log(message, level)

    def report_error(self, message: str) -> None:
        """Report an error as Collector says.

        Repeated errors are counted for Storm. An embedded cluster gets each of them, and counts by itself.
        """
        watchdog = self._wire.watchdog
        if watchdog is None or watchdog.repeats is None:
            self._connection.error(message)
        else:
            watchdog.repeats.report(None, message)

    def report_metric(self, name: str, params: Any) -> None:
        """See Collector."""
        self._connection.metrics(name, params)

    def _asked(
        self, send: Callable[[Any], None], task: int | None, need: bool, callback: Callable[[list[int]], None] | None
    ) -> list[int] | None:
        """Send an emit whose task ids are wanted; those of a direct emit are known."""
        if task is not None:
            send(None)
            if callback is not None:
                callback([task])
            return [task] if need else None
        if not need:
            send(callback)
            return None
        self._wire.check_wait()
        wait = _Wait()
        send(wait)
        tasks = self._wire.wait_for(wait)
        if callback is not None:
            callback(tasks)
        return tasks


class WireBoltCollector(_WireCollector, BoltCollector):
    """The collector of a bolt on the wire."""

    takes_threads = True

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        connection = wire.connection
        # The three functions that are called for every tuple have no call in between.
        self.ack = fast_ack(connection)
        self.emit = fast_emit(connection, self._emit)
        self.emit_anchored = fast_emit(connection, self._emit, self.scope)
        self.emit_many = connection.emit_many
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)
        self.fail = connection.fail

    def _emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send any emit; the fast ones come here with what they leave out."""
        emit = self._connection.emit
        if need_task_ids or on_task_ids is not None:
            return self._asked(
                lambda token: emit(values, stream, anchors, direct_task, token),
                direct_task,
                need_task_ids,
                on_task_ids,
            )
        emit(values, stream, anchors, direct_task)
        return None

    def received(self, tup: Tuple | str) -> Tuple:
        """See BoltCollector."""
        return self._connection.received(tup)

    def deferred_ack(self, kept: list[Any]) -> Settle:
        """Return an ``ack`` that adds the ids of tuples to ``kept``; see BoltCollector."""
        unfinished, received, now, append = self._connection.unfinished, self.received, self.ack, kept.append

        def ack(tup: Tuple | str) -> None:
            if type(tup) is not Tuple or not tup.unfinished:
                tup = received(tup)
            if tup.task < 0 and tup.is_tick:
                now(tup)
                return
            tup.unfinished = False
            if unfinished:
                unfinished.pop(tup.id, None)
            append(tup.id)

        return ack

    def finish(self, kept: list[Any], ok: bool) -> None:
        """See BoltCollector."""
        self._connection.finish(kept, ok)
        kept.clear()


class WireSpoutCollector(_WireCollector, SpoutCollector):
    """The collector of a spout on the wire."""

    acks_at_once = False
    """True if an emit acks its tuple at once, before Storm's command comes."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._emit = wire.connection.emit_from_spout
        self.emitted = 0

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """See SpoutCollector."""
        if not self._connection.commands_owed:
            raise LocalProtocolError(
                f"component {self._connection.component!r} emits while Storm does not listen to its spout; emit in "
                "next_tuple, ack, fail, activate or deactivate (other threads put what they find into a queue for these methods)"
            )
        self.emitted += 1
        if need_task_ids or on_task_ids is not None:
            return self._asked(
                lambda token: self._emit(values, tup_id, stream, direct_task, token),
                direct_task,
                need_task_ids,
                on_task_ids,
            )
        self._emit(values, tup_id, stream, direct_task)
        return None


class UnackedSpoutCollector(WireSpoutCollector):
    """The collector of a spout when there are no ackers.

    Storm then acks a reliable emit at once, inside of it, and reads the next emit inside of that ack. So each emit of
    one command nests deeper, until Java's stack overflows and the worker dies. To prevent that, an emit waits for its
    task ids now and then: they come when all acks before them are done.

    A spout in Java gets this ack before its emit returns. Here Storm's command is read later, usually after
    ``next_tuple``. So the emit itself calls ``acked``, and the command is only answered.
    """

    acks_at_once = True

    def __init__(self, wire: Wire, acked: Callable[[Any], None]) -> None:
        super().__init__(wire)
        self._acked = acked
        self._nested = 0
        self._main = get_ident()

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """See SpoutCollector."""
        wait = need_task_ids
        if tup_id is not None:
            self._nested += 1
            if self._nested >= _MAX_NESTED and direct_task is None and get_ident() == self._main:
                wait = True  # a direct emit has no answer to wait for
        if wait and direct_task is None:
            self._nested = 0
        tasks = super().emit(values, tup_id, stream, direct_task, wait, on_task_ids)
        if tup_id is not None:
            self._acked(id_as_received(tup_id))
        return tasks if need_task_ids else None


def _not_a_bolt(tup: Tuple) -> None:
    raise RemoteProtocolError(f"a spout was sent {tup!r}, which is for bolts")


def _not_a_spout(command: Message) -> None:
    raise RemoteProtocolError(f"a bolt was sent {command!r}, which is for spouts")


def spout_commands(
    wire: Wire, runner: SpoutRunner, collector: WireSpoutCollector, local_parent: bool
) -> Callable[[Message], None]:
    """Return the function that handles a spout's commands and answers each with one sync."""
    watchdog = wire.watchdog
    assert watchdog is not None
    connection = wire.connection
    timers = runner.timers
    pending = timers.heap
    idle = 0

    def handle(event: Message) -> None:
        nonlocal idle
        kind = type(event)
        outer, watchdog.busy = watchdog.busy, event
        exhausted = None
        if pending and outer is None and (kind is Ack or kind is Fail):  # outer: a command that came inside of an emit
            timers.run_due()
        if kind is Next:
            before = collector.emitted
            runner.next()
            if local_parent:
                exhausted = runner.exhausted()
            elif collector.emitted != before:
                idle = 0
            else:
                wire.flush()
                watchdog.busy = outer
                secs = _IDLE_SLEEPS[min(idle, len(_IDLE_SLEEPS) - 1)]
                sleep(max(0.0, min(secs, timers.next_due - timers.clock.monotonic())) if pending else secs)
                idle += 1
        elif kind is Ack:
            if not collector.acks_at_once:
                runner.ack(event.id)  # type: ignore[attr-defined]
        elif kind is Fail:
            idle = 0
            runner.fail(event.id)  # type: ignore[attr-defined]
        elif kind is Activate:
            runner.activate()
        elif kind is Deactivate:
            runner.deactivate()
        if local_parent:
            left = timers.next_due - timers.clock.monotonic() if pending else NEVER
            connection.sync(exhausted, wire.busy_to_tell(), None if left == NEVER else max(0.0, left))
        else:
            connection.sync(exhausted)
        watchdog.busy = outer

    return handle
