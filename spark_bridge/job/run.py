"""A topology as a Spark job: the rounds, from the sources to what came of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from multilang.component import settings
from multilang.local.conf import DEFAULTS, Settings
from multilang.local.counters import Counters
from multilang.local.plan import storm_id
from multilang.topology.errors import did_you_mean
from spark_bridge.job.blocks import REPORT, STATE
from spark_bridge.job.by_value import by_value
from spark_bridge.job.errors import NotOnSparkError
from spark_bridge.job.feeds import EmittedFeed, RowFeed, sources_of
from spark_bridge.job.job import Job, Stage
from spark_bridge.job.layout import Layout, in_order
from spark_bridge.job.reports import RoundReport
from spark_bridge.job.result import FailedTuple, JobResult, ReportedError
from spark_bridge.job.sources import check_sources, rows_of
from spark_bridge.job.spouts import SpoutFeed, check_bound
from spark_bridge.job.watch import SPARK_ERRORS, Progress, collected, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology.model import Topology

MAX_NAMED = 1000  # failed tuples whose values are fetched
MAX_ERRORS = 1000  # the oldest are dropped; the counters count them all
_IDLE_SECS = 0.02  # while a spout waits for its replays to be due


def run_topology(
    topology: Topology,
    sources: Mapping[str | tuple[str, str], RDD[Any] | DataFrame],
    spark: SparkSession,
    *,
    conf: Mapping[str, Any] | None = None,
    outputs: Iterable[str | tuple[str, str]] | None = None,
    max_replays: int = 3,
    limits: Mapping[str, int] | None = None,
    batch: int = 100_000,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> JobResult:
    """Run ``topology`` on ``spark`` until every spout tuple is acked, or has failed for good.

    ``sources``: what stands in for spouts, by component id, or (id, stream): an RDD whose rows are tuples of values (or, for
    a stream of one field, the values themselves), or a DataFrame with the stream's fields among its columns. A spout
    without one runs as it is, in the driver, until it says that it is exhausted: ``limits`` bounds how many tuples it may
    emit, ``batch`` how many each of its tasks emits for one round. ``conf`` is laid over the topology's. ``outputs``: the
    streams to keep, by component id or (id, stream); those that nobody subscribes to, unless given. Rows that fail are
    replayed in further rounds, ``max_replays`` times at the most. ``seed``: of all random choices; the same seed groups
    the same tuples the same way. ``progress`` is called several times a second, in the caller's thread.

    Raises NotOnSparkError, before any job starts, for what Spark can't express; ComponentStartError for a component that
    can't be initialized; SparkJobError when the job breaks off.
    """
    return _Run(topology, sources, spark, conf or {}, outputs, max_replays, limits or {}, batch, seed, progress).run()


class _Run:
    """One call of run_topology."""

    def __init__(
        self,
        topology: Topology,
        sources: Mapping[Any, Any],
        spark: SparkSession,
        conf: Mapping[str, Any],
        outputs: Iterable[str | tuple[str, str]] | None,
        max_replays: int,
        limits: Mapping[str, int],
        batch: int,
        seed: int,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        for name, number, least in (("max_replays", max_replays, 0), ("batch", batch, 1)):
            if type(number) is not int or number < least:
                raise NotOnSparkError(f"{name} is {number!r}; use a whole number from {least}")
        settings.check(dict(conf))
        self._spark = spark
        self._topology = topology = topology.with_conf(conf)
        name = topology.name
        self._conf = {**DEFAULTS, "multilang.parent": "spark", **topology.conf}
        self._conf.update({"topology.name": name, "storm.id": storm_id(name)})
        self._assignment = topology.task_ids(Settings(self._conf).ackers)
        self._described = {
            task: f"{spec.kind} {id!r} (task {task})"
            for task, id in self._assignment.items()
            if (spec := topology.components.get(id)) is not None
        }
        _check_wrapped(topology)
        in_order(topology)  # refuses cycles before anything else is looked at
        found = check_sources(topology, sources)
        self._limits = dict(limits)
        self._check_spouts({component for component, _ in found})
        self._outputs = _outputs(topology, outputs)
        self._max_replays = max_replays
        self._batch = batch
        self._seed = seed
        self._progress = progress
        self._rows = {
            key: rows_of(key[0], topology.components[key[0]].streams[key[1]].fields, given)
            for key, given in found.items()
        }
        self._sourced = {component for component, _ in found}
        self._result = JobResult(topology, spark, self._outputs)
        self._sums: dict[int, list[int]] = {}
        self._left: dict[str, set[str]] = {}

    def _check_spouts(self, sourced: set[str]) -> None:
        spouts = self._topology.spouts
        for id, limit in self._limits.items():
            if id not in spouts or id in sourced:
                why = "has a source" if id in sourced else f"is no spout; {did_you_mean(id, spouts)}"
                raise NotOnSparkError(f"limits: {id!r} {why}")
            if type(limit) is not int or limit < 0:
                raise NotOnSparkError(f"limits: {id!r} is bounded by {limit!r}; use a number of tuples")
        for id, spec in spouts.items():
            if id not in sourced:
                check_bound(spec, self._limits.get(id))

    def run(self) -> JobResult:
        """All rounds."""
        start = time.perf_counter()
        with by_value(self._topology):
            feeds: list[RowFeed | EmittedFeed] = []
            try:
                feeds.extend(self._feeds())  # one by one: those that were made are closed when the next can't be
                self._rounds(feeds)
                self._conclude(feeds)
            except SPARK_ERRORS as error:
                raise readable(error) from error
            finally:
                for feed in feeds:
                    if isinstance(feed, EmittedFeed):
                        feed.spout.close()
        self._result.seconds = time.perf_counter() - start
        return self._result

    def _feeds(self) -> Iterator[RowFeed | EmittedFeed]:
        topology = self._topology
        for (component, stream), (rows, kinds) in self._rows.items():
            fields = topology.components[component].streams[stream].fields
            yield RowFeed(component, stream, fields, rows, kinds, self._max_replays)
        for id, spec in topology.spouts.items():
            if id not in self._sourced:
                spout = SpoutFeed(
                    topology,
                    spec,
                    self._conf,
                    self._assignment,
                    limit=self._limits.get(id),
                    batch=self._batch,
                    report=self._reported,
                )
                yield EmittedFeed(spout, self._spark.sparkContext.defaultParallelism, self._max_replays)

    def _rounds(self, feeds: list[RowFeed | EmittedFeed]) -> None:
        sc = self._spark.sparkContext
        topology = self._topology
        first = Layout(topology, self._assignment, sources_of(feeds), move_in=True)
        for feed, source in zip(feeds, first.sources, strict=True):
            if isinstance(feed, RowFeed):
                feed.narrow(source.size)
            else:
                feed.size = source.size
        later = Layout(topology, self._assignment, sources_of(feeds), move_in=False)
        may_go_on = self._max_replays > 0 or any(isinstance(feed, EmittedFeed) for feed in feeds)
        states: RDD[Any] | None = None
        while self._result.rounds == 0 or any(feed.waiting for feed in feeds):
            rounds = [feed.round(sc) for feed in feeds]
            if self._result.rounds and all(isinstance(feed, EmittedFeed) and feed.is_idle for feed in feeds):
                time.sleep(_IDLE_SECS)
                continue
            layout = later if self._result.rounds else first
            self._result.rounds += 1
            job = Job(
                topology,
                self._conf,
                self._assignment,
                layout,
                [reader for _, reader in rounds],
                self._outputs,
                seed=self._seed,
                round=self._result.rounds,
                keeps_states=may_go_on,
            )
            states = self._round(job, [rows for rows, _ in rounds], states, feeds)

    def _round(
        self, job: Job, rows: list[RDD[Any]], states: RDD[Any] | None, feeds: list[RowFeed | EmittedFeed]
    ) -> RDD[Any]:
        """One round; the states that the bolts had at its end."""
        from pyspark import StorageLevel

        sc = self._spark.sparkContext
        parts = rows if states is None else [*rows, states]
        records: Any = parts[0] if len(parts) == 1 else sc.union(parts)
        records = records.mapPartitionsWithIndex(_function(job, 0))
        for level, size in enumerate(job.layout.sizes[1:], 1):
            records = records.partitionBy(size, int).mapPartitionsWithIndex(_function(job, level))
        records = records.map(_record).persist(StorageLevel.DISK_ONLY)
        tasks = [*job.layout.sizes]
        tell = None if self._progress is None else self._tell
        report = RoundReport(job.layout, collected(records.filter(_is_report), tasks, tell), self._described)
        self._result._add(records, report.kinds)
        for task, counts in report.tasks.items():
            sums = self._sums.setdefault(task, [0] * len(counts))
            sums[:] = [a + b for a, b in zip(sums, counts, strict=True)]
        for task, message in report.errors:
            self._said(task, message)
        for component, names in report.left.items():
            self._left.setdefault(component, set()).update(names)
        for feed, count, failed, checks in zip(feeds, report.rows, report.failed, report.sums, strict=True):
            self._result.acked += feed.settle(count, failed, checks)
        return records.filter(_is_state).map(_keyed)  # type: ignore[no-any-return]

    def _tell(self, done: int, tasks: int) -> None:
        if self._progress is not None:
            self._progress(Progress(self._result.rounds, self._result.acked, done, tasks))

    def _reported(self, task: int, message: str) -> None:
        """A spout in the driver said so; its errors are counted there."""
        self._said(task, message)

    def _said(self, task: int, message: str) -> None:
        errors = self._result.errors
        errors.append(ReportedError(self._assignment[task], task, self._result.rounds, message))
        del errors[:-MAX_ERRORS]

    # ---- the end ----

    def _conclude(self, feeds: list[RowFeed | EmittedFeed]) -> None:
        result = self._result
        for feed in feeds:
            if isinstance(feed, RowFeed):
                result.lost += sum(map(len, feed.lost.values()))
                result.failed += self._named(feed, MAX_NAMED - len(result.failed))
            else:
                result.lost += len(feed.lost)
                room = MAX_NAMED - len(result.failed)
                for tup_id, values in list(feed.lost.values())[:room]:
                    result.failed.append(FailedTuple(feed.component, tup_id, values))
        result.counters = self._counters(feeds)

    def _named(self, feed: RowFeed, room: int) -> list[FailedTuple]:
        """The rows that were given up, read once more."""
        picks: dict[int, list[int]] = {}
        for partition in sorted(feed.lost):
            taken = feed.lost[partition][:room]
            room -= len(taken)
            if taken:
                picks[partition] = taken
        if not picks:
            return []
        reader = feed.reader(picks)

        def named(partition: int, rows: Iterable[Any]) -> Iterable[Any]:
            return (((partition, offset), values) for offset, values, _, _ in reader.read(partition, rows))

        found = collected(feed.rows.mapPartitionsWithIndex(named), [], None)
        return [FailedTuple(feed.component, id, values) for id, values in found]

    def _counters(self, feeds: list[RowFeed | EmittedFeed]) -> dict[str, Counters]:
        counters = {}
        for id, spec in self._topology.components.items():
            of_tasks = [
                self._sums[task] for task, name in self._assignment.items() if name == id and task in self._sums
            ]
            executed, emitted, transferred, acked, failed, errors = (
                (sum(each) for each in zip(*of_tasks, strict=True)) if of_tasks else (0,) * 6
            )
            lost = 0
            unfinished = 0
            if spec.kind == "bolt":
                unfinished = executed - acked - failed
            for feed in feeds:
                if feed.component == id:
                    lost += len(feed.lost) if isinstance(feed, EmittedFeed) else sum(map(len, feed.lost.values()))
                    failed += feed.failures
                    if isinstance(feed, EmittedFeed):
                        acked += feed.acked
                        errors += feed.spout.errors
                    else:
                        acked += feed.total - sum(map(len, feed.lost.values()))
            counters[id] = Counters(
                id, spec.kind, spec.tasks, emitted, transferred, executed, acked, failed, 0, lost, unfinished, errors
            )
        return counters


def _check_wrapped(topology: Topology) -> None:
    """Refuse what higher systems put around components: they count on streams that flow while a batch runs."""
    for spec in topology.components.values():
        if getattr(spec.component, "wrapped", None) is not None:
            raise NotOnSparkError(
                f"{spec.kind} {spec.id!r} runs inside a {type(spec.component).__name__}, part of a system of state, calls or "
                "transactions that has no form on Spark yet: run the topology on the embedded cluster or on Storm"
            )


def _outputs(topology: Topology, wanted: Iterable[str | tuple[str, str]] | None) -> list[tuple[str, str]]:
    """The streams to keep as (component, stream)."""
    every = [(id, stream) for id, spec in topology.components.items() for stream in spec.streams]
    if wanted is None:
        read = {(input_.component, input_.stream) for spec in topology.bolts.values() for input_ in spec.inputs}
        return [key for key in every if key not in read and topology.components[key[0]].kind == "bolt"]
    found: list[tuple[str, str]] = []
    for each in [wanted] if isinstance(wanted, str) else wanted:
        keys = [key for key in every if key == each or key[0] == each]
        if not keys:
            component = each if isinstance(each, str) else each[0]
            raise NotOnSparkError(
                f"outputs: there is no stream {each!r}; {did_you_mean(str(component), {key[0] for key in every})}"
            )
        found += [key for key in keys if key not in found]
    return found


def _function(job: Job, level: int) -> Callable[[int, Iterable[Any]], Iterable[Any]]:
    stage = Stage(job, level)

    def run(index: int, records: Iterable[Any]) -> Iterable[Any]:
        return stage(index, records)

    return run


def _record(keyed: tuple[int, Any]) -> Any:
    return keyed[1]


def _keyed(record: Any) -> tuple[int, Any]:
    return 0, record


def _is_report(record: Any) -> bool:
    return record[0] == REPORT  # type: ignore[no-any-return]


def _is_state(record: Any) -> bool:
    return record[0] == STATE  # type: ignore[no-any-return]
