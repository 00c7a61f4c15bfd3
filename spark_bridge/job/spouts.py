"""Spouts that run as they are, in the driver: the tuples that a spout emits in a round are the round's source."""

from __future__ import annotations

import time
from time import perf_counter
from typing import TYPE_CHECKING

from multilang.component.base import give_up
from multilang.component.collector import SpoutCollector
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.component.report import describe
from multilang.component.runner import close, start_spout
from multilang.component.spout import Spout
from multilang.component.timers import TaskTimers
from multilang.engine.counters import TaskStats
from multilang.engine.emitter import TupleEmitter
from multilang.engine.links import LinkedCollector, Links
from multilang.engine.plan import Route, TaskPlan
from multilang.engine.program import ProgramDiedError
from multilang.engine.task import IDLE_ROUNDS, START_ATTEMPTS, Restarts
from multilang.engine.tuples import Origin
from multilang.errors import SparkJobError, TaskStartError
from multilang.protocol import Emit, Sync
from multilang.protocol.codec import id_as_received, normalize
from multilang.protocol.errors import UnserializableValue
from multilang.settings import PARENT
from multilang.state.replayable import ReplayableSpout
from multilang.topology.errors import TopologyError
from multilang.topology.shell import ShellComponent
from spark_bridge.job.bolts import ProgramTask
from spark_bridge.job.collector import links_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from multilang.component.runner import SpoutRunner
    from multilang.protocol.messages import Values
    from multilang.topology.model import ComponentSpec, Topology

    SpoutTask: TypeAlias = "_Task | ShellSpoutTask"
    Emitted = tuple[Any, list[Any], str | None, int | None, int]  # message id, values, stream, direct task, life


class Emitting:
    """The tuples that a task has emitted since they were last taken.

    A spout may emit in any call, also when it is activated or in answer to an ack.

    Args:
        left: How many tuples may be taken.
    """

    def __init__(self, left: float) -> None:
        self.emitted: list[Emitted] = []
        self._left = left

    @property
    def left(self) -> float:
        """The number of tuples that the spout may still emit."""
        return self._left - len(self.emitted)

    def take(self) -> list[Emitted]:
        """Return what was emitted, which is taken then."""
        taken = self.emitted[:]
        self.emitted.clear()
        self._left -= len(taken)
        return taken

    def bound(self, before: int) -> None:
        """Drop the tuples beyond the limit, except for the first ``before``."""
        if self.left < 0:
            del self.emitted[max(before, len(self.emitted) + int(self.left)) :]


class Deaths:
    """The restarts of one task, which are bounded while it makes no progress.

    A life made progress if it lasted long or emitted something, but not if its last tuple was that of the life before: a spout that
    restarts from its beginning and always dies at the same tuple would never end, and a job has to.

    ``number``: of the present life, from 0; ``last``: the last tuple of this life, None before the first one.
    """

    def __init__(self, plan: TaskPlan, links: Links) -> None:
        self.number = 0
        self.last: tuple[Any, ...] | None = None
        self._plan = plan
        self._links = links
        self._before: tuple[Any, ...] | None = None
        self._restarts = Restarts()
        self._began = time.monotonic()

    def end(self, message: str) -> None:
        """Report a death, and wait a little before the next life, longer each time.

        Raises SparkJobError when the task is given up.
        """
        self._links.report(self._plan, message)
        is_same = self.last is not None and self.last == self._before
        secs = 0.0 if is_same else time.monotonic() - self._began
        worked = self.last is not None and not is_same
        delay = self._restarts.delay_after(secs, worked=worked)
        if delay is None:
            progress = "getting beyond the same tuple" if is_same else "emitting a tuple"
            raise SparkJobError(f"{self._plan} died {self._restarts.bad_starts} times without {progress}: {message}")
        self._before = self.last or self._before
        time.sleep(delay)
        self.number += 1
        self.last = None
        self._began = time.monotonic()


def check_bound(spec: ComponentSpec, limit: int | None) -> None:
    """Raise TopologyError for a spout that has no end."""
    if isinstance(spec.component, ShellComponent):
        return  # the answer to its first next shows whether it can say when it is exhausted
    if getattr(type(spec.component), "exhausted", None) is Spout.exhausted and limit is None:
        raise TopologyError(
            f"spout {spec.id!r} has no end that Spark could wait for: give it a source, {{{spec.id!r}: rdd}}, define "
            f"exhausted() in {type(spec.component).__name__}, or bound it, limits={{{spec.id!r}: 100_000}}"
        )


