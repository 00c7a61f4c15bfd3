"""The base of spouts' and bolts' tasks in child processes: one program after the other."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from time import monotonic
from typing import TYPE_CHECKING

from multilang.child.process import UNRECOVERABLE, UNUSABLE
from multilang.component.task_report import read_report
from multilang.engine.program import Program
from multilang.engine.task import Restarts
from multilang.errors import LocalClusterError, TaskStartError
from multilang.protocol import Emit, Error, Log, Metrics, Pid
from multilang.protocol.parent import ParentConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.engine.plan import Route, TaskPlan
    from multilang.engine.program import ProgramDiedError
    from multilang.local.process.host import TaskHost
    from multilang.protocol.messages import Message

_WARNING, _ERROR = 3, 4  # levels of a log
_SILENT_SECS = 10.0  # after which a program that owes an answer is named,
_SILENT_PART = 1 / 3  # or after this part of the time after which it is ended
_BURY_SECS = 0.01  # between two looks at a program that is about to exit


class ProcessTask(ABC):
    """One task.

    Attributes:
        program: The program; None between a death and the next start.
        conn: The connection to this program, or to the last one.
        worked: Whether this program did something beyond the handshake; a spout's: whether it emitted.
        answered: Whether this program answered a heartbeat, so that its start is over.
        vain: The stage at which a program without work died, for a message.
        blocked_by: The number of full queues downstream; while there are any, its output is not read.
        busy_reported: The seconds in which this child was busy by its last report; None: it reported none.
    """

    kind: Any = ""

    def __init__(self, host: TaskHost, plan: TaskPlan) -> None:
        self.host = host
        self.plan = plan
        self.stats = host.stats[plan.id]
        self.program: Program | None = None
        self.conn = ParentConnection(self.kind)
        self.worked = False
        self.answered = False
        self.vain = "at its start"
        self.blocked_by = 0
        self.busy_reported: float | None = None
        self._restarts = Restarts()
        self._busy_before: float | None = None  # of the programs before this one
        self._complaint = ""  # the last error that this program reported
        self._silent_secs = min(_SILENT_SECS, plan.settings.subprocess_timeout_secs * _SILENT_PART)
        self._silence = (
            0.0  # the seconds for which it was silent when this was logged last; 0: it is not, or not for long
        )
        self._logger = logging.getLogger(plan.component)

    # ---- a program's life cycle ----

    def start(self) -> None:
        """Start a program and shake hands."""
        host = self.host
        if host.ending:
            return
        spec = self.plan.spec
        self.conn = ParentConnection(self.kind, max_buffer=host.max_buffer)
        self.conn.setup(self.plan.conf, host.pid_dir, self.plan.context)
        try:
            self.program = Program(
                self.conn,
                host.pipes,
                host.commands.of(spec),
                host.env if spec.command is None else host.program_env,
                host.commands.folder_of(spec),
                self.plan.settings.subprocess_timeout_secs,
                self.handle,
                self._print,
                on_writable=self.flush,
                on_death=lambda: host.timers.after(0.0, self._bury),
            )
        except TaskStartError as error:
            host.fail(TaskStartError(f"{self.plan}: {error}"))
            return
        self.worked = self.answered = False
        self.vain = "at its start"
        self._complaint = ""
        self._busy_before, self.busy_reported = self.busy_secs, None
        self.program.set_reading(not self.blocked_by)
        self.flush()

    def _bury(self) -> None:
        """Wait, without blocking, for the exit of a program that dies; then report it and start another."""
        program, host = self.program, self.host
        if program is None:
            return
        death = program.bury(listen=not host.ending)
        if death is None:
            host.timers.after(_BURY_SECS, self._bury)
            return
        self.program = None
        self.stats.call, self._silence = None, 0.0
        if host.ending:
            return
        host.report(self.plan, death.reason, fatal=True)
        self.lose()
        self._again(death)

    def _again(self, death: ProgramDiedError) -> None:
        """Start the next program when it is time to; the topology ends if there is to be none."""
        if death.status == UNRECOVERABLE:
            self.host.fail(LocalClusterError(f"topology {self.host.name!r} ends: {self._complaint or death.reason}"))
            return
        delay = self._restarts.delay_after(
            death.secs,
            worked=self.worked,
            answered=self.answered,
            killed=death.killed,
            hopeless=death.status == UNUSABLE,
        )
        if delay is None:
            command = " ".join(self.host.commands.of(self.plan.spec))
            why = f"{death.reason}; it had reported:\n{self._complaint}" if self._complaint else death.reason
            bad_starts = self._restarts.bad_starts
            times = f"died {bad_starts} times" if bad_starts > 1 else "died"
            self.host.fail(TaskStartError(f"{self.plan} {times} {self.vain} ({command}); the last time {why}"))
            return
        self.stats.restarts += 1
        self.host.timers.after(delay, self.start)

    @abstractmethod
    def lose(self) -> None:
        """Drop the tuples that died with the program: a bolt's fail at once, a spout's source must redeliver them."""

    def check(self) -> None:
        """Check that the program is alive, and name one that is silent for long; called each second."""
        program, stats = self.program, self.stats
        if program is None:
            return
        program.look()
        due = program.owes if program.reading else ""
        silence = self.host.now - program.received_at if due else 0.0
        if silence < self._silent_secs:
            if self._silence:
                self._warn("has been heard of again")
                self._silence = 0.0
                if stats.call is not None and not stats.call[0]:
                    stats.call = None
        elif silence >= 2 * self._silence:
            self._silence, stats.call = silence, stats.call or ("", program.received_at, None)
            self._warn(
                f"has not been heard of for {silence:.0f} s: it did not {due}; its process is stopped, or in a call of "
                "C code that lets no other thread run"
            )

    def _warn(self, text: str) -> None:
        self.host.log(self.plan, f"{self.plan.component} task {self.plan.id} {text}", _WARNING)

    # ---- its pipes ----

    @property
    def ready(self) -> bool:
        """True if there is a program that has answered the handshake."""
        return self.program is not None and self.program.ready

    def flush(self) -> None:
        """Write to the program as much as it takes, and the rest later."""
        if self.program is not None:
            self.program.write()

    def block(self, by: int) -> None:
        """Count a queue downstream that became full (1), or is no longer full (-1)."""
        self.blocked_by += by
        if self.program is not None:
            if not self.blocked_by:
                self.program.received_at = self.host.now  # its output was not read meanwhile
            self.program.set_reading(not self.blocked_by or self.host.ending)

    def _print(self, line: str) -> None:
        self._logger.warning("stderr: %s", line, extra={"task": self.plan.id})

    @abstractmethod
    def handle(self, message: Any) -> None:
        """Handle one message of the child.

        Raises:
            RemoteProtocolError: The message breaks the protocol, which ends the child.
        """

    def handle_any(self, message: Message) -> None:
        """Handle the messages that both spouts and bolts may send."""
        if isinstance(message, Log):
            report = read_report(message.message)
            if report is not None:
                self.stats.metrics, call = report.metrics, report.call
                self.stats.call = None if call is None else (call[0], monotonic() - call[1], call[2])
                return
            if message.message == self._complaint and message.level == _ERROR:
                return  # a component's process sends it twice: to Storm's UI and to Storm's log
            self.host.log(self.plan, message.message, message.level)
        elif isinstance(message, Error):
            self._complaint = message.message
            self.host.report(self.plan, message.message)
        elif isinstance(message, Metrics):
            self.host.metric(self.plan, message.name, message.params)
        elif isinstance(message, Pid):
            # Storm's text.
            self._logger.info("Launched subprocess with pid %d", message.pid, extra={"task": self.plan.id})
            self.started()

    @abstractmethod
    def started(self) -> None:
        """Note that the handshake was answered."""

    @property
    def busy_secs(self) -> float | None:
        """The seconds in which its children were busy, as far as they reported; None: none of them did."""
        if self.busy_reported is None:
            return self._busy_before
        return (self._busy_before or 0.0) + self.busy_reported

    def count_busy(self) -> None:
        """Update the count of busy seconds: a child that owes an answer is busy since it was asked."""
        busy = self.busy_secs
        is_read = self.program is not None and self.program.reading
        since = self.asked_at if self.busy_reported is not None and is_read else None
        self.stats.busy = busy if busy is None or since is None else busy + max(self.host.now - since, 0.0)

    @property
    @abstractmethod
    def asked_at(self) -> float | None:
        """The time of the oldest question that the child has not answered; None: there is none."""

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
        """Queue the tuple for its targets, and answer with their ids if asked for.

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
