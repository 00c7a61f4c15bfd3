"""Components in other languages on Spark: a bolt's program in a Spark task, and a spout's beside the driver."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from itertools import count
from typing import TYPE_CHECKING, Any

from multilang.errors import TaskStartError
from multilang.protocol import Ack, Emit, Error, Fail, Log, Metrics, Pid, Sync
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.runtime.child import environment
from multilang.runtime.counters import TaskStats
from multilang.runtime.program import ProgramDiedError, WaitingProgram
from multilang.runtime.task import IDLE_ROUNDS, Restarts
from multilang.topology.commands import local_start
from multilang.topology.errors import TopologyError
from spark_bridge.job.collector import note
from spark_bridge.job.lives import Emitting, Lives
from spark_bridge.job.tuples import joined

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from multilang.protocol.parent import ParentConnection
    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan
    from spark_bridge.job.routes import SparkRoute
    from spark_bridge.job.tuples import FailedRoots

_END_SECS = 5.0  # for a program to end by itself when its input has ended
_LOOK_SECS = 0.05  # pause between two heartbeats to a bolt that still works on tuples
_WARNING = 3  # a log's level


class ProgramTask(ABC):
    """A task whose component is a program.

    Subclasses send with the methods of ``conn``, and call ``program.talk`` to write and to read.
    """

    kind: Literal["bolt", "spout"]

    def __init__(self, plan: TaskPlan, links: Links) -> None:
        self.plan = plan
        self.links = links
        self.program: WaitingProgram
        self.worked = False
        self._restarts = Restarts()

    @property
    def conn(self) -> ParentConnection:
        """The conversation with the program."""
        return self.program.conn

    @abstractmethod
    def handle(self, message: Any) -> None:
        """Handle a message that not every component sends. Raise RemoteProtocolError for one that ends the program."""

    def launch(self, conf: Mapping[str, Any]) -> None:
        """Start a program and do the handshake. Raises TaskStartError when that fails several times in a row."""
        while True:
            try:
                command, folder = local_start(self.plan.spec, self.plan.conf)
                self.program = WaitingProgram(
                    self.kind,
                    conf,
                    self.plan.context,
                    command=command,
                    env=environment(programs=True),
                    folder=folder,
                    limit_secs=self.plan.settings.subprocess_timeout_secs,
                    handle=self._handle,
                    on_stderr=lambda line: self.links.log(self.plan, f"stderr: {line}", _WARNING),
                )
                self.worked = False
                self.program.talk(lambda: self.conn.pid is not None)
                return
            except TopologyError as error:
                raise TaskStartError(str(error)) from None
            except ProgramDiedError as death:
                self.wait_after(death, answered=False)
            except TaskStartError as error:
                raise TaskStartError(f"{self.plan}: {error}") from None

    def wait_after(self, death: ProgramDiedError, answered: bool) -> None:
        """Wait until the next program is to be started. Raises TaskStartError when there is to be none."""
        delay = self._restarts.delay_after(death.secs, worked=self.worked, answered=answered, killed=death.killed)
        if delay is None:
            raise TaskStartError(f"{self.plan} can't be started: {death}")
        time.sleep(delay)

    def close(self) -> None:
        """End the program."""
        self.program.end(_END_SECS)

    def _handle(self, message: Any) -> None:
        if isinstance(message, Log):
            self.links.log(self.plan, message.message, message.level)
        elif isinstance(message, Error):
            self.links.report(self.plan, message.message)
        elif isinstance(message, Metrics):
            self.links.metric(self.plan, message.name, message.params)
        elif not isinstance(message, Pid):
            self.handle(message)


class ShellBoltTask(ProgramTask):
    """The task of a bolt in another language.

    It gives the child one tuple after the other, and handles messages at once.
    """

    kind = "bolt"

    def __init__(self, plan: TaskPlan, links: Links, failed: FailedRoots) -> None:
        super().__init__(plan, links)
        self.stats = TaskStats()
        self.countdown = self.every = 1  # its time is not measured, since its process works beside this one
        self.left = ["what its process knows"]
        self._failed = failed
        self._unfinished: dict[str, Any] = {}  # the id that the child was given -> its tuple
        self._ids = count(1)
        self._synced = 0

    # ---- what StageBolt does, too ----

    def start(self, _state: bytes | None) -> None:
        """Start the child. What a child knew at the end of the last round ended with it."""
        self.launch(self.plan.conf)

    def process(self, tup: Any) -> None:
        """Give the child a tuple."""
        self.stats.received += 1
        id = str(next(self._ids))
        self._unfinished[id] = tup
        self._guarded(lambda: self._say(id, tup.component, tup.stream, tup.task, tup.values))

    def tick(self) -> None:
        """Give the child one tick, if the bolt is configured to get ticks."""
        secs = self.plan.settings.tick_secs
        if secs:
            self.stats.received += 1
            id = str(next(self._ids))
            self._unfinished[id] = None
            self._guarded(lambda: self._say(id, SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, [secs]))

    @property
    def holds(self) -> bool:
        """True if the child, after reading everything, has tuples that it has neither acked nor failed."""
        self._guarded(self._wait)
        return bool(self._unfinished)

    def finish(self) -> None:
        """Wait until the child has finished all tuples, at most for the message timeout."""
        end = time.monotonic() + self.plan.settings.message_timeout_secs
        while self.holds and time.monotonic() < end:
            time.sleep(_LOOK_SECS)

    def settle(self) -> None:
        """Count the tuples that the child still holds as failed."""
        stats = self.stats
        stats.lost = len(self._unfinished)
        for tup in self._unfinished.values():
            self._lose(tup, self._failed.timed_out)
        self._unfinished.clear()
        stats.executed = stats.received
        stats.acked = stats.received - stats.failed - stats.lost

    def state(self) -> None:
        """Return None: what the bolt knows is in the memory of its process."""

    # ---- the conversation ----

    def _say(self, id: str, component: str, stream: str, task: int, values: list[Any]) -> None:
        self.conn.tuple(id, component, stream, task, values)
        self.program.talk(lambda: True)

    def _wait(self) -> None:
        """Wait until the program has read all that it was given: it answers a heartbeat after everything before it."""
        self.conn.heartbeat(str(next(self._ids)))
        before = self._synced
        self.program.talk(lambda: self._synced != before)

    def _guarded(self, call: Any) -> None:
        """Make ``call``. If the program dies in it, fail the program's tuples and start another one."""
        try:
            call()
        except ProgramDiedError as death:
            self.links.report(self.plan, f"{self.plan}: {death}")
            for tup in self._unfinished.values():
                self.stats.failed += 1
                self._lose(tup, self._failed)
            self._unfinished.clear()
            self.stats.restarts += 1
            self.wait_after(death, answered=True)
            self.start(None)

    def _lose(self, tup: Any, among: set[int]) -> None:
        if tup is not None:
            tup.unfinished = False
            note(among, tup.root)

    def handle(self, message: Any) -> None:
        if isinstance(message, Emit):
            self.worked = True
            self._emitted(message)
        elif isinstance(message, Ack | Fail):
            self.worked = True
            tup = self._unfinished.pop(message.id)
            if tup is not None:
                tup.unfinished = False
                if isinstance(message, Fail):
                    note(self._failed, tup.root)
            self.stats.failed += isinstance(message, Fail)
        else:
            assert isinstance(message, Sync)
            self._synced += 1

    def _emitted(self, emit: Emit) -> None:
        route: SparkRoute = self.plan.route(emit)  # type: ignore[assignment]
        values = emit.values
        targets: Any = route.targets(values, emit.task)
        self.stats.emitted += 1
        self.stats.transferred += len(targets)
        if targets or route.output is not None:
            anchors = [self._unfinished[id] for id in emit.anchors]
            route.give(values, targets, joined(tup for tup in anchors if tup is not None))
        if emit.need_task_ids:
            self.conn.task_ids(targets)