class RoundCollector(LinkedCollector, SpoutCollector):
    """The collector of a spout in the driver, which adds the tuples of a life to those that were ``emitted`` for the round."""

    settles_in_rounds = True

    def __init__(self, plan: TaskPlan, links: Links, emitted: list[Emitted], life: int) -> None:
        super().__init__(plan, links)
        self._emitter = TupleEmitter(plan, links, TaskStats())
        self._emitted = emitted
        self._life = life

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        if need_task_ids or on_task_ids is not None:
            raise SparkJobError(
                f"{self._plan} asks for task ids, which are not known on Spark before the round has run; emit without"
            )
        row = None
        route = self._plan.routes.get("default" if stream is None else stream)
        if route is not None and direct_task is None:
            try:
                if len(values) == route.width:
                    row = normalize(values)
            except (TypeError, UnserializableValue):
                pass  # checked() raises the error
        if row is None:
            row, _ = self._emitter.checked(values, stream, direct_task)
        if tup_id is not None:
            tup_id = id_as_received(tup_id)
        self._emitted.append((tup_id, row, stream, direct_task, self._life))
        return None


class _Task(Emitting):
    """One task of a spout in Python, which is restarted when it dies.

    ``left``: how many tuples it may emit. ``position``: where a ReplayableSpout begins, also after a death, if not at its start; its user sets it when the tuples before are safe.
    """

    def __init__(
        self, plan: TaskPlan, links: Links, left: float, keeps_position: bool = False, position: Any = None
    ) -> None:
        super().__init__(left)
        self.plan = plan
        self.links = links
        self.idle = 0
        self.busy_secs: float | None = 0.0
        self.position = position
        self.component: Any = None
        self.runner: SpoutRunner
        self._keeps_position = keeps_position
        self._deaths = Deaths(plan, links)
        self._start()

    def _start(self) -> None:
        for attempt in range(1, START_ATTEMPTS + 1):
            component: Any = self.plan.spec.new()
            self.component = component
            collector = RoundCollector(self.plan, self.links, self.emitted, self._deaths.number)
            collector.keeps_position = self._keeps_position
            TaskTimers(collector.scope)
            try:
                self.runner = start_spout(component, collector, self.plan.conf, self.plan.context)
                self.runner.activate()
                break
            except (Exception, SystemExit) as error:
                message = describe(error, component, None, "in initialize")
                wrong = isinstance(error, ConfigError | UnrecoverableError)  # a second try would fail as well
                if attempt == START_ATTEMPTS or wrong:
                    raise TaskStartError(f"{self.plan} can't be started: {message}") from error
                self.links.report(self.plan, message)
        if self.position is not None:
            component.seek(self.position)

    def _died(self, error: BaseException, where: str) -> None:
        """Restart the task after an exception, with a new object."""
        give_up(self.component)
        if isinstance(error, SparkJobError):
            raise error
        message = describe(error, self.component, None, where)
        if isinstance(error, UnrecoverableError):
            raise SparkJobError(message) from error
        if self._keeps_position and isinstance(self.component, ReplayableSpout):  # it emits them again
            self.emitted.clear()
        try:
            self._deaths.end(message)
        except SparkJobError as end:
            raise end from error
        self.idle = 0
        self._start()

    @property
    def exhausted(self) -> bool:
        """True if the spout will emit nothing more, replays included."""
        if self.left <= 0:
            return not getattr(self.component, "waiting_for_replay", 0)
        exhausted = self.runner.exhausted()
        return self.idle >= IDLE_ROUNDS if exhausted is None else exhausted

    @property
    def waits(self) -> bool:
        """True if the spout, after it emitted nothing, should be asked again later."""
        return bool(self.emitted) or self.runner.exhausted() is not None

    def ask(self) -> bool:
        """Call the spout once, and return whether it emitted something.

        Raises SparkJobError when it has died too often.
        """
        emitted = self.emitted
        before = len(emitted)
        died = None
        try:
            if self.left > 0:
                self.runner.next()
            else:
                self.component.replay()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            died = error
        new = len(emitted) - before
        if new:
            self._deaths.last = emitted[-1][:4]
        self.idle = 0 if new else self.idle + 1
        if died is not None:
            self._died(died, "in next_tuple")
        return bool(new)

    def source_id(self, tup_id: Any) -> Any:
        """Return the id of the source's item, which is the same in a replay with another message id."""
        return self.component.source_id(tup_id)

    def settle(self, tup_id: Any, acked: bool, life: int) -> None:
        """Ack or fail a tuple at the spout, unless it emitted it in an earlier life."""
        if life != self._deaths.number:
            return
        self.idle = 0
        before = len(self.emitted)
        try:
            (self.runner.ack if acked else self.runner.fail)(tup_id)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self._died(error, f"in {'ack' if acked else 'fail'} of {tup_id!r}")
        if acked:
            self.bound(before)

    def close(self) -> None:
        """Deactivate and close the spout."""
        try:
            self.runner.deactivate()
            close(self.component)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.links.report(self.plan, describe(error, self.component, None, "in close"))


