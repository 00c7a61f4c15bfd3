"""A bolt's task inside a Spark task; the bolt is a component in Python, or a program in another language."""

from __future__ import annotations

import io
import pickle
import time
from abc import ABC, abstractmethod
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle as _cloudpickle

from multilang.component.base import collector_of
from multilang.component.clock import MovableClock
from multilang.component.report import describe
from multilang.component.runner import close, start_bolt
from multilang.component.timers import NEVER, TaskTimers, TimerHandle
from multilang.engine.child import environment
from multilang.engine.counters import TaskStats
from multilang.engine.program import ProgramDiedError, WaitingProgram
from multilang.engine.task import START_ATTEMPTS, Restarts
from multilang.engine.tuples import Origin
from multilang.errors import SparkJobError, TaskStartError
from multilang.protocol import Ack, Emit, Error, Fail, Log, Metrics, Pid, Sync
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.state.checkpointed import anchored_only
from multilang.topology import TopologyError
from multilang.topology.commands import local_start
from multilang.windowing.bolt import WindowedBolt
from spark_bridge.job.collector import SparkBoltCollector, note
from spark_bridge.job.routes import SparkTuple, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Literal

    from multilang.component.collector import BoltCollector
    from multilang.engine.links import Links
    from multilang.engine.plan import TaskPlan
    from multilang.protocol.parent import ParentConnection
    from multilang.state import State
    from spark_bridge.job.routes import FailedRoots, SparkRoute

_due = attrgetter("due")
_SYSTEM = Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",))
_PRUNE_FROM = 10_000  # number of held tuples from which on finished ones are dropped
_Pickler: Any = _cloudpickle.Pickler
# The attributes that the runner sets on each component, so that they are not carried.
_RUNNERS = frozenset(
    ("_collector", "_logger", "_metrics", "ack", "clock", "conf", "context", "emit", "emit_many", "fail")
)
_END_SECS = 5.0  # for a program to end by itself when its input has ended
_LOOK_SECS = 0.05  # pause between two heartbeats to a bolt that still works on tuples
_WARNING = 3  # a log's level


class StageBolt:
    """One task of a bolt.

    ``failed``: gets the roots of what failed; ``held``: the tuples that it has neither acked nor failed.

    ``countdown``: counts down to the next tuple from inside its worker whose time is measured, and which
    stands for ``every`` of them.

    ``anchored``: refuse tuples that are anchored to nothing; ``saved``: the state of a stateful bolt. ``timed``: the
    worker's tasks with timers, to which it adds itself.
    """

    saved: State | None = None

    def __init__(self, plan: TaskPlan, links: Links, failed: FailedRoots, *, anchored: bool = False) -> None:
        self.plan = plan
        self._anchored = anchored
        self.stats = TaskStats()
        self.countdown = self.every = 1
        self.held: list[SparkTuple] = []
        self.left: list[str] = []
        self._links = links
        self._failed = failed
        self._prune_at = _PRUNE_FROM
        self._component: Any = None
        self._timers: TaskTimers
        self._clock = MovableClock()
        self._instant = self._clock()  # the one at which all rows come; then that of the timer at the end
        self.timed: dict[StageBolt, None] = {}
        self.execute: Callable[[Any], object]

    def start(self, state: bytes | None) -> None:
        """Give the task a component of its own, initialized, with what it knew at the end of the last round."""
        for attempt in range(1, START_ATTEMPTS + 1):
            self._component = component = self.plan.spec.new()
            collector: BoltCollector = SparkBoltCollector(self.plan, self._links, self.stats, self._failed)
            self._timers = TaskTimers(
                collector.scope, self._clock, lambda _: self.timed.setdefault(self), now=lambda: self._instant
            )
            if self._anchored:
                collector = anchored_only(collector, self.plan.context)
            try:
                self.execute = self.started(component, collector)
                break
            except (Exception, SystemExit) as error:
                if attempt == START_ATTEMPTS:
                    message = describe(error, component, None, "in initialize")  # type: ignore[arg-type]
                    raise TaskStartError(f"{self.plan} can't be started: {message}") from error
        if state is not None:
            restore(component, state, self.saved)

    def started(self, component: Any, collector: Any) -> Callable[[Any], object]:
        """Initialize the component, and return the function that runs one tuple."""
        return start_bolt(component, collector, self.plan.conf, self.plan.context)

    def process(self, tup: Any) -> None:
        """Run one tuple. An exception fails it, whatever kind of bolt this is, and the component continues."""
        self.stats.received += 1
        try:
            self.execute(tup)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.died(error, tup)
        if tup.unfinished:
            self.hold(tup)

    def died(self, error: BaseException, tup: Any) -> None:
        """Report an exception of the component, and fail the tuple."""
        component = self._component
        collector_of(component).scope.leave_tuple()
        self._links.report(self.plan, describe(error, component, tup))
        if tup.unfinished:
            collector_of(component).fail(tup)

    # ---- timers ----

    def run_timers(self) -> Iterator[None]:
        """Run the timers at the end of the input, as if their time had come; yield after each.

        What a task does must not depend on how fast Spark runs it, since it may run it again. So for timers
        all rows arrive at one instant, and no timer or tick runs between two rows. At the end each
        timer runs once, in order. While the bolt still holds tuples after that, repeated timers
        continue, and those that timers have set, until the tuples have timed out. What tuples set meanwhile runs in any case.
        """
        timers = self._timers
        took = self._clock() - self._instant
        end = self._instant + self.plan.settings.message_timeout_secs
        for due, _, handle in sorted(timers.heap):
            if handle.pending and handle.due == due:
                self._move_to(due, took)
                timers.take_early(handle)
                self._fire(handle)
                yield
        while timers.next_due < NEVER:
            if timers.next_due <= end and self.holds:
                self._move_to(timers.next_due, took)
                found = timers.take(self._instant)
            else:
                found = min((handle for _, _, handle in timers.heap if handle.awaited), key=_due, default=None)
                if found is None:
                    break
                self._move_to(found.due, took)
                timers.take_early(found)
            if found is not None:
                self._fire(found)
                yield
        timers.cancel_all()

    def _move_to(self, due: float, took: float) -> None:
        """Move on to the time of a timer; for the component it is later by what the input ``took``."""
        self._instant = max(self._instant, due)
        self._clock.move_to(due + took)

    def _fire(self, handle: TimerHandle) -> None:
        try:
            self._timers.fire(handle)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.timer_died(error)

    def timer_died(self, error: BaseException) -> None:
        """Report an exception of a timer; the component continues."""
        self._links.report(self.plan, describe(error, self._component, None, "in a timer"))

    def hold(self, tup: SparkTuple) -> None:
        """Keep a tuple that the bolt has neither acked nor failed."""
        self.held.append(tup)
        if len(self.held) >= self._prune_at:
            self.held = [each for each in self.held if each.unfinished]
            self._prune_at = max(_PRUNE_FROM, 2 * len(self.held))

    def took(self, secs: float) -> None:
        """Note a time in which the component was busy."""
        self.stats.busy = (self.stats.busy or 0.0) + max(secs, 0.0)

    def tick(self) -> None:
        """Run one tick, if the bolt is configured to get ticks."""
        secs = self.plan.settings.tick_secs
        if secs:
            self.process(SparkTuple([secs], TICK_STREAM, _SYSTEM, 0))

    @property
    def holds(self) -> bool:
        """True if the bolt keeps tuples that it has neither acked nor failed."""
        self.held = [tup for tup in self.held if tup.unfinished]
        return bool(self.held)

    def move_windows(self, *, is_last: bool) -> None:
        """Let a bolt's windows move on; all of them end if the input ends."""
        if isinstance(self._component, WindowedBolt):
            self.must(lambda: self._component.move_windows(is_last=is_last), "at the end of its input")

    def finish(self) -> None:
        """Let a bolt put its windows where the next round finds them."""
        if isinstance(self._component, WindowedBolt):
            self.must(self._component.save_windows, "while its windows were saved")

    def must(self, call: Callable[[], object], when: str) -> None:
        """Make a call into the bolt that belongs to no tuple, so that its failure is that of the job."""
        component = self._component
        collector_of(component).scope.leave_tuple()
        try:
            call()
        except (Exception, SystemExit) as error:
            raise SparkJobError(f"{self.plan}: {describe(error, component, None, when)}") from error

    def settle(self) -> None:
        """Count what the bolt still holds as failed by timing out."""
        left = [tup for tup in self.held if tup.unfinished]
        for tup in left:
            note(self._failed.timed_out, tup.root)
        stats = self.stats
        stats.lost = len(left)
        stats.executed = stats.received
        stats.acked = stats.received - stats.failed - len(left)

    def state(self) -> bytes | None:
        """Return the bolt's attributes for the next round.

        ``left`` gets the names of attributes that can't be carried.
        """
        payload, self.left = carried(self._component, self.saved)
        return payload

    def close(self) -> None:
        """Close the component."""
        try:
            close(self._component)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self._links.report(self.plan, describe(error, self._component, None, "in close"))


