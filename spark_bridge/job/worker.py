"""One Spark task: the topology's tasks that it hosts, their input, and their output.

A stage's function, with the data of its round, is pickled to the executors, where it runs the tasks of one worker.
"""

from __future__ import annotations

import gc
import logging
import pickle
import sys
from array import array
from dataclasses import dataclass
from functools import partial
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from multilang import __version__
from multilang.child.garbage import collect_rarely
from multilang.component.repeats import Repeats, kind_of
from multilang.engine.counters import SAMPLE_EVERY, SLOW_SECS
from multilang.engine.plan import TaskPlan
from multilang.engine.task import Later
from multilang.engine.tuples import Origin
from multilang.errors import SparkJobError
from multilang.state.bolt import Stateful
from multilang.topology.shell import ShellComponent
from spark_bridge.executors import freeze_once
from spark_bridge.job.blocks import (
    END,
    FAILED,
    LIMIT,
    LIMIT_BYTES,
    OUTPUT,
    REPORT,
    ROWS,
    STATE,
    Arrivals,
    Ledger,
    Record,
    unpacked,
)
from spark_bridge.job.bolts import ShellBoltTask, StageBolt
from spark_bridge.job.collector import links_of
from spark_bridge.job.routes import FailedRoots, Routing, SparkRoute, SparkTuple, root_of
from spark_bridge.job.state import StatefulTask
from spark_bridge.job.transactions import Batch, TransactionalTask

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    from multilang.engine.settings import Settings
    from multilang.topology.model import Topology
    from multilang.transactional.attempt import TransactionAttempt
    from spark_bridge.job.layout import Layout
    from spark_bridge.job.sources import SourceReader
    from spark_bridge.job.spouts import EmittedReader
    from spark_bridge.job.state import Saving

    Out = tuple[int, Record]

_STEP = 512  # inputs between two checks of how full the boxes are
_MAX_ERRORS = 20  # kinds of errors whose text one worker reports; all errors are counted


@dataclass
class Job:
    """The data of one round.

    Attributes:
        topology: The topology.
        conf: Its configuration.
        assignment: Task -> component.
        layout: The place of each task.
        readers: One for each source of the layout.
        outputs: The streams that are wanted as results.
        seed: The seed of the run.
        round: The round's number.
        keeps_states: Whether there may be another round, for which the states of bolts are carried.
        saving: Of a topology with stateful bolts.
        attempt: The attempt to run, of a transactional topology.
        ends: "" if other rounds of the same input may follow; "batch" if windows move on at its end; "input" if all windows
            end there.
    """

    topology: Topology
    conf: Mapping[str, Any]
    assignment: Mapping[int, str]
    layout: Layout
    readers: Sequence[SourceReader | EmittedReader]
    outputs: Collection[tuple[str, str]]
    seed: int
    round: int
    keeps_states: bool
    saving: Saving | None = None
    attempt: TransactionAttempt | None = None
    ends: Literal["", "batch", "input"] = ""


