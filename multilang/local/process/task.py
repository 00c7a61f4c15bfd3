"""The base of spouts' and bolts' tasks in child processes: one child after the other, and the wire to it."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from multilang.child.process import UNRECOVERABLE
from multilang.errors import LocalClusterError, TaskStartError
from multilang.local.process.restarts import Restarts
from multilang.protocol import Emit, Error, Log, Metrics, Pid, RemoteProtocolError
from multilang.protocol.parent import ParentConnection
from multilang.runtime.child import Child, how_it_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.local.process.host import TaskHost
    from multilang.protocol.messages import Message
    from multilang.runtime.plan import Route, TaskPlan

_ERROR = 4  # a log's level
_REAP_SECS = 0.5  # for a child to exit after its output ended
_LAST_READS = 64  # of what a child left in its pipe, which may still be open in a process that it started


class ProcessTask(ABC):
    """One task.

    Attributes:
        child: The child process; None between a death and the next start.
        ready: Whether the handshake was answered.
        worked: Whether this child did something beyond the handshake; a spout's: whether it emitted.
        vain: What a child that did not work came to, for a message.
        answered: Whether this child answered a heartbeat, so that its start is over.
        blocked_by: The number of full queues downstream; while there are any, its output is not read.
        busy_told: The seconds in which this child was busy, as it said last; None: it did not say.
    """

    kind: Any = ""

    def __init__(self, host: TaskHost, plan: TaskPlan) -> None:
        self.host = host
        self.plan = plan
        self.stats = host.stats[plan.id]
        self.child: Child | None = None
        self.conn = ParentConnection(self.kind)
        self.ready = False
        self.worked = False
        self.vain = "at its start"
        self.answered = False
        self.started_at = 0.0
        self.heard_at = 0.0
        self.blocked_by = 0
        self.busy_told: float | None = None
        self._restarts = Restarts()
        self._busy_before: float | None = None  # of the children before this one
        self._reading = False
        self._dying = False
        self._reason = ""
        self._pid: int | None = None  # the process that answered the handshake
        self._broken = False  # it broke the protocol: its further messages mean nothing
        self._complaint = ""  # the last error that this child reported
        self._logger = logging.getLogger(plan.component)

    # ---- a child's life ----

    def start(self) -> None:
        """Start a child and shake hands."""
        host = self.host
        if host.ending:
            return
        command = host.commands.of(self.plan.spec)
        folder = host.commands.folder_of(self.plan.spec)
        try:
            program = self.plan.spec.command is not None
            self.child = Child(command, host.program_env if program else host.env, folder)
        except OSError as error:
            where = "" if folder is None else f" in {folder}"
            host.fail(TaskStartError(f"{self.plan}: the command {command!r} can't be started{where}: {error}"))
            return
        self._complaint = ""
        self._pid = None
        self.conn = ParentConnection(self.kind, max_buffer=host.max_buffer)
        self.vain = "at its start"
        self.ready = self.worked = self.answered = self._dying = self._broken = False
        self._busy_before, self.busy_told = self.busy_secs, None
        self.started_at = self.heard_at = host.now
        self.conn.setup(self.plan.conf, host.pid_dir, self.plan.context)
        host.pipes.watch(self.child.error, self._read_error)
        self._set_reading(not self.blocked_by)
        self.flush()

    def died(self, reason: str, broken: bool = False) -> None:
        """End a child that broke the protocol (``broken``), exited, or must be taken for dead."""
        child = self.child
        if child is None or self._dying:
            return
        self._dying = True
        self._broken = broken
        self.ready = False
        self._reason = reason
        self._set_reading(False)
        self.host.pipes.unwatch_writing(child.input)
        child.close_input()
        self._reap(child, self.host.now + _REAP_SECS)

    def _reap(self, child: Child, deadline: float) -> None:
        """Wait, without blocking, for the child's exit; then report it and start another."""
        status = child.poll()
        if status is None:
            if self.host.now >= deadline:
                child.kill()
            self.host.timers.after(0.01, lambda: self._reap(child, deadline))
            return
        self._read_rest(child)
        self._read_error()
        tail = child.error_tail
        if child.error >= 0:
            self.host.pipes.unwatch(child.error)
        child.close()
        self.child = None
        if self.host.ending:
            return
        reason = self._reason or f"the process {how_it_ended(status)}"
        if self._reason and status:
            reason = f"{reason} (the process {how_it_ended(status)})"
        if tail:
            reason = f"{reason}; the end of its stderr:\n{tail}"
        self.host.report(self.plan, reason, fatal=True)
        self.lose()
        self._again(status, reason)

    def _read_rest(self, child: Child) -> None:
        """Read what the child wrote before its end: acks, or the reason of its end."""
        for _ in range(_LAST_READS):
            if self._broken or self.host.ending or not (data := child.read()):
                break
            try:
                self._handle_all(self.conn.receive_data(data))
            except RemoteProtocolError as error:
                self._handle_all(error.events)  # type: ignore[arg-type]
                break
        self.ready = False  # one of the messages may have been the answer to the handshake

    def _again(self, status: int, reason: str) -> None:
        """Start the next child when it is time to; the topology ends if there is to be none."""
        if status == UNRECOVERABLE:
            self.host.fail(LocalClusterError(f"topology {self.host.name!r} ends: {self._complaint or reason}"))
            return
        delay = self._restarts.delay_after(
            status,
            self.host.now - self.started_at,
            worked=self.worked,
            answered=self.answered,
            ended_by_us=bool(self._reason),
        )
        if delay is None:
            command = " ".join(self.host.commands.of(self.plan.spec))
            why = f"{reason}; it had reported:\n{self._complaint}" if self._complaint else reason
            bad_starts = self._restarts.bad_starts
            times = f"died {bad_starts} times" if bad_starts > 1 else "died"
            self.host.fail(TaskStartError(f"{self.plan} {times} {self.vain} ({command}); the last time {why}"))
            return
        self.stats.restarts += 1
        self.host.timers.after(delay, self.start)

    @abstractmethod
    def lose(self) -> None:
        """Drop the tuples that died with the child: a bolt's fail at once, a spout's source must give them again."""

    def end(self) -> None:
        """End the child, since the topology ends: SIGTERM, and the end of its input."""
        if self.child is not None and not self._dying:
            self.host.pipes.unwatch_writing(self.child.input)
            self._set_reading(True)  # to see its end, even if a queue downstream is full
            self.child.terminate()
            self.child.close_input()

    # ---- its pipes ----

    def flush(self) -> None:
        """Write to the child's pipe as much as it takes, and the rest when it takes more."""
        child = self.child
        if child is None or self._dying or child.input < 0:
            return
        try:
            if child.write(self.conn.data_to_send()):
                self.host.pipes.unwatch_writing(child.input)
            else:
                self.host.pipes.watch_writing(child.input, self.flush)
        except OSError:
            # It reads no more. Its last words, which say why, may still be in the other pipe.
            self.host.pipes.unwatch_writing(child.input)
            child.close_input()
            self._set_reading(True)
            self.host.timers.after(
                _REAP_SECS, lambda: self.died("it closed its input") if self.child is child else None
            )

    def block(self, by: int) -> None:
        """Count a queue downstream that became full (1), or is no longer full (-1)."""
        self.blocked_by += by
        if self.child is not None and not self._dying:
            if not self.blocked_by:
                self.heard_at = self.host.now  # its output was not read meanwhile
            self._set_reading(not self.blocked_by or self.host.ending)

    def _set_reading(self, reading: bool) -> None:
        if reading != self._reading and self.child is not None:
            self._reading = reading
            if reading:
                self.host.pipes.watch(self.child.output, self.read)
            else:
                self.host.pipes.unwatch(self.child.output)

    def read(self) -> None:
        """Read the child's output and handle it."""
        child = self.child
        if child is None or self._dying:
            return
        data = child.read()
        if data is None:
            return
        self.heard_at = self.host.now
        try:
            messages: Sequence[Message] = self.conn.receive_data(data)
        except RemoteProtocolError as error:
            self._handle_all(error.events)  # type: ignore[arg-type]
            self.died(str(error), broken=True)
            return
        if not data:
            self.died("")
            return
        self._handle_all(messages)

    def _handle_all(self, messages: Sequence[Message]) -> None:
        try:
            for message in messages:
                self.handle(message)
        except RemoteProtocolError as error:
            self.died(str(error), broken=True)

    @abstractmethod
    def handle(self, message: Any) -> None:
        """Handle one message of the child.

        Raises:
            RemoteProtocolError: The message breaks the protocol, which ends the child.
        """

    def handle_any(self, message: Message) -> None:
        """Handle the messages that both spouts and bolts may send."""
        if isinstance(message, Log):
            if message.message == self._complaint and message.level == _ERROR:
                return  # a component's process sends it twice: to Storm's UI and to Storm's log
            self.host.log(self.plan, message.message, message.level)
        elif isinstance(message, Error):
            self._complaint = message.message
            self.host.report(self.plan, message.message)
        elif isinstance(message, Metrics):
            self.host.metric(self.plan, message.name, message.params)
        elif isinstance(message, Pid):
            self.ready = True
            self._pid = message.pid
            self._logger.info(
                "Launched subprocess with pid %d", message.pid, extra={"task": self.plan.id}
            )  # Storm's words
            self.started()

    @abstractmethod
    def started(self) -> None:
        """Note that the handshake was answered."""

    def look_after(self) -> None:
        """Check that the child is alive; called each second."""
        child = self.child
        if child is None or self._dying:
            return
        if child.poll() is not None and not self._goes_on(child):
            # There is no other sign while its output is not read, or is still open in a process that it started.
            self.died("")
            return
        if not self._reading:
            return
        silence = self.host.now - self.heard_at
        due = self.due if self.ready else "answer the handshake"
        if due and silence > self.plan.settings.subprocess_timeout_secs:
            child.kill()
            self.died(f"heartbeat timeout: it did not {due} for {silence:.0f} s (topology.subprocess.timeout.secs)")

    def _goes_on(self, child: Child) -> bool:
        """Return whether what was started was a wrapper that has left the program running, as ``setsid`` does."""
        if child.poll() != 0 or self._pid == child.pid:
            return False
        if self._pid is None:
            return True  # it is yet to answer the handshake
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # it is there, and another user's
        return True

    @property
    def busy_secs(self) -> float | None:
        """The seconds in which its children were busy, as far as they said; None: none of them did."""
        if self.busy_told is None:
            return self._busy_before
        return (self._busy_before or 0.0) + self.busy_told

    def count_busy(self) -> None:
        """Bring the count of busy seconds up to date: a child that owes an answer is busy since it was asked."""
        busy = self.busy_secs
        since = self.asked_at if self.busy_told is not None and self._reading else None
        self.stats.busy = busy if busy is None or since is None else busy + max(self.host.now - since, 0.0)

    @property
    @abstractmethod
    def asked_at(self) -> float | None:
        """The time of the oldest question that the child has not answered; None: there is none."""

    @property
    @abstractmethod
    def due(self) -> str:
        """The answer that is expected of a ready child, "answer …"; empty when none is."""

    def _read_error(self) -> None:
        child = self.child
        if child is None or child.error < 0:
            return
        fd = child.error
        lines = child.read_error()
        if child.error < 0:
            self.host.pipes.unwatch(fd)
        for line in lines or ():
            self._logger.warning("stderr: %s", line, extra={"task": self.plan.id})

    # ---- its emits ----

    def route(self, emit: Emit) -> tuple[Route, Sequence[int]]:
        """Return the stream and the tasks of an emit.

        Raises:
            RemoteProtocolError: The emit is not allowed.
        """
        route = self.plan.route(emit)
        return route, route.targets(emit.values, emit.task)

    def deliver(
        self,
        emit: Emit,
        route: Route,
        targets: Sequence[int],
        roots: Callable[[], tuple[Any, int]] | None,
        rootless: int = 0,
    ) -> None:
        """Queue the tuple for its targets, and answer with their ids if they are wanted.

        ``rootless`` is its edge when ``roots`` is None.
        """
        stats = self.stats
        tuples = emit.values[0] if route.carries_blocks else 1
        stats.emitted += tuples
        if route.captured is not None:
            self.host.capture(route, emit.values)
        if targets:
            stats.transferred += tuples * len(targets)
            bolts = self.host.bolts
            text = self.host.dumps(emit.values)
            for task in targets:
                root, edge = (0, rootless) if roots is None else roots()
                bolts[task].put(route.origin, text, root, edge, tuples)
        if emit.need_task_ids:
            self.answer(targets)

    def answer(self, targets: Sequence[int]) -> None:
        """Answer an emit with its task ids."""
        self.conn.task_ids(targets)
        self.host.dirty.add(self)
