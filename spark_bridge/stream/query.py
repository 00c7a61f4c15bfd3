"""``stream_topology``: a streaming query whose micro-batches are runs of a topology."""

from __future__ import annotations

import logging
import os
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from multilang.settings import ALIGNMENT, EXACT, value
from multilang.topology.errors import TopologyError
from spark_bridge.job.columns import check_types
from spark_bridge.job.plan import as_declared, check_maps, check_query, is_transactional, outputs_of
from spark_bridge.job.run import JobRun, RunSpec
from spark_bridge.job.sources import check_sources
from spark_bridge.job.state import NoStates, States, is_stateful
from spark_bridge.job.transactions import Transactions
from spark_bridge.job.watch import brief, raise_readable
from spark_bridge.stream.checkpoint import QueryLog, check_same, local_folder, written_directly
from spark_bridge.stream.frames import Frames, log_of, own_spouts
from spark_bridge.stream.progress import BatchProgress, ProgressListener, QueryFigures
from spark_bridge.stream.spout_log import Handover

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from multilang.engine.status import RunStatus
    from multilang.topology.model import Topology
    from spark_bridge.job import FailedTuple, JobResult
    from spark_bridge.job.state import Where

_PROGRESS_SECS = 10.0
_MAX_FAILED = 1000  # number of the latest lost rows that are stored
_SLOW_START = (
    "Python worker failed to connect back"  # Spark gives a source's process ten seconds, which no setting changes
)
_MAX_SLOW_STARTS = 5

_log = logging.getLogger(__name__)


def stream_topology(
    topology: Topology,
    sources: Mapping[str | tuple[str, str], DataFrame],
    *,
    checkpoint: str | os.PathLike[str],
    state: Where | None = None,
    conf: Mapping[str, Any] | None = None,
    outputs: Iterable[str | tuple[str, str]] | None = None,
    each_batch: Callable[[JobResult, int], object] | None = None,
    name: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    max_replays: int = 3,
    seed: int = 0,
    progress: Callable[[BatchProgress], None] | None = None,
) -> TopologyQuery:
    """Start a Structured Streaming query that runs ``topology`` on each micro-batch.

    It is running when this returns.

    The changes of the states are committed with the batch's number: Spark repeats a batch that a crash cut short, and
    it counts once.

    Args:
        topology: The topology to run.
        sources: Streaming DataFrames in the place of spouts, by component id or (id, stream), with the stream's fields
            among their columns. A spout without one runs as it is, beside the driver: see StormSpoutSource.
        checkpoint: Spark's folder of the query, any URL that it can write to.
        state: The place for the states of stateful bolts: the path of an SQLite file, ``"redis://HOST:PORT/DATABASE"``,
            or the conf entries of a provider. By default it is the one that the topology's conf names, or else the
            embedded cluster's.
        conf: Configuration that overrides the topology's.
        outputs: The streams to keep, by component id or (id, stream). By default they are, if ``each_batch`` is given,
            those that nobody subscribes to, and otherwise none.
        each_batch: Called as ``each_batch(result, batch)`` with a batch's result, such as
            ``result.dataframe("count")``, before its state is committed. After a crash it may be called again with the
            same batch.
        name: The query's name in Spark's UI; by default the topology's.
        trigger: Spark's trigger, ``{"processingTime": "1 second"}`` or ``{"availableNow": True}``.
        max_replays: How often a row is replayed at most.
        seed: The seed of all random choices.
        progress: Called with the progress of each batch, in another thread.

    Returns:
        The running query.

    Raises:
        TopologyError: Spark can't express the topology, or the checkpoint is that of another topology.
        StateError: The states can't be used.
    """
    checkpoint = os.fspath(checkpoint)
    whole = topology.with_conf(conf or {})
    declared = as_declared(whole)
    check_query(declared)
    given = check_sources(declared, sources)
    own = own_spouts(whole, given, conf or {}, checkpoint)
    frames = Frames(declared, given, own)
    spark = frames.session
    check_same(spark, checkpoint, declared, frames.columns)
    if state is not None and not is_stateful(whole):
        raise TopologyError(
            f"topology {whole.name!r} has no stateful bolt whose state could be stored: leave out state"
        )
    log: States | Transactions | None = None
    handover: Handover | None = None
    if is_stateful(whole):
        log = States(whole, state)
    elif is_transactional(whole):
        check_maps(declared, str(spark.sparkContext.master))
        log = Transactions(whole)
    try:
        if isinstance(log, States) and value(whole.conf, ALIGNMENT) == EXACT:
            folder = local_folder(spark, checkpoint)
            handover = Handover(log, {spout: log_of(folder, spout) for spout, _ in own})
        if each_batch is None and outputs is None:
            outputs = []
        streams = outputs_of(declared, outputs)
        check_types(declared, streams)
        planned = QueryLog(spark, checkpoint)
        batches = _Batches(topology, frames, conf or {}, streams, each_batch, max_replays, seed, log, handover, planned)
        return TopologyQuery(batches, name or topology.name, checkpoint, trigger, progress)
    except BaseException:
        if log is not None:
            log.close()
        raise