class Stage:
    """The function of one level's Spark stage.

    ``known``: what bolts know from before this job, by task. ``first``: the worker of the RDD's first partition.
    """

    def __init__(self, job: Job, level: int, known: Mapping[int, bytes], first: int = 0) -> None:
        self.version = __version__
        self.job = job
        self.level = level
        self.first = first
        places = job.layout.places
        self.known = {task: payload for task, payload in known.items() if places[task][0] == level}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled in the driver, and check that it has the same version of the library as the executor."""
        theirs = state.get("version")
        if theirs != __version__:
            raise SparkJobError(
                f"the executors' Python ({sys.executable}) has storm-multilang {__version__}, the driver's has {theirs}: "
                "install the same version in both"
            )
        self.__dict__.update(state)

    def __call__(self, index: int, records: Iterable[Any]) -> Iterator[tuple[int, Record]]:
        """Return the records that the worker of a partition sends."""
        freeze_once()
        worker = StageWorker(self.job, self.level, self.first + index, self.known)
        usual = collect_rarely()  # all rows of a block are alive at once
        try:
            yield from worker.receive(records) if self.level else worker.read(records)
        finally:
            gc.set_threshold(*usual)


def _log_error(about: tuple[str, int], message: str) -> None:
    component, task = about
    logging.getLogger(component).error("%s", message, extra={"task": task})


# The errors that this process has logged. It is shared by all Spark tasks of the process, which run one after the
# other.
_REPEATS = Repeats(_log_error)


class StageWorker:
    """Worker number ``index`` of ``level``, which sends records, each keyed by the worker that gets it.

    ``known``: what its bolts know from before this job, by task.
    """

    def __init__(self, job: Job, level: int, index: int, known: Mapping[int, bytes]) -> None:
        self._job = job
        self._known = known
        self._level = level
        self._index = index
        self._out: list[tuple[Any, Any]] = []
        self._failed = FailedRoots()
        self._errors: dict[tuple[int, str], list[Any]] = {}  # task and kind -> the first text, how often
        self._error_counts: dict[int, int] = {}
        self._named: dict[str, Any] = {}
        self._ids = count(1)
        self._number = count()
        self._inside_secs = 0.0  # the time of tuples that were delivered inside this worker, as far as a sample tells
        self._sent = Ledger()
        self._output = Ledger()  # of the outputs
        self._kinds: dict[tuple[str, str], list[set[str]]] = {}
        self._batch = None if job.attempt is None else Batch(job.attempt)
        seed = f"{job.seed}/{job.round}/{level}/{index}"
        place = (level, index)
        self._routing = Routing(job.topology, job.assignment, job.layout, place, job.outputs, seed)
        self._links = links_of(self._report, self._out, self._named)
        self._tasks: dict[int, Any] = {}
        self._with_timers: dict[StageBolt, None] = {}  # the tasks with timers
        for task in job.layout.hosts.get(place, ()):
            self._tasks[task] = self._bolt(task)
        for task, bolt in self._tasks.items():
            bolt.plan.routes.update(self._routes(task))

    # ---- its life ----

    def read(self, rows: Iterable[Any]) -> Iterator[Out]:
        """Process the input of level 0: the rows of a source, or the states of bolts at the end of the round before."""
        found = self._job.layout.source_of(self._index)
        if found is None:
            yield from self._hand_on(rows)
            return
        number, partition = found
        source, reader = self._job.layout.sources[number], self._job.readers[number]
        self._start({})
        yield from self._flush(LIMIT)
        tasks = sorted(id for id, name in self._job.assignment.items() if name == source.component)
        feed = _Feed(self, self._plan(tasks[partition % len(tasks)]), source.stream)
        attempt = None if self._batch is None else str(self._batch.attempt)
        every = 0
        for offset, values, stream, direct in reader.read(partition, rows):
            if attempt is not None:
                feed.emit([attempt, *values], 0, stream, direct)  # without a root: a failure fails the whole attempt
            else:
                feed.emit(values, 0 if offset is None else root_of(self._index, offset), stream, direct)
            every += 1
            if not every % _STEP or reader.bytes >= LIMIT_BYTES:
                reader.bytes = 0
                yield from self._flush(LIMIT)
        yield from self._finish(every, feed, reader.sums)

    def receive(self, records: Iterable[Out]) -> Iterator[Out]:
        """Process the input of a later level: records from earlier workers, and records that are only passed on."""
        arrivals = Arrivals()
        try:
            level = self._level
            for _, record in records:
                if record[1] == level:
                    arrivals.put(Record(*record))
                else:
                    yield self._addressed(Record(*record))
            states: dict[int, bytes] = {}
            started = False
            for record in arrivals:
                if record.kind == FAILED and self._batch is not None:
                    self._batch.failed = True
                elif record.kind == STATE:
                    states[record.what] = record.payload
                else:
                    if not started:
                        started = True
                        self._start(states)
                    yield from self._work(record)
            if not started:
                self._start(states)
            yield from self._finish(got=arrivals.ledger)
        finally:
            arrivals.close()

    def _start(self, states: dict[int, bytes]) -> None:
        for task, bolt in self._tasks.items():
            bolt.start(states.get(task) or self._known.get(task))
        self.drain()

    def _work(self, record: Record) -> Iterator[Out]:
        """Process the rows of one block."""
        source, stream, target = record.what
        component = self._job.assignment[source]
        fields = self._job.topology.components[component].streams[stream].fields
        origin = Origin(component, stream, source, fields, self._name_tuple)
        rows, roots = unpacked(record.payload, record.rows)
        bolt = self._tasks[target]
        out = self._out
        for start in range(0, len(roots), _STEP):
            if isinstance(bolt, StageBolt):
                began, others = perf_counter(), self._inside_secs
                execute = bolt.execute
                bolt.stats.received += min(_STEP, len(roots) - start)
                for values, root in zip(rows[start : start + _STEP], roots[start : start + _STEP], strict=True):
                    # the body of StageBolt.process, to save the call
                    tup = SparkTuple(values, stream, origin, root)
                    try:
                        execute(tup)
                    except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
                        bolt.died(error, tup)
                    if tup.unfinished:
                        bolt.hold(tup)
                    if out:
                        self.drain()
                bolt.took(perf_counter() - began - (self._inside_secs - others))
            else:
                for values, root in zip(rows[start : start + _STEP], roots[start : start + _STEP], strict=True):
                    bolt.process(SparkTuple(values, stream, origin, root))
                    if out:
                        self.drain()
            yield from self._flush(LIMIT)

    def _finish(
        self, rows: int = 0, feed: _Feed | None = None, sums: Sequence[int] | None = None, got: Ledger | None = None
    ) -> Iterator[Out]:
        """Finish after the end of the input: timers, ticks, rows that are still in boxes, states, and the report."""
        yield from self._end()
        for bolt in self._tasks.values():
            bolt.settle()
        yield from self._flush(1)
        if self._batch is not None and self._batch.failed:
            yield from self._tell_failure()
        left: dict[str, set[str]] = {}
        for task, bolt in self._tasks.items():
            if self._job.keeps_states or isinstance(bolt, StatefulTask):
                payload = bolt.state()
                if payload is not None:
                    yield self._addressed(self._record(STATE, END, 0, task, 0, payload))
                if bolt.left:
                    left.setdefault(bolt.plan.component, set()).update(bolt.left)
        for bolt in self._tasks.values():
            bolt.close()
        _REPEATS.report_due()
        self._out.clear()  # as in the embedded cluster, nobody receives what is emitted in close()
        report = {
            "worker": (self._level, self._index),
            "tasks": {task: self._counts(task, bolt.stats) for task, bolt in self._tasks.items()},
            "busy": {task: bolt.stats.busy for task, bolt in self._tasks.items() if bolt.stats.busy is not None},
            "failed": array("q", sorted(self._failed)).tobytes(),
            "timed_out": array("q", sorted(self._failed.timed_out)).tobytes(),
            "errors": [(task, text, times) for (task, _), (text, times) in self._errors.items()],
            "sent": self._sent.as_dict(),
            "got": {} if got is None else got.as_dict(),
            "output": self._output.as_dict(),
            "rows": rows,
            "sums": sums,
            "kinds": self._kinds,
            "left": {component: sorted(names) for component, names in left.items()},
            "gave_up": self._batch is not None and self._batch.failed,
            "updated": self._batch is not None and self._batch.attempt.updated,
        }
        if feed is not None:
            report["tasks"][feed.task] = (0, feed.emitted, feed.transferred, 0, 0, 0)  # type: ignore[index]
        yield self._addressed(self._record(REPORT, END, 0, None, 0, pickle.dumps(report, 5)))

    def _end(self) -> Iterator[Out]:
        """Let the tasks do, one after the other, what they do at the end of the input."""
        for bolt in self._tasks.values():
            if isinstance(bolt, StageBolt):
                if self._job.ends:
                    _timed(bolt, partial(bolt.move_windows, is_last=self._job.ends == "input"))
                    self.drain()
                    yield from self._flush(LIMIT)
                yield from self._run_timers(bolt)
            for _ in range(_ticks(bolt.plan.settings)):
                _timed(bolt, bolt.tick)
                self.drain()
                yield from self._flush(LIMIT)
                if not bolt.holds:
                    break
            _timed(bolt, bolt.finish)
            self.drain()
            yield from self._flush(LIMIT)
        while self._with_timers:  # what the others sent at their end has set more
            for bolt in list(self._with_timers):
                yield from self._run_timers(bolt)
                self._with_timers.pop(bolt, None)

    def _run_timers(self, bolt: StageBolt) -> Iterator[Out]:
        """Run a task's timers, since the end of its input has come."""
        for _ in bolt.run_timers():
            self.drain()
            yield from self._flush(LIMIT)

    def _counts(self, task: int, stats: Any) -> tuple[int, ...]:
        # Tuples that took the short way through SparkRoute.places were not counted one by one; their boxes have the
        # number.
        short = sum(box.sent - box.counted for box in self._routing.boxes if box.owner == task and box.kind == ROWS)
        errors = self._error_counts.get(task, 0)
        return (stats.executed, stats.emitted + short, stats.transferred + short, stats.acked, stats.failed, errors)

    # ---- what it sends ----

    def _flush(self, limit: int) -> Iterator[Out]:
        """Send what is in each box that holds at least so many rows, or LIMIT_BYTES."""
        for box in self._routing.boxes:
            if box.is_full(limit):
                if box.kind == OUTPUT:
                    self._look_at(box)
                for rows, payload in box.take():
                    record = self._record(box.kind, box.level, box.worker, box.what, rows, payload)
                    (self._sent if box.level != END else self._output).add(box.level, box.worker, rows, payload)
                    yield self._addressed(record)

    def _tell_failure(self) -> Iterator[Out]:
        """Send FAILED to all workers of the next level, which pass it on."""
        level = self._level + 1
        for worker in range(self._job.layout.sizes[level] if level < len(self._job.layout.sizes) else 0):
            yield worker, self._record(FAILED, level, worker, None, 0, b"")

    def _look_at(self, box: Any) -> None:
        """Note the types in an output's columns, so that it can become a DataFrame."""
        columns = zip(*box.rows, strict=True) if box.wide else [box.rows]
        found = [{kind.__name__ for kind in set(map(type, column))} for column in columns]
        known = self._kinds.setdefault(box.what, [set() for _ in found])
        for seen, more in zip(known, found, strict=True):
            seen |= more

    def _record(self, kind: int, level: int, worker: int, what: Any, rows: int, payload: bytes) -> Record:
        return Record(kind, level, worker, self._level, self._index, next(self._number), what, rows, payload)

    def _addressed(self, record: Record) -> Out:
        """Address a record to its worker if that is of the next level, else to any worker there, which passes it on."""
        sizes = self._job.layout.sizes
        here = self._level + 1
        if here >= len(sizes):
            return 0, record
        return record.worker if record.level == here else (record.worker + self._index) % sizes[here], record

    def _hand_on(self, records: Iterable[Out]) -> Iterator[Out]:
        places = self._job.layout.places
        for _, record in records:
            old = Record(*record)
            level, worker = places[old.what]
            yield self._addressed(old._replace(level=level, worker=worker))

    # ---- what its tasks are connected to ----

    def drain(self) -> None:
        """Make all deliveries inside this worker, each followed by all that it leads to."""
        out = self._out
        while out:
            items = out[:]
            out.clear()
            self._run(items)

    def _run(self, items: Iterable[tuple[Any, Any]]) -> None:
        out = self._out
        for bolt, tup in items:
            if type(bolt) is Later:
                bolt.execute(tup)
            elif bolt.countdown > 1:
                bolt.countdown -= 1
                bolt.process(tup)
            else:
                start = perf_counter()
                bolt.process(tup)
                secs = perf_counter() - start
                self._inside_secs += secs * bolt.every
                if isinstance(bolt, StageBolt):
                    bolt.took(secs * bolt.every)
                bolt.countdown = bolt.every = 1 if secs > SLOW_SECS else SAMPLE_EVERY
            if out:
                mine = out[:]
                out.clear()
                self._run(mine)

    def _plan(self, task: int) -> TaskPlan:
        job = self._job
        spec = job.topology.components[job.assignment[task]]
        context = job.topology.context_for(task, job.assignment)
        return TaskPlan(task, spec, {**job.conf, **spec.conf}, context, {})

    def _bolt(self, task: int) -> Any:
        plan = self._plan(task)
        if isinstance(plan.spec.component, ShellComponent):
            return ShellBoltTask(plan, self._links, self._failed)
        saving = self._job.saving
        bolt: StageBolt
        if self._batch is not None:
            bolt = TransactionalTask(plan, self._links, self._failed, self._batch)
        elif isinstance(plan.spec.component, Stateful) and saving is not None:
            bolt = StatefulTask(plan, self._links, self._failed, saving)
        else:
            bolt = StageBolt(plan, self._links, self._failed, anchored=saving is not None)
        bolt.timed = self._with_timers
        return bolt

    def _routes(self, task: int) -> dict[str, Any]:
        spec = self._job.topology.components[self._job.assignment[task]]
        return self._routing.of(task, spec, self._tasks, self._out, self._name_tuple)

    def _name_tuple(self, tup: Any) -> str:
        """Return an id for a tuple whose id is asked for. The tuple can be acked, and anchored to, by it."""
        id = str(next(self._ids))
        self._named[id] = tup
        return id

    def _report(self, plan: TaskPlan, message: str) -> None:
        self._error_counts[plan.id] = self._error_counts.get(plan.id, 0) + 1
        key = plan.id, kind_of(message)
        if key in self._errors:
            self._errors[key][1] += 1
        elif len(self._errors) < _MAX_ERRORS:
            self._errors[key] = [message, 1]
        _REPEATS.report((plan.component, plan.id), message, plan.component)


