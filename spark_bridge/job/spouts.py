"""A spout that runs as it is, in the driver: the tuples that it emits in a round are the round's source."""

from __future__ import annotations

import logging
from random import Random
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from multilang.component.base import give_up
from multilang.component.collector import SpoutCollector
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.component.report import describe
from multilang.component.runner import close, start_spout
from multilang.component.spout import Spout
from multilang.component.timers import TaskTimers
from multilang.errors import SparkJobError, TaskStartError
from multilang.protocol.codec import id_as_received, normalize
from multilang.protocol.errors import UnserializableValue
from multilang.runtime.counters import TaskStats
from multilang.runtime.emitter import TupleEmitter
from multilang.runtime.links import LinkedCollector, Links
from multilang.runtime.plan import Route, TaskPlan
from multilang.runtime.task import IDLE_ROUNDS, START_ATTEMPTS
from multilang.runtime.tuples import Origin
from multilang.state.replayable import ReplayableSpout
from multilang.topology.errors import TopologyError
from multilang.topology.shell import ShellComponent
from spark_bridge.job.lives import Emitting, Lives
from spark_bridge.job.shell import ShellSpoutTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from multilang.component.runner import SpoutRunner
    from multilang.protocol.messages import Values
    from multilang.topology.model import ComponentSpec, Topology
    from spark_bridge.job.lives import Emitted

    SpoutTask: TypeAlias = "_Task | ShellSpoutTask"


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
                pass  # the wire's end says what is wrong
        if row is None:
            row, _ = self._emitter.checked(values, stream, direct_task)
        if tup_id is not None:
            tup_id = id_as_received(tup_id)
        self._emitted.append((tup_id, row, stream, direct_task, self._life))
        return None


class _Task(Emitting):
    """One task of a spout in Python, which is started again when it dies.

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
        self._lives = Lives(plan, links)
        self._start()

    def _start(self) -> None:
        for attempt in range(1, START_ATTEMPTS + 1):
            component: Any = self.plan.spec.new()
            self.component = component
            collector = RoundCollector(self.plan, self.links, self.emitted, self._lives.number)
            collector.keeps_position = self._keeps_position
            TaskTimers(collector.scope)
            try:
                self.runner = start_spout(component, collector, self.plan.conf, self.plan.context)
                self.runner.activate()
                break
            except (Exception, SystemExit) as error:
                said = describe(error, component, None, "in initialize")
                wrong = isinstance(error, ConfigError | UnrecoverableError)  # a second try would fail as well
                if attempt == START_ATTEMPTS or wrong:
                    raise TaskStartError(f"{self.plan} can't be started: {said}") from error
                self.links.report(self.plan, said)
        if self.position is not None:
            component.seek(self.position)

    def _died(self, error: BaseException, where: str) -> None:
        """Start the task again after an exception, with a new object."""
        give_up(self.component)
        if isinstance(error, SparkJobError):
            raise error
        said = describe(error, self.component, None, where)
        if isinstance(error, UnrecoverableError):
            raise SparkJobError(said) from error
        if self._keeps_position and isinstance(self.component, ReplayableSpout):  # it emits them again
            self.emitted.clear()
        try:
            self._lives.end(said)
        except SparkJobError as end:
            raise end from error
        self.idle = 0
        self._start()

    @property
    def exhausted(self) -> bool:
        """True if nothing more will come, replays included."""
        if self.left <= 0:
            return not getattr(self.component, "waiting_for_replay", 0)
        said = self.runner.exhausted()
        return self.idle >= IDLE_ROUNDS if said is None else said

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
            self._lives.last = emitted[-1][:4]
        self.idle = 0 if new else self.idle + 1
        if died is not None:
            self._died(died, "in next_tuple")
        return bool(new)

    def source_id(self, tup_id: Any) -> Any:
        """Return the id of the source's item, which is the same in a replay with another message id."""
        return self.component.source_id(tup_id)

    def tell(self, tup_id: Any, acked: bool, life: int) -> None:
        """Tell the spout that a tuple was acked or failed, unless it emitted it in an earlier life."""
        if life != self._lives.number:
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


class SpoutFeed:
    """The tasks of one spout. ``batch``: how many tuples each may emit in one round.

    ``positions``: task index -> the position where a ReplayableSpout begins, if not at its start. None: positions are
    not kept.
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
        links = links_of(self._said)
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
        """True if nothing more will come: no replays, and nothing that was emitted in answer to an ack."""
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
        """Tell the spouts which tuples were acked and which failed. ``failed``: indexes in ``emitted``."""
        for place, (task, (tup_id, *_, life)) in enumerate(emitted):
            if tup_id is not None:
                task.tell(tup_id, place not in failed, life)

    def report(self, message: str) -> None:
        """Report an error of the spout."""
        self._said(self.tasks[0].plan, message)

    def close(self) -> None:
        """Close all tasks."""
        for task in self.tasks:
            task.close()

    def _said(self, plan: TaskPlan, message: str) -> None:
        self.errors += 1
        self._report(plan.id, message)


class EmittedReader:
    """Reads, on an executor, the tuples that a spout emitted in the driver: one list for each partition."""

    sums: tuple[int, ...] = ()  # needs no checksums, as the rows are in the driver's memory and can't change

    def read(self, _partition: int, rows: Iterator[Any]) -> Iterator[Any]:
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


def links_of(report: Callable[[TaskPlan, str], None]) -> Links:
    """Return the links of spouts' tasks; nothing is acked before a round is over."""

    def log(plan: TaskPlan, message: str, level: int) -> None:
        logging.getLogger(plan.component).log((5, 10, 20, 30, 40)[level], "%s", message, extra={"task": plan.id})

    def metric(plan: TaskPlan, name: str, params: Any) -> None:
        logging.getLogger(plan.component).debug("metric %s: %r", name, params, extra={"task": plan.id})

    return Links(
        out=[],
        receivers={},
        init=None,
        ack=lambda *_: None,
        fail=lambda *_: None,
        later=lambda *_: None,
        named={},
        getrandbits=Random(0).getrandbits,
        now=monotonic,
        log=log,
        report=report,
        metric=metric,
    )
