"""``stream_topology``: a streaming query whose micro-batches are runs of a topology."""

from __future__ import annotations

import os
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from multilang.state.settings import EXACT, alignment
from spark_bridge.job.declared import as_declared, is_transactional
from spark_bridge.job.errors import NotOnSparkError
from spark_bridge.job.maps import check_maps
from spark_bridge.job.run import Run
from spark_bridge.job.sources import check_sources
from spark_bridge.job.states import NoStates, States, is_stateful
from spark_bridge.job.transactions import Transactions
from spark_bridge.job.watch import brief, readable
from spark_bridge.stream.checkpoint import check_same, local_folder, written_directly
from spark_bridge.stream.frames import Frames
from spark_bridge.stream.handover import Handover
from spark_bridge.stream.own_spouts import log_of, own_spouts
from spark_bridge.stream.progress import BatchProgress, ProgressListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from multilang.topology.model import Topology
    from spark_bridge.job import FailedTuple, JobResult
    from spark_bridge.job.states import Where

_QUERY = "sql.streaming.queryId"  # Spark's local property in the thread that runs a batch
_TOLD_SECS = 10.0
_MAX_FAILED = 1000  # of the rows that were given up, the last are kept


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
    """Start a Structured Streaming query that runs ``topology`` on each micro-batch; it is running when this returns.

    ``sources``: streaming DataFrames in the place of spouts, by component id or (id, stream), with the stream's fields among their
    columns. A spout without one runs as it is, beside the driver: see StormSpoutSource. ``checkpoint``: Spark's folder of the query, any URL that it can write to. ``state``: where stateful bolts keep
    their states, the path of an SQLite file, ``"redis://HOST:PORT/DATABASE"``, or the conf entries of a provider; unless given,
    what the topology's conf names, or the file that the embedded cluster takes. What a batch changed there is committed
    with the batch's number: Spark repeats a batch that a crash cut short, and it counts once.

    ``each_batch(result, batch)``: is given what came of a batch, ``result.dataframe("count")``, before its state is
    committed; it may be called again with the same batch after a crash. ``outputs``, ``max_replays``, ``seed`` and ``conf`` as
    for ``run_topology``. ``name``: of the query in Spark's UI, the topology's unless given. ``trigger``: Spark's,
    ``{"processingTime": "1 second"}`` or ``{"availableNow": True}``. ``progress`` is told of each batch, in another thread.

    Raises NotOnSparkError for what Spark can't express and for a checkpoint of another topology, StateError for states
    that can't be used.
    """
    checkpoint = os.fspath(checkpoint)
    whole = topology.with_conf(conf or {})
    declared = as_declared(whole)
    given = check_sources(declared, sources)
    own = own_spouts(whole, given, conf or {}, checkpoint)
    frames = Frames(declared, given, own)
    spark = frames.session
    check_same(spark, checkpoint, declared, frames.columns)
    if state is not None and not is_stateful(whole):
        raise NotOnSparkError(
            f"topology {whole.name!r} has no stateful bolt whose state could be kept: leave out state"
        )
    log: States | Transactions | None = None
    handover: Handover | None = None
    if is_stateful(whole):
        log = States(whole, state)
    elif is_transactional(whole):
        check_maps(declared, str(spark.sparkContext.master))
        log = Transactions(whole)
    try:
        if isinstance(log, States) and alignment(whole.conf) == EXACT:
            folder = local_folder(spark, checkpoint)
            handover = Handover(log, {spout: log_of(folder, spout) for spout, _ in own})
        if each_batch is None and outputs is None:
            outputs = []
        batches = _Batches(topology, frames, conf or {}, outputs, each_batch, max_replays, seed, log, handover)
        return TopologyQuery(batches, name or topology.name, checkpoint, trigger, progress)
    except BaseException:
        if log is not None:
            log.close()
        raise