class _Batches:
    """The function that Spark calls for each batch.

    ``outcomes``: of batches whose progress Spark has not reported yet.
    """

    def __init__(
        self,
        topology: Topology,
        frames: Frames,
        conf: Mapping[str, Any],
        outputs: Sequence[tuple[str, str]],
        each_batch: Callable[[JobResult, int], object] | None,
        max_replays: int,
        seed: int,
        log: States | Transactions | None,
        handover: Handover | None,
        planned: QueryLog,
    ) -> None:
        """Begin no batch yet.

        ``log``: the store of committed batches; without one, a repeated batch is processed again. ``planned``: the rows
        of batches, as the checkpoint has them.
        """
        self.topology = topology
        self.frames = frames
        self.error: Exception | None = None
        self.failed: list[FailedTuple] = []
        self.outcomes: dict[int, dict[str, Any]] | None = None  # set if progress is reported
        self.figures = QueryFigures(topology.name)
        self._conf = conf
        self._outputs = outputs
        self._each_batch = each_batch
        self._max_replays = max_replays
        self._seed = seed
        self._log = log
        self._handover = handover
        self._planned = planned
        self._known: Mapping[int, bytes] = {}
        self._busy = Lock()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Process a batch of Spark's."""
        try:
            with self._busy:
                self._process(rows, batch)
        except Exception as error:  # noqa: BLE001  # given to Spark, and raised by wait()
            self.error = error  # stored, because Spark returns an error only as a text
            raise brief(error) from None

    def close(self) -> None:
        """Close the store, since the query has ended."""
        with self._busy:
            log, self._log = self._log, None
            if log is not None:
                log.close()

    def _process(self, rows: DataFrame, batch: int) -> None:
        spark = rows.sparkSession
        sc = spark.sparkContext
        log = self._log
        start = monotonic()
        # Not from Spark's local property, which only a thread has that pyspark has pinned to one of Java's
        query = "" if log is None else self._planned.query
        planned = None if log is None else self._planned.rows(batch)
        if log is not None and log.begin(query, batch, planned) is None:
            self._report(batch, rows=0, repeated=True)
            return
        sc.setJobDescription(f"{self.topology.name}, batch {batch}")  # also of the jobs of each_batch
        run = JobRun(
            RunSpec(
                self.topology,
                self.frames.of(rows),
                spark,
                conf=self._conf,
                outputs=self._outputs,
                max_replays=self._max_replays,
                seed=self._seed + batch,
                states=log if isinstance(log, States) else NoStates(),
                known=self._known,
                label=f"{self.topology.name}, batch {batch}",
                transactions=log if isinstance(log, Transactions) else None,
            )
        )
        with run.run() as result:
            if self._each_batch is not None:
                self._each_batch(result, batch)
            if isinstance(log, States):
                read = {id: result.counters[id].acked for id in result.topology.spouts}
                moved, logs = ({}, {}) if self._handover is None else self._handover.moved(read)
                log.save({**run.changes(), **moved}, query, batch, logs, planned)
            elif log is not None:
                log.commit()
        self.figures.add(batch, result.status(), monotonic() - start)
        self._known = run.known_now()
        self.failed = [*self.failed, *result.failed][-_MAX_FAILED:]
        self._report(
            batch,
            rows=result.acked + result.lost,
            acked=result.acked,
            failed=sum(result.counters[id].failed for id in result.topology.spouts),
            timed_out=sum(result.counters[id].timed_out for id in result.topology.spouts),
            replayed=result.rounds - 1,
            lost=result.lost,
        )

    def _report(self, batch: int, **outcome: Any) -> None:
        if self.outcomes is not None:
            self.outcomes[batch] = outcome