class ShellSpoutTask(Emitting, ProgramTask):
    """One task. ``left``: how many tuples it may emit.

    A ``sync`` with ``"exhausted": true`` or ``false`` states whether the program is exhausted. A program that dies is restarted.
    Raises SparkJobError when it died too often, and TopologyError when it has no ``exhausted`` and no limit.
    """

    kind = "spout"
    busy_secs: float | None = None  # not known, since its process works beside this one

    def __init__(self, plan: TaskPlan, links: Links, left: float) -> None:
        ProgramTask.__init__(self, plan, links)
        Emitting.__init__(self, left)
        self._exhausted: bool | None = None  # as in the last sync
        self._idle = 0  # the number of nexts in a row that emitted nothing
        self._deaths = Deaths(plan, links)
        # With "local" a spout of this library reports whether it is exhausted, and does not sleep when it has nothing, as
        # in the embedded cluster. Acks and fails are sent at the end of the round, however many ackers are configured.
        self._conf = {**plan.conf, PARENT: "local", "topology.acker.executors": 1}
        self.launch(self._conf)
        try:
            self._command("activate")
        except BaseException:
            self.close()  # no other reference to this task exists yet
            raise

    @property
    def exhausted(self) -> bool:
        """True if the spout will emit nothing more."""
        if self.left <= 0:
            return True
        return self._idle >= IDLE_ROUNDS if self._exhausted is None else self._exhausted

    @property
    def waits(self) -> bool:
        """True if the spout, after it emitted nothing, should be asked again later."""
        return bool(self.emitted) or self._exhausted is not None

    def ask(self) -> bool:
        """Send one ``next``, and return whether the spout emitted something."""
        before = len(self.emitted)
        survived = self._command("next")
        if survived and self._exhausted is None and self.left == float("inf"):
            name = self.plan.spec.command[0]  # type: ignore[index]
            raise TopologyError(
                f"spout {self.plan.component!r} is the program {name!r}, whose sync does not state whether it "
                f'is exhausted ("exhausted": true or false): give it a source, {{{self.plan.component!r}: rdd}}, or bound it, '
                f"limits={{{self.plan.component!r}: 100_000}}"
            )
        new = len(self.emitted) - before
        if new or not survived:
            self._idle = 0
        else:
            self._idle += 1
            time.sleep(self.plan.settings.spout_wait_secs(self._idle, False))
        return bool(new)

    def source_id(self, tup_id: Any) -> Any:
        """Return the message id, since a program does not report its items."""
        return tup_id

    def settle(self, tup_id: Any, acked: bool, life: int) -> None:
        """Ack or fail a tuple at the spout, unless it emitted it in an earlier life.

        It may emit a failed one again in answer to a ``next``.
        """
        if life != self._deaths.number:
            return
        self._idle = 0
        self._exhausted = None  # an ack or fail may change it
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
        """Send a command, and handle all messages until the program's sync. Return False if it died and was restarted."""
        survived = True
        while True:
            try:
                self._send(name, *arguments)
                return survived
            except ProgramDiedError as death:
                survived = False
                self._deaths.end(f"{self.plan}: {death}")
                self._idle = 0
                self._exhausted = None
                self.launch(self._conf)
                name, arguments = "activate", ()

    def _send(self, name: str, *arguments: Any) -> None:
        getattr(self.conn, name)(*arguments)
        self.program.run_until(lambda: self.conn.command is None)

    def handle(self, message: Any) -> None:
        if isinstance(message, Sync):
            if message.exhausted is not None:
                self._exhausted = message.exhausted
            return
        assert isinstance(message, Emit)
        self.plan.route(message)
        self._deaths.last = (message.id, message.values, message.stream, message.task)
        self.emitted.append((*self._deaths.last, self._deaths.number))
        if message.need_task_ids:
            self.conn.task_ids(())  # the task ids are only known when the round has run


