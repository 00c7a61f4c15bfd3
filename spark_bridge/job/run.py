"""A topology as a Spark job, from its sources to its result: the rounds of reading and replaying."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from multilang import settings
from multilang.component.repeats import kind_of
from multilang.engine.plan import storm_id
from multilang.engine.settings import DEFAULTS, Settings
from multilang.engine.status import RunStatus
from multilang.errors import SparkJobError
from multilang.settings import BATCH, PARENT
from multilang.state.bolt import Stateful
from multilang.state.names import namespace
from multilang.topology.errors import TopologyError
from multilang.transactional.parts import late
from spark_bridge.installed import unsuitable
from spark_bridge.job.blocks import is_for_driver, is_report, is_state
from spark_bridge.job.columns import check_types
from spark_bridge.job.layout import Layout, in_order
from spark_bridge.job.plan import (
    as_declared,
    by_value,
    check_maps,
    check_spouts,
    check_state,
    is_transactional,
    outputs_of,
    windowed_bolts,
)
from spark_bridge.job.result import JobResult, ReportedError
from spark_bridge.job.rounds import EmittedFeed, RoundReport, RowFeed, Unchanged
from spark_bridge.job.sources import Cut, SourceReader, check_sources, fields_of_rows, fingerprint, rows_of
from spark_bridge.job.spouts import SpoutFeed
from spark_bridge.job.state import NoStates, initial_and_saved, is_stateful, joined, split
from spark_bridge.job.status import components_of, conclude, counters_of, errors_of
from spark_bridge.job.transactions import Transactions, running
from spark_bridge.job.watch import SPARK_ERRORS, JobProgress, collected, raise_readable
from spark_bridge.job.worker import Job, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Literal

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology.model import Topology
    from spark_bridge.job.state import Rows, States, Where
    from spark_bridge.sources.source import PartitionSource

MAX_ERRORS = 100  # kinds of errors in the result, the latest ones; the counters count all errors
_IDLE_SECS = 0.02  # pause while a spout waits for its replays to be due


@dataclass(frozen=True)
class RunSpec:
    """One call of run_topology, or one batch of a streaming query, as it is asked for.

    Attributes:
        topology: The topology.
        sources: The rows of spouts, by component id or (id, stream).
        spark: The session.
        conf: Configuration that overrides the topology's.
        outputs: The streams to keep, by component id or (id, stream); None: those that nobody subscribes to.
        max_replays: How often a row is replayed at most.
        limits: Spout id -> how many tuples a spout without a source may emit at most.
        batch: How many tuples each task of a spout without a source emits for one round.
        seed: The seed of all random choices.
        progress: Called several times a second with the progress, in the caller's thread.
        states: The states with which stateful bolts begin.
        known: The knowledge of bolts from an earlier run, by task; with it, ``known_now`` returns what they know at the
            end.
        ends: Whether no other input follows, so that all windows end.
        label: The name of its jobs in Spark's UI; by default the topology's.
        transactions: Those of a transactional topology; the rows are the transaction that was begun.
    """

    topology: Topology
    sources: Mapping[Any, Any]
    spark: SparkSession
    conf: Mapping[str, Any] = field(default_factory=dict)
    outputs: Iterable[str | tuple[str, str]] | None = None
    max_replays: int = 3
    limits: Mapping[str, int] = field(default_factory=dict)
    batch: int = 1
    seed: int = 0
    progress: Callable[[JobProgress], None] | None = None
    states: States | NoStates = field(default_factory=NoStates)
    known: Mapping[int, bytes] | None = None
    ends: bool = False
    transactions: Transactions | None = None
    label: str = ""


def run_topology(
    topology: Topology,
    sources: Mapping[str | tuple[str, str], RDD[Any] | DataFrame | PartitionSource],
    spark: SparkSession,
    *,
    conf: Mapping[str, Any] | None = None,
    outputs: Iterable[str | tuple[str, str]] | None = None,
    max_replays: int = 3,
    limits: Mapping[str, int] | None = None,
    batch_size: int = 100_000,
    seed: int = 0,
    progress: Callable[[JobProgress], None] | None = None,
    state: Where | None = None,
    initial_state: Where | None = None,
    save_state: Where | None = None,
    positions: Mapping[str, Sequence[Any]] | None = None,
) -> JobResult:
    """Run ``topology`` on ``spark`` until every spout tuple is acked, or has failed for good.

    A row that fails is replayed in a further round. The state of stateful bolts is saved all at once when every row is
    processed; when the job breaks off, nothing is saved.

    Args:
        topology: The topology to run.
        sources: The rows of spouts, by component id or (id, stream). Each is an RDD whose rows are tuples of values
            (or, for a stream of one field, the values themselves), a DataFrame with the stream's fields among its
            columns, or a PartitionSource, which is read from the position in the initial state to its present end. A
            spout without a source runs as it is, in the driver, until it is exhausted.
        spark: The session.
        conf: Configuration that overrides the topology's.
        outputs: The streams to keep, by component id or (id, stream); by default those that nobody subscribes to.
        max_replays: How often a row is replayed at most.
        limits: Spout id -> how many tuples a spout without a source may emit at most.
        batch_size: How many tuples each task of a spout without a source emits for one round.
        seed: The seed of all random choices: the same seed groups the same tuples in the same way.
        progress: Called several times a second with the progress, in the caller's thread.
        state: The place for the states of stateful bolts: the path of an SQLite file, ``"redis://HOST:PORT/DATABASE"``,
            or the conf entries of a provider. They begin with what is there, which may be nothing, and are saved there.
            It stands for ``initial_state`` and ``save_state`` of the same place. None: they begin without state, which
            is not saved.
        initial_state: The place that is only read, if it is another one than ``save_state``.
        save_state: The place to save the state to, which must be empty.
        positions: Spout id -> the position of each of its tasks, as its ``position()`` returns it. With exact alignment
            the spouts continue there after this job. The positions are saved with the state; those of PartitionSources are
            found by the job.

    Returns:
        The counters, the errors and the output streams.

    Raises:
        TopologyError: Spark can't express the topology, or the arguments don't fit. Raised before any job starts.
        TaskStartError: A component can't be initialized.
        SparkJobError: The job broke off.
    """
    why_not = unsuitable(spark)
    if why_not is not None:
        raise TopologyError(f"topology {topology.name!r} can't run in this session: {why_not}")
    declared = topology.with_conf(conf or {})
    if state is not None:
        if initial_state is not None or save_state is not None:
            raise TopologyError(
                "state is the place that is read and written, so that initial_state and save_state have no meaning beside it: give "
                "state alone, or, for two places, initial_state and save_state"
            )
        initial_state = save_state = state
    before, after = initial_and_saved(declared, initial_state, save_state)
    transactions = None
    try:
        cut = Cut(declared, sources, positions or {}, spark, before, after)
        transactions = Transactions(declared) if is_transactional(declared) else None
        begin = before or NoStates(after)
        run = JobRun(
            RunSpec(
                topology,
                cut.sources,
                spark,
                conf=conf or {},
                outputs=outputs,
                max_replays=max_replays,
                limits=limits or {},
                batch=batch_size,
                seed=seed,
                progress=progress,
                states=begin,
                ends=after is None,
                transactions=transactions,
            )
        )
        if transactions is not None:
            transactions.begin(rows=run.fingerprints())
        result = run.run()
        if transactions is not None:
            transactions.commit()
        if after is not None:
            changes = {**run.changes(), **begin.moved(cut.positions())}
            if after is before:
                after.save(changes)
            else:
                after.fill(begin, changes)
        return result
    finally:
        for each in (before, after, transactions):
            if each is not None:
                each.close()


class JobRun:
    """One call of run_topology, or one batch of a streaming query."""

    def __init__(self, spec: RunSpec) -> None:
        """Check everything that can be checked before a job starts."""
        spark, states, transactions = spec.spark, spec.states, spec.transactions
        for name, number, least in (("max_replays", spec.max_replays, 0), ("batch_size", spec.batch, 1)):
            if type(number) is not int or number < least:
                raise TopologyError(f"{name} is {number!r}; use a whole number from {least}")
        settings.check(dict(spec.conf))
        self._spec = spec
        self._spark = spark
        declared = spec.topology.with_conf(spec.conf)
        name = declared.name
        self._conf = {**DEFAULTS, PARENT: "spark", **declared.conf}
        self._conf.update({"topology.name": name, "storm.id": storm_id(name)})
        # With those of the checkpoint spout, as on Storm.
        self._assignment = declared.task_ids(Settings(self._conf).ackers)
        self._topology = topology = as_declared(declared)
        self._late = late(declared)
        self._updated = False  # whether any map was perhaps updated
        self._saving = None
        self._is_exact = False
        if is_stateful(declared):
            self._conf.update(states.conf)
            self._saving = states.saving
            self._is_exact = settings.value(declared.conf, settings.ALIGNMENT) == settings.EXACT
            check_state(topology, states, spark)
        self._stateful = {
            task: namespace(id, index)
            for id, spec in topology.bolts.items()
            if isinstance(spec.component, Stateful)
            for index, task in enumerate(sorted(task for task, name in self._assignment.items() if name == id))
        }
        self._described = {
            task: f"{component.kind} {id!r} (task {task})"
            for task, id in self._assignment.items()
            if (component := topology.components.get(id)) is not None
        }
        if transactions is not None:
            check_maps(topology, str(spark.sparkContext.master))
        in_order(topology)  # first of all, because it refuses cycles
        found = check_sources(topology, spec.sources)
        self._sourced = {component for component, _ in found}
        check_spouts(
            topology,
            self._sourced,
            self._spec.limits,
            is_transactional=transactions is not None,
            is_exact=self._is_exact,
        )
        self._ends: Literal["", "batch", "input"] = ""
        windowed = windowed_bolts(topology)
        if windowed:
            self._ends = "input" if spec.ends else "batch"
            # One instant for all tasks, also for those that Spark runs again.
            self._conf[BATCH] = {
                "time_ms": round(time.time() * 1000),
                "merged": [id for id in topology.components if id not in windowed],
            }
        self._outputs = outputs_of(topology, spec.outputs)
        check_types(topology, self._outputs)
        self._label = spec.label or topology.name
        self._rows = {
            key: rows_of(key[0], fields_of_rows(topology.components[key[0]], key[1]), given)
            for key, given in found.items()
        }
        self._result = JobResult(topology, spark, self._outputs)
        self._sums: dict[int, list[int]] = {}
        self._busy: dict[int, float] = {}
        self._start = time.perf_counter()
        self._left: dict[str, set[str]] = {}
        self._at_end: dict[int, bytes] = {}  # what bolts knew at the end of the last round

    def changes(self) -> dict[str, Rows]:
        """Return the changes in the states of stateful bolts, by namespace."""
        return {name: split(self._at_end[task])[1] for task, name in self._stateful.items() if task in self._at_end}

    def known_now(self) -> dict[int, bytes]:
        """Return what bolts know at the end, for the next run.

        Changes of states are left out, since they are committed by then.
        """
        return {
            task: joined(split(payload)[0], []) if task in self._stateful else payload
            for task, payload in self._at_end.items()
        }

    def fingerprints(self) -> dict[str, list[int]]:
        """Return what identifies the rows of each source, which are read for this."""
        with self._by_value():
            return {
                "/".join(key): fingerprint(
                    rows,
                    SourceReader(key[0], fields_of_rows(self._topology.components[key[0]], key[1]), None, kinds),
                    f"{self._label}: the rows of {key[0]!r}",
                )
                for key, (rows, kinds) in self._rows.items()
            }

    def _by_value(self) -> AbstractContextManager[None]:
        return by_value(self._topology, *(() if self._saving is None else self._saving.kinds))

    def run(self) -> JobResult:
        """Run all rounds."""
        start = self._start = time.perf_counter()
        with self._by_value():
            feeds: list[RowFeed | EmittedFeed] = []
            try:
                feeds.extend(self._feeds())  # lazily: if making one fails, those before it are closed
                self._rounds(feeds)
                conclude(self._result, feeds, self._assignment, self._sums)
            except SPARK_ERRORS as error:
                raise_readable(error)
            finally:
                for feed in feeds:
                    if isinstance(feed, EmittedFeed):
                        feed.spout.close()
        self._result.ended(time.perf_counter() - start, self._status_of(feeds, "ended"))
        return self._result

    def _status_of(self, feeds: list[RowFeed | EmittedFeed], state: str, *waiting_for: str) -> RunStatus:
        """Return the status after the rounds that have ended."""
        busy = dict(self._busy)
        for feed in feeds:
            if isinstance(feed, EmittedFeed):
                busy.update({task.plan.id: task.busy_secs for task in feed.spout.tasks if task.busy_secs is not None})
        counters = counters_of(self._topology, feeds, self._assignment, self._sums)
        return RunStatus(
            topology=self._topology.name,
            engine="spark",
            state=state,
            seconds=time.perf_counter() - self._start,
            components=components_of(
                self._topology, counters, self._assignment, self._sums, busy, ended=state == "ended"
            ),
            waiting_for=waiting_for,
            errors=errors_of(self._result.errors),
        ).averaged()

    def _feeds(self) -> Iterator[RowFeed | EmittedFeed]:
        topology = self._topology
        for (component, stream), (rows, kinds) in self._rows.items():
            fields = fields_of_rows(topology.components[component], stream)
            yield RowFeed(component, stream, fields, rows, kinds, self._spec.max_replays)
        for id, spec in topology.spouts.items():
            if id not in self._sourced:
                spout = SpoutFeed(
                    topology,
                    spec,
                    self._conf,
                    self._assignment,
                    limit=self._spec.limits.get(id),
                    batch=self._spec.batch,
                    report=self._report,
                )
                yield EmittedFeed(spout, self._spark.sparkContext.defaultParallelism, self._spec.max_replays)

    def _rounds(self, feeds: list[RowFeed | EmittedFeed]) -> None:
        sc = self._spark.sparkContext
        topology = self._topology
        first = Layout(topology, self._assignment, [feed.source() for feed in feeds], move_in=True, late=self._late)
        for feed, source in zip(feeds, first.sources, strict=True):
            feed.narrow(source.size)
        later = Layout(topology, self._assignment, [feed.source() for feed in feeds], move_in=False, late=self._late)
        may_continue = (
            self._spec.known is not None
            or self._spec.max_replays > 0
            or any(isinstance(feed, EmittedFeed) for feed in feeds)
            or bool(self._ends)
        )
        states: RDD[Any] | None = None
        while self._result.rounds == 0 or any(feed.waiting for feed in feeds):
            rounds = [feed.round(sc) for feed in feeds]
            if self._result.rounds and all(feed.is_idle for feed in feeds):
                time.sleep(_IDLE_SECS)
                continue
            layout = first if states is None else later
            self._result.rounds += 1
            job = self._job(layout, [reader for _, reader in rounds], self._result.rounds, keeps_states=may_continue)
            records, report = self._round(job, [rows for rows, _ in rounds], states, feeds)
            if report.gave_up or (self._is_exact and any(report.failed)):
                records.unpersist()
                self._undo(report, feeds)
                states = None
                continue
            unchanged = Unchanged(topology.name, report.digests)
            self._result.add(records, report.kinds, unchanged)
            for feed, count, failed, checks in zip(feeds, report.rows, report.failed, report.sums, strict=True):
                self._result.acked += feed.settle(count, failed, checks)
            states = records.mapPartitions(unchanged).filter(is_state).map(lambda record: (0, record))
        if self._ends:
            # A round without rows. Only now have all replays arrived, so that none is late for its windows.
            readers = [SourceReader(feed.component, (), {}) for feed in feeds]
            job = self._job(
                later,
                readers,
                self._result.rounds + 1,
                keeps_states=self._spec.known is not None,
                ends=self._ends,
            )
            records, report = self._round(
                job, [sc.parallelize([], source.size) for source in later.sources], states, feeds
            )
            self._result.add(records, report.kinds, Unchanged(topology.name, report.digests))

    def _job(
        self,
        layout: Layout,
        readers: Sequence[Any],
        round: int,
        *,
        keeps_states: bool,
        ends: Literal["", "batch", "input"] = "",
    ) -> Job:
        return Job(
            self._topology,
            self._conf,
            self._assignment,
            layout,
            readers,
            self._outputs,
            seed=self._spec.seed,
            round=round,
            keeps_states=keeps_states,
            saving=self._saving,
            attempt=None if self._spec.transactions is None else self._spec.transactions.attempt(),
            ends=ends,
        )

    def _undo(self, report: RoundReport, feeds: list[RowFeed | EmittedFeed]) -> None:
        """Have all rows read again from the start, since something failed and nothing counts unless all does."""
        result = self._result
        for feed, rows, failed, sums in zip(feeds, report.rows, report.failed, report.sums, strict=True):
            assert isinstance(feed, RowFeed)
            feed.undone(rows if report.gave_up else len(failed), sums)
        if result.rounds > self._spec.max_replays:
            if self._spec.transactions is not None and not self._updated:
                self._spec.transactions.free_rows()
            last = result.errors[-1] if result.errors else "none"
            what = (
                f"transaction {self._spec.transactions.current} failed at every attempt ({result.rounds} of them)"
                if self._spec.transactions is not None
                else f"rows of {', '.join(repr(feed.component) for feed in feeds)} failed at every attempt ({result.rounds} of "
                "them), and with exact alignment nothing counts unless all do"
            )
            raise SparkJobError(f"{what}; the last error: {last}")

    def _round(
        self, job: Job, rows: list[RDD[Any]], states: RDD[Any] | None, feeds: list[RowFeed | EmittedFeed]
    ) -> tuple[RDD[Any], RoundReport]:
        """Run one round, and return its records, persisted, and its report."""
        from pyspark import StorageLevel

        sc = self._spark.sparkContext
        known = self._spec.known or {} if states is None else {}
        inputs = [(source.first, each) for source, each in zip(job.layout.sources, rows, strict=True)]
        if states is not None:
            inputs.append((sum(source.size for source in job.layout.sources), states))
        # Each is read before the union: Spark's union of RDDs with one partitioner has no partition for each of theirs.
        parts = [each.mapPartitionsWithIndex(Stage(job, 0, known, first)) for first, each in inputs]
        records: Any = parts[0] if len(parts) == 1 else sc.union(parts)
        for level, size in enumerate(job.layout.sizes[1:], 1):
            records = records.partitionBy(size, int).mapPartitionsWithIndex(Stage(job, level, known))
        records = records.values().persist(StorageLevel.DISK_ONLY)
        records.setName(f"{self._label}: the records of round {job.round}")
        progress = None if self._spec.progress is None else partial(self._report_progress, feeds)
        here = None if self._spec.known is not None else frozenset(self._stateful)
        with running(sc, job.attempt):
            for_driver = records.filter(lambda record: is_for_driver(record, here))
            found = collected(
                for_driver,
                self._described_round(job.layout, feeds, job.ends),
                progress,
                job.layout.sizes,
                partial(job.layout.who, described=self._described),
            )
        self._at_end = {record[6]: record[-1] for record in found if is_state(record)}
        report = RoundReport(job.layout, filter(is_report, found), self._described)
        self._updated |= report.updated
        for task, counts in report.tasks.items():
            sums = self._sums.setdefault(task, [0] * len(counts))
            sums[:] = [a + b for a, b in zip(sums, counts, strict=True)]
        for task, secs in report.busy.items():
            self._busy[task] = self._busy.get(task, 0.0) + secs
        for task, message, times in report.errors:
            self._report(task, message, times)
        for component, names in report.left.items():
            self._left.setdefault(component, set()).update(names)
        if states is not None or self._spec.known is not None:
            for component, left in self._left.items():
                _warn_of_lost(component, ", ".join(sorted(left)))
        for feed, timed_out in zip(feeds, report.timed_out, strict=True):
            feed.timed_out += timed_out
        return records, report

    def _described_round(self, layout: Layout, feeds: list[RowFeed | EmittedFeed], ends: str) -> str:
        """Return a round's description in Spark's UI: ``word-count: sentences -> split | count, round 2 of at most 4``.

        A bar stands for a shuffle.
        """
        stages = " | ".join(" -> ".join(stage) for stage in layout.stages)
        if ends:
            return f"{self._label}: {stages}, the end of the {ends}"
        most = (
            "" if any(isinstance(feed, EmittedFeed) for feed in feeds) else f" of at most {1 + self._spec.max_replays}"
        )
        return f"{self._label}: {stages}, round {self._result.rounds}{most}"

    def _report_progress(self, feeds: list[RowFeed | EmittedFeed], done: int, tasks: int) -> None:
        if self._spec.progress is not None:
            result = self._result
            waiting_for = f"round {result.rounds}: {tasks - done} of {tasks} Spark tasks have not ended"
            status = self._status_of(feeds, "active", *([waiting_for] if done < tasks else []))
            self._spec.progress(JobProgress(result.rounds, result.acked, done, tasks, status))

    def _report(self, task: int, message: str, times: int = 1) -> None:
        errors = self._result.errors
        component, kind = self._assignment[task], kind_of(message)
        for at in range(len(errors) - 1, -1, -1):
            known = errors[at]
            if known.component == component and kind_of(known.message) == kind:
                errors.append(replace(errors.pop(at), times=known.times + times))
                return
        errors.append(ReportedError(component, task, self._result.rounds, message, times))
        del errors[:-MAX_ERRORS]


@lru_cache(1024)  # logged once, though a query has many batches
def _warn_of_lost(component: str, names: str) -> None:
    logging.getLogger(component).warning(
        "bolt %r does not keep %s from one round to the next, since it can't be pickled: each round begins with the one that initialize() makes. "
        "Keep what the bolt has counted in attributes of plain types, or in a state",
        component,
        names,
    )