def carried(component: object, state: State | None = None) -> tuple[bytes, list[str]]:
    """Return a component's pickled attributes, and the names of those that can't be pickled, such as a connection.

    ``state`` is saved elsewhere; references to it become references to the next component's state. An attribute that is
    a timer stays as the next component's ``initialize`` sets it.
    """
    attributes = {
        name: value
        for name, value in vars(component).items()
        if name not in _RUNNERS and not isinstance(value, TimerHandle)
    }
    try:
        return _dumped(attributes, state), []
    except Exception:  # noqa: BLE001  # the attributes' code may raise anything; the attribute is found below
        pass
    left = []
    for name, value in list(attributes.items()):
        try:
            _dumped(value, state)
        except Exception:  # noqa: BLE001
            left.append(name)
            del attributes[name]
    return _dumped(attributes, state), left


def restore(component: object, payload: bytes, state: State | None = None) -> None:
    """Set the carried attributes on a component, over those that ``initialize`` made."""
    vars(component).update(_Reader(payload, state).load())


class _Writer(_Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, state: State | None) -> None:
        super().__init__(file)
        self._state = state

    def persistent_id(self, value: object) -> str | None:
        return "state" if value is self._state and value is not None else None


class _Reader(pickle.Unpickler):  # reads what a task of this job's last round wrote
    def __init__(self, payload: bytes, state: State | None) -> None:
        super().__init__(io.BytesIO(payload))
        self._state = state

    def persistent_load(self, _: str) -> State | None:
        return self._state


def _dumped(value: object, state: State | None) -> bytes:
    file = io.BytesIO()
    _Writer(file, state).dump(value)
    return file.getvalue()


class ProgramTask(ABC):
    """A task whose component is a program.

    Subclasses send with the methods of ``conn``, and call ``program.run_until`` to write and to read.
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
                self.program.run_until(lambda: self.conn.pid is not None)
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
        self.program.run_until(lambda: True)

    def _wait(self) -> None:
        """Wait until the program has read all that it was given: it answers a heartbeat after everything before it."""
        self.conn.heartbeat(str(next(self._ids)))
        before = self._synced
        self.program.run_until(lambda: self._synced != before)

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