class ShellSpoutTask(Emitting, ProgramTask):
    """One task. ``left``: how many tuples it may emit.

    A ``sync`` with ``"exhausted": true`` or ``false`` says whether more will come. A program that dies is started again.
    Raises SparkJobError when that was too often, and TopologyError when it can't say whether it has an end.
    """

    kind = "spout"
    busy_secs: float | None = None  # not known, since its process works beside this one

    def __init__(self, plan: TaskPlan, links: Links, left: float) -> None:
        ProgramTask.__init__(self, plan, links)
        Emitting.__init__(self, left)
        self._said: bool | None = None  # "exhausted" of the last sync
        self._idle = 0  # the number of nexts in a row that emitted nothing
        self._lives = Lives(plan, links)
        # With "local" a spout of this library says whether it is exhausted, and does not sleep when it has nothing, as
        # in the embedded cluster. Acks and fails come at the end of the round, however many ackers are configured.
        self._conf = {**plan.conf, "multilang.parent": "local", "topology.acker.executors": 1}
        self.launch(self._conf)
        try:
            self._command("activate")
        except BaseException:
            self.close()  # nobody else knows of this task yet
            raise

    @property
    def exhausted(self) -> bool:
        """True if nothing more will come."""
        if self.left <= 0:
            return True
        return self._idle >= IDLE_ROUNDS if self._said is None else self._said

    @property
    def waits(self) -> bool:
        """True if the spout, after it emitted nothing, should be asked again later."""
        return bool(self.emitted) or self._said is not None

    def ask(self) -> bool:
        """Send one ``next``, and return whether the spout emitted something."""
        before = len(self.emitted)
        lives = self._command("next")
        if lives and self._said is None and self.left == float("inf"):
            name = self.plan.spec.command[0]  # type: ignore[index]
            raise TopologyError(
                f"spout {self.plan.component!r} is the program {name!r}, whose sync does not say whether it "
                f'is exhausted ("exhausted": true or false): give it a source, {{{self.plan.component!r}: rdd}}, or bound it, '
                f"limits={{{self.plan.component!r}: 100_000}}"
            )
        new = len(self.emitted) - before
        if new or not lives:
            self._idle = 0
        else:
            self._idle += 1
            time.sleep(self.plan.settings.spout_wait_secs(self._idle, False))
        return bool(new)

    def source_id(self, tup_id: Any) -> Any:
        """Return the message id: a program says nothing of its items."""
        return tup_id

    def tell(self, tup_id: Any, acked: bool, life: int) -> None:
        """Tell the spout that a tuple was acked or failed, unless it emitted it in an earlier life.

        It may emit a failed one again in answer to a ``next``.
        """
        if life != self._lives.number:
            return
        self._idle = 0
        self._said = None  # an ack or fail may change it
        before = len(self.emitted)
        if acked:
            self._command("ack", tup_id)
            self.bound(before)
        else:
            self._left += 1
            self._command("fail", tup_id)

    def close(self) -> None:
        """Deactivate and end the program, unless it died."""
        try:
            if self.conn.command is None and self.program.ready:
                self._send("deactivate")
        except ProgramDiedError as death:
            self.links.report(self.plan, f"{self.plan}: {death}")
        finally:
            super().close()

    def _command(self, name: str, *arguments: Any) -> bool:
        """Send a command, and handle all messages until the program's sync. Return False if it died and was started again."""
        lives = True
        while True:
            try:
                self._send(name, *arguments)
                return lives
            except ProgramDiedError as death:
                lives = False
                self._lives.end(f"{self.plan}: {death}")
                self._idle = 0
                self._said = None
                self.launch(self._conf)
                name, arguments = "activate", ()

    def _send(self, name: str, *arguments: Any) -> None:
        getattr(self.conn, name)(*arguments)
        self.program.talk(lambda: self.conn.command is None)

    def handle(self, message: Any) -> None:
        if isinstance(message, Sync):
            if message.exhausted is not None:
                self._said = message.exhausted
            return
        assert isinstance(message, Emit)
        self.plan.route(message)
        self._lives.last = (message.id, message.values, message.stream, message.task)
        self.emitted.append((*self._lives.last, self._lives.number))
        if message.need_task_ids:
            self.conn.task_ids(())  # the task ids are only known when the round has run
