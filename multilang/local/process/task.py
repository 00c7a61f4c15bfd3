"""What playing a ShellSpout and playing a ShellBolt have in common: one child after the other, and the wire to it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from multilang.component.process import UNRECOVERABLE, UNUSABLE
from multilang.local.errors import LocalClusterError, TaskStartError
from multilang.protocol import Emit, Error, Log, Metrics, Pid, RemoteProtocolError
from multilang.protocol.parent import ParentConnection
from multilang.runtime.child import Child, how_it_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.local.process.topology import ProcessTopology
    from multilang.protocol.messages import Message
    from multilang.runtime.plan import Route, TaskPlan

START_ATTEMPTS = 5  # deaths in a row before it was started
_FIRST_DELAY_SECS = 0.05
_LONGEST_DELAY_SECS = 10.0
_LONGEST_DELAY_STARTED_SECS = 1.0  # of one that dies of its tuples: others wait for it
_LONG_ENOUGH_SECS = 20.0  # a life that counts as a start that worked, even when nothing came to be done
_ERROR = 4  # a log's level
_REAP_SECS = 0.5  # that a child has to exit after its output ended
_LAST_READS = 64  # of what a child left in its pipe, which may be open yet in a process that it started


class ProcessTask(ABC):
    """One task. ``child`` is None between a death and the next start; ``ready``: the handshake was answered."""

    kind: Any = ""

    def __init__(self, host: ProcessTopology, plan: TaskPlan) -> None:
        self.host = host
        self.plan = plan
        self.stats = host.stats[plan.id]
        self.child: Child | None = None
        self.conn = ParentConnection(self.kind)
        self.ready = False
        self.worked = False  # this child did something beyond the handshake
        self.answered = False  # this child answered a heartbeat, so that its start is behind it
        self.deaths = 0  # in a row, of children that did not work
        self.bad_starts = 0  # in a row, of children that neither worked nor answered
        self.started_at = 0.0
        self.heard_at = 0.0
        self.blocked_by = 0  # full queues downstream: while there are any, its output is not read
        self._reading = False
        self._dying = False
        self._reason = ""
        self._broken = False  # it broke the protocol: what it says from then on means nothing
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
            self.child = Child(command, host.env, folder)
        except OSError as error:
            where = "" if folder is None else f" in {folder}"
            host.fail(TaskStartError(f"{self.plan}: the command {command!r} can't be started{where}: {error}"))
            return
        self._complaint = ""
        self.conn = ParentConnection(self.kind, max_buffer=host.max_buffer)
        self.ready = self.worked = self.answered = self._dying = self._broken = False
        self.started_at = self.heard_at = host.now
        self.conn.setup(self.plan.conf, host.pid_dir, self.plan.context)
        host.watch(self.child.error, self._read_error)
        self._set_reading(not self.blocked_by)
        self.flush()

    def died(self, reason: str, broken: bool = False) -> None:
        """The child broke the protocol (``broken``), ended, or must be taken for dead."""
        child = self.child
        if child is None or self._dying:
            return
        self._dying = True
        self._broken = broken
        self.ready = False
        self._reason = reason
        self._set_reading(False)
        self.host.unwatch_writing(child.input)
        child.close_input()
        self._reap(child, self.host.now + _REAP_SECS)

    def _reap(self, child: Child, deadline: float) -> None:
        """Wait, without blocking, for the child's exit; then say what happened and start another."""
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
            self.host.unwatch(child.error)
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
        """Take what the child said before its end and was not read: it acked that, or said why it ended."""
        for _ in range(_LAST_READS):
            if self._broken or self.host.ending or not (data := child.read()):
                break
            try:
                self._handle_all(self.conn.receive_data(data))
            except RemoteProtocolError as error:
                self._handle_all(error.events)  # type: ignore[arg-type]
                break
        self.ready = False  # it may have been the answer to the handshake

    def _again(self, status: int, reason: str) -> None:
        """Start the next child: at once after a life that did something, else after a growing delay.

        What dies again and again before it was started is given up. What dies of its tuples is not, since the next may be
        others.
        """
        if status == UNRECOVERABLE:
            self.host.fail(LocalClusterError(f"topology {self.host.name!r} ends: {self._complaint or reason}"))
            return
        if self.worked or self.host.now - self.started_at > _LONG_ENOUGH_SECS:
            self.deaths = self.bad_starts = 0
        elif status == -9 and not self._reason:
            self.deaths = max(self.deaths, 1)  # somebody killed it, which says nothing of whether it can start
        else:
            self.deaths += 1
            self.bad_starts = 0 if self.answered else self.bad_starts + 1
        if self.bad_starts >= START_ATTEMPTS or (status == UNUSABLE and self.bad_starts):
            command = " ".join(self.host.commands.of(self.plan.spec))
            why = f"{reason}; it had reported:\n{self._complaint}" if self._complaint else reason
            times = f"died {self.bad_starts} times" if self.bad_starts > 1 else "died"
            self.host.fail(TaskStartError(f"{self.plan} {times} at its start ({command}); the last time {why}"))
            return
        self.stats.restarts += 1
        longest = _LONGEST_DELAY_SECS if self.bad_starts else _LONGEST_DELAY_STARTED_SECS
        delay = min(_FIRST_DELAY_SECS * 2 ** min(self.deaths, 10), longest) if self.deaths else 0.0
        self.host.timers.after(delay, self.start)

    @abstractmethod
    def lose(self) -> None:
        """Let go what died with the child: what a bolt had fails at once, what a spout waited for is its source's."""

    def end(self) -> None:
        """The topology ends: SIGTERM, and the end of its input."""
        if self.child is not None and not self._dying:
            self.host.unwatch_writing(self.child.input)
            self._set_reading(True)  # to see it end, whoever is still full downstream
            self.child.terminate()
            self.child.close_input()

    # ---- its pipes ----

    def flush(self) -> None:
        """Write what was said, as far as its pipe takes it; the rest when it takes more."""
        child = self.child
        if child is None or self._dying or child.input < 0:
            return
        try:
            if child.write(self.conn.data_to_send()):
                self.host.unwatch_writing(child.input)
            else:
                self.host.watch_writing(child.input, self.flush)
        except OSError:
            # It reads no more. Its last words, which say why, may still be in the other pipe.
            self.host.unwatch_writing(child.input)
            child.close_input()
            self._set_reading(True)
            self.host.timers.after(
                _REAP_SECS, lambda: self.died("it closed its input") if self.child is child else None
            )

    def block(self, by: int) -> None:
        """A queue downstream became full (1), or no longer is (-1)."""
        self.blocked_by += by
        if self.child is not None and not self._dying:
            if not self.blocked_by:
                self.heard_at = self.host.now  # nobody listened meanwhile
            self._set_reading(not self.blocked_by or self.host.ending)

    def _set_reading(self, reading: bool) -> None:
        if reading != self._reading and self.child is not None:
            self._reading = reading
            if reading:
                self.host.watch(self.child.output, self.read)
            else:
                self.host.unwatch(self.child.output)

    def read(self) -> None:
        """The child's output is there to be read."""
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
        """One message of the child. Raises RemoteProtocolError for what ends it."""

    def handle_any(self, message: Message) -> None:
        """The messages that a spout and a bolt have in common."""
        if isinstance(message, Log):
            if message.message == self._complaint and message.level == _ERROR:
                return  # a component's process says it twice: to Storm's UI and to Storm's log
            self.host.log(self.plan, message.message, message.level)
        elif isinstance(message, Error):
            self._complaint = message.message
            self.host.report(self.plan, message.message)
        elif isinstance(message, Metrics):
            self.host.metric(self.plan, message.name, message.params)
        elif isinstance(message, Pid):
            self.ready = True
            self._logger.info(
                "Launched subprocess with pid %d", message.pid, extra={"task": self.plan.id}
            )  # Storm's words
            self.started()

    @abstractmethod
    def started(self) -> None:
        """The handshake was answered."""

    def look_after(self) -> None:
        """Called each second: is the child alive?"""
        child = self.child
        if child is None or self._dying:
            return
        if child.poll() is not None:
            # Nothing else tells while its output is not read, or is open yet in a process that it started.
            self.died("")
            return
        if not self._reading:
            return
        silence = self.host.now - self.heard_at
        due = self.due if self.ready else "answer the handshake"
        if due and silence > self.plan.settings.subprocess_timeout_secs:
            child.kill()
            self.died(f"heartbeat timeout: it did not {due} for {silence:.0f} s (topology.subprocess.timeout.secs)")

    @property
    @abstractmethod
    def due(self) -> str:
        """What a child that is ready owes, "answer …"; empty when nothing."""

    def _read_error(self) -> None:
        child = self.child
        if child is None or child.error < 0:
            return
        fd = child.error
        lines = child.read_error()
        if child.error < 0:
            self.host.unwatch(fd)
        for line in lines or ():
            self._logger.warning("stderr: %s", line, extra={"task": self.plan.id})

    # ---- its emits ----

    def route(self, emit: Emit) -> tuple[Route, Sequence[int]]:
        """The stream and the tasks of an emit. Raises RemoteProtocolError for one that is not allowed."""
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
        """Queue the tuple for its targets, and answer with their ids where they are wanted.

        ``rootless``: its edge where ``roots`` is None.
        """
        stats = self.stats
        stats.emitted += 1
        if route.captured is not None:
            self.host.capture(route, emit.values)
        if targets:
            stats.transferred += len(targets)
            bolts = self.host.bolts
            text = self.host.dumps(emit.values)
            for task in targets:
                root, edge = (0, rootless) if roots is None else roots()
                bolts[task].put(route.origin, text, root, edge)
        if emit.need_task_ids:
            self.answer(targets)

    def answer(self, targets: Sequence[int]) -> None:
        """An emit's task ids."""
        self.conn.task_ids(targets)
        self.host.dirty.add(self)