class TopologyQuery:
    """A running topology.

    Attributes:
        query: Spark's own StreamingQuery.
    """

    def __init__(
        self,
        batches: _Batches,
        name: str,
        checkpoint: str,
        trigger: Mapping[str, Any] | None,
        progress: Callable[[BatchProgress], None] | None,
    ) -> None:
        self._batches = batches
        self._spark: SparkSession = batches.frames.session
        self._listener = None
        if progress is not None:
            batches.outcomes = {}
            self._listener = ProgressListener(name, batches.outcomes, progress)
            self._spark.streams.addListener(self._listener)
        writer = batches.frames.union.writeStream.queryName(name).option("checkpointLocation", checkpoint)
        writer = writer.foreachBatch(batches)
        if trigger:
            writer = writer.trigger(**trigger)
        self._writer, self._checkpoint, self._slow_starts = writer, checkpoint, 0
        try:
            self.query: StreamingQuery = self._start()
        except BaseException:
            self._forget()
            raise

    def _start(self) -> StreamingQuery:
        with written_directly(self._spark, self._checkpoint):
            return self._writer.start()

    def _restarted(self, error: StreamingQueryException) -> bool:
        """Restart the query if the machine was too busy to start its source in Spark's time; return whether it was."""
        if self._batches.error is not None or _SLOW_START not in str(error) or self._slow_starts == _MAX_SLOW_STARTS:
            return False
        self._slow_starts += 1
        _log.warning(
            "the query %r is restarted from its checkpoint: its source's Python process did not start within Spark's ten seconds",
            self.query.name,
        )
        self.query = self._start()
        return True

    @property
    def failed(self) -> list[FailedTuple]:
        """The last thousand rows that failed at every attempt."""
        return list(self._batches.failed)

    def status(self) -> RunStatus:
        """Return the status: the sums of all batches since this query was started, and the last batch."""
        query = self.query
        if not query.isActive:
            return self._batches.figures.status("ended" if self._batches.error is None else "failed", ())
        message = str(query.status["message"])
        return self._batches.figures.status("active", (message,))

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the query's end. If an error ended it, that error is raised.

        Args:
            timeout: The longest wait in seconds; None: without a limit.

        Raises:
            TimeoutError: The time is over; the query continues.
        """
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            try:
                if deadline is None or timeout is None:
                    self.query.awaitTermination()
                elif not self.query.awaitTermination(max(deadline - monotonic(), 0.001)):  # type: ignore[arg-type]  # fractions, too
                    raise TimeoutError(f"the query {self.query.name!r} has not ended after {timeout:g} s; it continues")
                break
            except StreamingQueryException as error:
                if not self._restarted(error):
                    self._end()
                    own = self._batches.error
                    if own is None:
                        raise_readable(error)
                    raise own from own.__cause__  # not from Spark's, which has only its text
        self._end()

    def stop(self) -> None:
        """Stop the query. The batch under way is given up, and repeated when the query is restarted."""
        self.query.stop()
        self._end()

    def _end(self) -> None:
        if self._listener is not None:
            self._await_progress()
        self._forget()
        self._batches.close()

    def _await_progress(self) -> None:
        """Wait for the progress of the last batch, which Spark reports a moment after its end."""
        last = self.query.lastProgress
        deadline = monotonic() + _PROGRESS_SECS
        while last is not None and any(batch <= last["batchId"] for batch in list(self._batches.outcomes or ())):
            if monotonic() > deadline:
                return
            sleep(0.01)

    def _forget(self) -> None:
        if self._listener is not None:
            self._spark.streams.removeListener(self._listener)
            self._listener = None

    def __enter__(self) -> TopologyQuery:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<TopologyQuery {self.query.name!r}: {self.query.status['message']}>"