class SpoutFeed:
    """The tasks of one spout. ``batch``: how many tuples each may emit in one round.

    ``positions``: task index -> the position where a ReplayableSpout begins, if not at its start. None: positions are
    not stored.
    """

    def __init__(
        self,
        topology: Topology,
        spec: ComponentSpec,
        conf: Mapping[str, Any],
        assignment: Mapping[int, str],
        *,
        limit: int | None,
        batch: int,
        report: Callable[[int, str], None],
        positions: Mapping[int, Any] | None = None,
    ) -> None:
        self.spec = spec
        self.errors = 0
        self._batch = batch
        self._report = report
        links = links_of(self._report_error, [], {})
        self.tasks: list[SpoutTask] = []
        tasks = sorted(id for id, name in assignment.items() if name == spec.id)
        try:
            for index, task in enumerate(tasks):
                context = topology.context_for(task, assignment)
                routes = {
                    name: Route(
                        Origin(spec.id, name, task, stream.fields), stream.fields, [], _direct(topology, spec, name)
                    )
                    for name, stream in spec.streams.items()
                }
                plan = TaskPlan(task, spec, {**conf, **spec.conf}, context, routes)
                share = float("inf") if limit is None else (limit + len(tasks) - 1 - index) // len(tasks)
                if isinstance(spec.component, ShellComponent):
                    self.tasks.append(ShellSpoutTask(plan, links, share))
                else:
                    position = None if positions is None else positions.get(index)
                    self.tasks.append(_Task(plan, links, share, positions is not None, position))
        except BaseException:
            self.close()
            raise

    @property
    def exhausted(self) -> bool:
        """True if the tasks will emit nothing more: no replays, and nothing in answer to an ack."""
        return all(task.exhausted and not task.emitted for task in self.tasks)

    def emit(self) -> list[tuple[SpoutTask, Emitted]]:
        """Return what the tasks emit for the next round: replays first, if the spout emits them first."""
        emitted: list[tuple[SpoutTask, Emitted]] = []
        for task in self.tasks:
            start = perf_counter()
            while len(task.emitted) < self._batch and not task.exhausted:
                if not task.ask() and task.waits:
                    break
            if task.busy_secs is not None:
                task.busy_secs += perf_counter() - start
            emitted += [(task, each) for each in task.take()]
        return emitted

    def settle(self, emitted: Sequence[tuple[SpoutTask, Emitted]], failed: set[int]) -> None:
        """Ack or fail the tuples at their spouts. ``failed``: indexes in ``emitted``."""
        for place, (task, (tup_id, *_, life)) in enumerate(emitted):
            if tup_id is not None:
                task.settle(tup_id, place not in failed, life)

    def report(self, message: str) -> None:
        self._report_error(self.tasks[0].plan, message)

    def close(self) -> None:
        for task in self.tasks:
            task.close()

    def _report_error(self, plan: TaskPlan, message: str) -> None:
        self.errors += 1
        self._report(plan.id, message)


class EmittedReader:
    """Reads, on an executor, the tuples that a spout emitted in the driver: one list for each partition."""

    sums: tuple[int, ...] = ()  # needs no checksums, as the rows are in the driver's memory and can't change
    bytes = 0  # unknown

    def read(self, _partition: int, rows: Iterable[Any]) -> Iterator[Any]:
        """Return offset (None: an unreliable tuple), values, stream and direct task of each tuple."""
        for chunk in rows:
            for offset, (reliable, values, stream, direct) in enumerate(chunk):
                yield offset if reliable else None, values, stream, direct


def _direct(topology: Topology, spec: ComponentSpec, stream: str) -> frozenset[int] | None:
    """Return an empty set if a subscriber takes direct emits, else None.

    The tasks are looked up where the tuple is routed.
    """
    inputs = [input_ for _, input_ in topology.subscribers(spec.id) if input_.stream == stream]
    return frozenset() if any(input_.grouping.is_direct for input_ in inputs) else None