class _Feed:
    """A spout's task, which only routes its rows."""

    def __init__(self, worker: StageWorker, plan: TaskPlan, stream: str) -> None:
        self.task = plan.id
        self.emitted = 0
        self.transferred = 0
        plan.routes.update(worker._routes(plan.id))
        self._routes: dict[str, SparkRoute] = plan.routes  # type: ignore[assignment]
        self._stream = stream
        self._worker = worker
        self._out = worker._out

    def emit(self, values: list[Any], root: int, stream: str | None, direct: int | None) -> None:
        """Route one row."""
        route = self._routes[self._stream if stream is None else stream]
        targets: Any = route.targets(values, direct)
        self.emitted += 1
        self.transferred += len(targets)
        if targets or route.output is not None:
            route.give(values, targets, root)
        if self._out:
            self._worker.drain()


def _ticks(settings: Settings) -> int:
    """Return one, or as many ticks as come until a tuple that the bolt keeps has timed out."""
    return max(1, int(settings.message_timeout_secs / settings.tick_secs)) if settings.tick_secs else 1


def _timed(bolt: Any, call: Callable[[], None]) -> None:
    """Make a call into a bolt, and add the time that it takes to those of its tuples."""
    start = perf_counter()
    call()
    if isinstance(bolt, StageBolt):
        bolt.took(perf_counter() - start)