class _Batches:
    """What happens in a batch. ``outcomes``: of those that Spark has not told of yet."""

    def __init__(
        self,
        topology: Topology,
        frames: Frames,
        conf: Mapping[str, Any],
        outputs: Iterable[str | tuple[str, str]] | None,
        each_batch: Callable[[JobResult, int], object] | None,
        max_replays: int,
        seed: int,
        log: States | Transactions | None,
        handover: Handover | None,
    ) -> None:
        """``log``: where it is written down what is committed; without one, a batch that is repeated is processed again."""
        self.topology = topology
        self.frames = frames
        self.error: Exception | None = None
        self.failed: list[FailedTuple] = []
        self.outcomes: dict[int, dict[str, Any]] | None = None  # when somebody is told
        self._conf = conf
        self._outputs = None if outputs is None else list(outputs)
        self._each_batch = each_batch
        self._max_replays = max_replays
        self._seed = seed
        self._log = log
        self._handover = handover
        self._known: Mapping[int, bytes] = {}
        self._busy = Lock()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Spark has a batch."""
        try:
            with self._busy:
                self._process(rows, batch)
        except Exception as error:  # noqa: BLE001  # told, and raised by wait()
            self.error = error  # what Spark is told comes back as a text
            raise brief(error) from None

    def close(self) -> None:
        """The query has ended."""
        with self._busy:
            log, self._log = self._log, None
            if log is not None:
                log.close()

    def _process(self, rows: DataFrame, batch: int) -> None:
        spark = rows.sparkSession
        sc = spark.sparkContext
        query = str(sc.getLocalProperty(_QUERY))
        log = self._log
        if log is not None and log.begin(query, batch) is None:
            self._came_of(batch, rows=0, repeated=True)
            return
        sc.setJobDescription(f"{self.topology.name}: batch {batch}")
        run = Run(
            self.topology,
            self.frames.of(rows),
            spark,
            self._conf,
            self._outputs,
            self._max_replays,
            {},
            1,
            self._seed + batch,
            None,
            log if isinstance(log, States) else NoStates(),
            self._known,
            log if isinstance(log, Transactions) else None,
        )
        with run.run() as result:
            if self._each_batch is not None:
                self._each_batch(result, batch)
            if isinstance(log, States):
                read = {id: result.counters[id].acked for id in result.topology.spouts}
                moved, logs = ({}, {}) if self._handover is None else self._handover.moved(read)
                log.save({**run.changes(), **moved}, query, batch, logs)
            elif log is not None:
                log.commit()
        self._known = run.known_now()
        self.failed = [*self.failed, *result.failed][-_MAX_FAILED:]
        self._came_of(
            batch,
            rows=result.acked + result.lost,
            acked=result.acked,
            failed=sum(result.counters[id].failed for id in result.topology.spouts),
            timed_out=sum(result.counters[id].timed_out for id in result.topology.spouts),
            replayed=result.rounds - 1,
            lost=result.lost,
        )

    def _came_of(self, batch: int, **outcome: Any) -> None:
        if self.outcomes is not None:
            self.outcomes[batch] = outcome


class TopologyQuery:
    """A running topology. ``query``: Spark's own StreamingQuery."""

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
        try:
            with written_directly(self._spark, checkpoint):
                self.query: StreamingQuery = writer.start()
        except BaseException:
            self._forget()
            raise

    @property
    def failed(self) -> list[FailedTuple]:
        """The last thousand rows that failed at every attempt."""
        return list(self._batches.failed)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the query's end, at the most so many seconds; whether it has ended. Raises what ended it."""
        try:
            if timeout is None:
                self.query.awaitTermination()
            elif not self.query.awaitTermination(timeout):  # type: ignore[arg-type]  # Spark takes fractions, too
                return False
        except StreamingQueryException as error:
            self._end()
            raise self._cause(error) from error
        self._end()
        return True

    def process_available(self) -> None:
        """Wait until all that is there now is processed and committed. Raises what ended the query."""
        try:
            self.query.processAllAvailable()
        except StreamingQueryException as error:
            self._end()
            raise self._cause(error) from error

    def stop(self) -> None:
        """Stop the query: the batch under way is given up, and repeated when it is started again."""
        self.query.stop()
        self._end()

    def _cause(self, error: StreamingQueryException) -> Exception:
        return self._batches.error or readable(error)

    def _end(self) -> None:
        if self._listener is not None:
            self._hear_out()
        self._forget()
        self._batches.close()

    def _hear_out(self) -> None:
        """Spark tells of a batch a moment after it: wait for what it will tell."""
        last = self.query.lastProgress
        deadline = monotonic() + _TOLD_SECS
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
