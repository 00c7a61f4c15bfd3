"""The rows of an RDD or DataFrame, read in the Spark driver, partition by partition and block by block.

A job on one partition brings some of its blocks: one at first, so that the first row arrives soon, then more and more.
They are read ahead in a thread while the blocks before are used, and the next partition is begun meanwhile. Short
partitions are begun together by one job. The
executors turn rows into text, so that the driver only passes bytes on. When a partition turns out to be long, the
executors persist its blocks (in memory, then on disk), so that the next job need not compute the blocks before its own.
What is lost with an executor, Spark computes again, and the checksums show whether it is the same.
"""

from __future__ import annotations

import time
import uuid
import weakref
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import TYPE_CHECKING, NamedTuple

from multilang.component.errors import ConnectorError, SourceUnavailable
from spark_bridge.executors import freeze_once, source_error
from spark_bridge.installed import unsuitable
from spark_bridge.sources.blocks import BLOCK_ROWS, Block, BlockSource, Chains, RowText, Width, blocks_of
from spark_bridge.sources.values import exact_rows, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeAlias, TypeVar

    from pyspark import RDD, StorageLevel
    from pyspark.sql import DataFrame

    from spark_bridge.sources.source import Progress
    from spark_bridge.sources.values import Kind

    Result = TypeVar("Result")
    Calls: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]"

READ_AHEAD_BYTES = 8 * 1024 * 1024  # what one job brings of a partition at most, unless one block is longer
_MOST_BLOCKS = 64  # blocks that one job brings at most
# Before this block, if its rows are short, and before a job for _MOST_BLOCKS, jobs compute the earlier blocks again instead of having
# them persisted: to persist the blocks, Spark would compute the whole partition before it returned the first one.
_UNKEPT_BLOCKS = 16
_JOBS_AHEAD = 4  # jobs at once, over all partitions
_MOST_UNREAD = (
    4  # times READ_AHEAD_BYTES that may wait here for the readers of partitions that were begun with another one
)


class RDDSource(BlockSource):
    """The rows of an RDD or DataFrame, in the Spark driver; ``serve`` makes it reachable for other processes.

    Args:
        rows: The RDD or DataFrame.
        fields: The names of a row's values. A DataFrame has its own; by default a row of an RDD is one value, "value".
        name: The source's name. Give a later run over the same rows the same name, for spouts to resume where they
            stopped.
        persist: True: from the start; False: never; None: when a partition turns out to be long; or a StorageLevel.
        block_rows: The number of rows that are sent to a spout's process at once. Of long rows they are fewer, in 1 MiB.

    Raises:
        ConnectorError: A column's type has no JSON form.
    """

    def __init__(
        self,
        rows: RDD[Any] | DataFrame,
        *,
        fields: Sequence[str] | None = None,
        name: str | None = None,
        persist: bool | StorageLevel | None = None,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        super().__init__()
        named, kinds = names_and_kinds(rows, fields)
        rdd: RDD[Any] = rows if kinds is None else _rdd_of(rows)  # type: ignore[assignment]
        if block_rows < 1:
            raise ConnectorError(f"block_rows={block_rows}: a block has at least one row")
        self._tag = f"rdd-{uuid.uuid4().hex}"
        self._name = name or f"an RDD of {rdd.getNumPartitions()} partitions"
        self._fields = named
        self._block_rows = block_rows
        self._blocks = rdd.mapPartitionsWithIndex(_Blocked(RowText(named, kinds), block_rows), True)
        self._partitions = rdd.getNumPartitions()
        self._persist = persist
        self._persisted = False
        self._chains = Chains(self._name)
        self._lock = Lock()
        self._readers: dict[int, _PartitionReader] = {}
        self._finished: set[int] = set()
        self._width = Width(READ_AHEAD_BYTES)
        self._ahead = Workers(_JOBS_AHEAD, "read-ahead")
        self._failed: ConnectorError | None = None
        self._closed = False
        if persist:
            self._keep()

    @property
    def name(self) -> str:
        return self._name

    @property
    def identity(self) -> str | None:
        return self._tag  # within its life, rows that differ from the first ones are refused

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    @property
    def partitions(self) -> int:
        return self._partitions

    @property
    def block_rows(self) -> int:
        """The number of rows of a block at most."""
        return self._block_rows

    @property
    def failed(self) -> ConnectorError | None:
        """The error after which nothing more can be read, such as changed rows or a failed job, or None."""
        return self._failed

    def block(self, partition: int, offset: int) -> Block | None:
        """Return the block that has a row, or None behind the partition's end. Any number of threads may call this.

        Args:
            partition: The partition's number.
            offset: The offset of the row.

        Raises:
            ChangedRowsError: The rows have changed.
            ConnectorError: There is no such partition, or a job failed.
            SourceUnavailable: The source was closed.
        """
        if not 0 <= partition < self._partitions:
            raise ConnectorError(f"{self._name!r} has no partition {partition}, only 0 to {self._partitions - 1}")
        if self._failed is not None:
            raise self._failed
        with self._lock:
            reader = self._readers.setdefault(partition, _PartitionReader(self, partition))
        try:
            return reader.block(offset)
        except SourceUnavailable:
            raise
        except (CancelledError, RuntimeError):
            if not self._closed:
                raise
            raise SourceUnavailable(f"the source {self._name!r} was closed") from None
        except ConnectorError as error:
            self._failed = error  # rows that were given out can't be read again, which concerns every reader
            raise

    def soon(self, partition: int, offset: int) -> None:
        if 0 <= partition < self._partitions and offset >= 0 and self._failed is None and not self._closed:
            with self._lock:
                reader = self._readers.setdefault(partition, _PartitionReader(self, partition))
            try:
                reader.prepare(offset)
            except RuntimeError:
                pass  # it was closed meanwhile, and takes no more jobs

    def finished(self, partition: int) -> None:
        """Free what is held of a partition, because all its rows are acked.

        Args:
            partition: The partition's number.
        """
        with self._lock:
            self._readers.pop(partition, None)
            self._finished.add(partition)

    def close(self) -> None:
        """Stop reading ahead, cancel the jobs that do it, and let the executors drop what was persisted."""
        super().close()
        if not self._closed:
            self._closed = True
            self._ahead.shutdown()
            sc = self._blocks.ctx
            with self._lock:
                self._readers.clear()
                if getattr(sc, "_jsc", None) is not None:
                    sc.cancelJobsWithTag(self._tag)
                    if self._persisted:
                        self._blocks.unpersist()

    def __deepcopy__(self, memo: object) -> BlockSource:
        return _View(self)  # each task of an embedded cluster in this process decodes its own blocks

    def __reduce__(self) -> Any:
        raise ConnectorError(
            "an RDDSource is in the Spark driver and can't be given to another process; "
            "serve(rdd).source can: it reads from here over a socket"
        )

    # ---- for the readers ----

    def run(self, partition: int, offset: int, count: int) -> list[Block]:
        """Run a job that returns ``count`` blocks from that of a row on, or fewer at the end or beyond READ_AHEAD_BYTES.

        If the partition ends before the row, the job returns its last block.
        """
        if self._persist is None and (
            offset >= _UNKEPT_BLOCKS * self._block_rows or (offset and count == _MOST_BLOCKS)
        ):
            self._keep()
        begun = time.monotonic()
        blocks = self._job([partition], offset, count)
        if offset == 0:
            self._width.learn(blocks[:1], time.monotonic() - begun)
        for block in blocks:
            self._chains.check(partition, block)
        return blocks

    def begin(self, partition: int) -> _Share | None:
        """Start a job that brings the first blocks of this partition and of some behind it that nobody has read.

        Return what the job brings of this one, or None if partitions are too long or too slow for that, or too much of what such
        jobs brought waits for readers that are far behind.
        """
        if self._width.partitions == 1:
            return None
        with self._lock:
            if sum(reader.unread for reader in self._readers.values()) > _MOST_UNREAD * READ_AHEAD_BYTES:
                return None
            behind = range(partition + 1, min(partition + self._width.partitions, self._partitions))
            unread = [each for each in behind if each not in self._readers and each not in self._finished]
            shares = [_Share(self, each) for each in (partition, *unread)]
            job = self._ahead.submit(self._run_first, [partition, *unread])
            for each, share in zip(unread, shares[1:], strict=True):
                self._readers[each] = _PartitionReader(self, each, share)
        job.add_done_callback(partial(_divide, shares))
        return shares[0]

    def _run_first(self, partitions: Sequence[int]) -> list[Block]:
        """Return the first block of each of these partitions."""
        begun = time.monotonic()
        blocks = self._job(partitions, 0, 1)
        self._width.learn(blocks, time.monotonic() - begun)
        for partition, block in zip(partitions, blocks, strict=True):
            self._chains.check(partition, block)
        return blocks

    def _job(self, partitions: Sequence[int], offset: int, count: int) -> list[Block]:
        """Run a job on these partitions, which returns at least a block for each, in their order."""
        if self._closed:
            raise SourceUnavailable(f"the source {self._name!r} was closed")
        sc = self._blocks.ctx
        try:
            sc.addJobTag(self._tag)  # for this thread's jobs
            try:
                found = list(sc.runJob(self._blocks, _Taken(offset, count, READ_AHEAD_BYTES), list(partitions)))
            finally:
                sc.removeJobTag(self._tag)
        except Exception as error:
            if self._over(sc):
                raise SourceUnavailable(f"the source {self._name!r} was closed") from None
            raise source_error(error, f"Spark could not compute partition {partitions[0]} of {self._name!r}") from error
        return [Block(*each) for each in found]

    def run_ahead(self, call: Callable[[], list[Block]]) -> Future[list[Block]]:
        """Start a job without waiting for it."""
        return self._ahead.submit(call)

    def _over(self, sc: Any) -> bool:
        """Return whether the source was closed, or Spark stopped, meanwhile."""
        return self._closed or getattr(sc, "_jsc", None) is None

    def _keep(self) -> None:
        from pyspark import StorageLevel

        with self._lock:
            if not self._persisted:
                level = self._persist if isinstance(self._persist, StorageLevel) else StorageLevel.MEMORY_AND_DISK
                self._blocks.persist(level)
                self._persisted = True


class _View(BlockSource):
    """An RDDSource as one task reads it."""

    def __init__(self, source: RDDSource) -> None:
        super().__init__()
        self._source = source

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def identity(self) -> str | None:
        return self._source.identity

    @property
    def fields(self) -> tuple[str, ...]:
        return self._source.fields

    @property
    def partitions(self) -> int:
        return self._source.partitions

    def block(self, partition: int, offset: int) -> Block | None:
        return self._source.block(partition, offset)

    def soon(self, partition: int, offset: int) -> None:
        self._source.soon(partition, offset)

    def report(self, progress: Sequence[Progress]) -> None:
        for each in progress:
            if each.done:
                self._source.finished(each.partition)

    def __deepcopy__(self, memo: object) -> _View:
        return _View(self._source)

    def __reduce__(self) -> Any:
        return self._source.__reduce__()


class _Share:
    """The share of one partition in what a job on several brings.

    If the job fails, another one reads this partition by itself, so that an error stops nobody before it is due.
    """

    def __init__(self, source: RDDSource, partition: int) -> None:
        self._source = source
        self._partition = partition
        self._block: Future[Block] = Future()  # of its own, so that the blocks of others are not held with it

    def take(self, job: Future[list[Block]], place: int) -> None:
        """Take the block at this place of what a job brought, which has ended."""
        if job.cancelled():
            self._block.set_exception(CancelledError())
        elif (error := job.exception()) is not None:
            self._block.set_exception(error)
        else:
            self._block.set_result(job.result()[place])

    @property
    def bytes(self) -> int:
        """The length of its block, if it has come."""
        block = self._block
        return len(block.result().data) if block.done() and block.exception() is None else 0

    def result(self) -> list[Block]:
        try:
            return [self._block.result()]
        except ConnectorError:
            return self._source.run(self._partition, 0, 1)


def _divide(shares: Sequence[_Share], job: Future[list[Block]]) -> None:
    for place, share in enumerate(shares):
        share.take(job, place)


class _Job(NamedTuple):
    """A job that was started for the blocks with the rows between two offsets, or with the first of them."""

    start: int
    end: int
    blocks: Future[list[Block]] | _Share


class _PartitionReader:
    """The reader of one partition: the blocks that were read and not yet used, and the job that reads ahead.

    ``first``: what brings the first block, if the partition was begun with another one.
    """

    def __init__(self, source: RDDSource, partition: int, first: _Share | None = None) -> None:
        self._source = source
        self._partition = partition
        self._lock = Lock()
        self._blocks: dict[int, Block] = {}  # by the offset of their first row
        self._first = first
        self._job: _Job | None = None
        self._count = 1
        self._end: int | None = None  # the number of rows, once it is known

    @property
    def unread(self) -> int:
        """The bytes of the first block, while it waits for a reader."""
        first = self._first
        return 0 if first is None else first.bytes

    def block(self, offset: int) -> Block | None:
        while True:
            with self._lock:
                block = next((each for each in self._blocks.values() if each.has(offset)), None)
                if block is not None:
                    self._pass(block)
                    return block
                if self._end is not None and offset >= self._end:
                    return None
                job = self._job
                if job is None:
                    job = self._start(offset)
            if job.start <= offset < job.end:
                self._take(job)
            else:  # a row that failed long ago gets a job of its own, so that reading ahead is undisturbed
                block = self._source.run(self._partition, offset, 1)[0]
                return block if block.has(offset) else None

    def prepare(self, offset: int) -> None:
        """Begin to read from here, if nothing is read yet.

        As no reader waits for the first row, the job brings as much as it may.
        """
        with self._lock:
            if self._job is None and not self._blocks and self._end is None:
                self._count = _MOST_BLOCKS
                self._start(offset)

    def _start(self, offset: int) -> _Job:
        """Start a job. The caller has the lock."""
        source, partition, count = self._source, self._partition, self._count
        first, self._first = self._first, None  # of no use for a later offset
        if offset == 0 and first is None:
            first = source.begin(partition)
        if offset == 0 and first is not None:
            self._job = job = _Job(0, source.block_rows, first)
        else:
            blocks = source.run_ahead(lambda: source.run(partition, offset, count))
            self._job = job = _Job(offset, offset + count * source.block_rows, blocks)
        self._count = min(self._count * 4, _MOST_BLOCKS)
        return job

    def _take(self, job: _Job) -> None:
        """Wait for a job and keep what it brought. The first thread does it; the others find it done."""
        blocks: list[Block] = []
        try:
            blocks = job.blocks.result()
        finally:
            with self._lock:
                if self._job is job:
                    self._job = None
                    self._blocks.update((block.start, block) for block in blocks if block.end > job.start)
                    if blocks and blocks[-1].last:
                        self._end = blocks[-1].end

    def _pass(self, block: Block) -> None:
        """Drop the blocks before the one before this, which is in use now, and read on when few are left.

        The caller has the lock.
        """
        self._blocks = {start: each for start, each in self._blocks.items() if each.end >= block.start}
        newest = self._blocks[max(self._blocks)]
        ahead = sum(start > block.start for start in self._blocks)
        if self._job is None and ahead <= len(self._blocks) // 2 and not newest.last:
            self._start(newest.end)


class _Blocked:
    """Runs in an executor: turns the rows of a partition into blocks."""

    def __init__(self, text_of: RowText, block_rows: int) -> None:
        self._text_of = text_of
        self._block_rows = block_rows

    def __call__(self, partition: int, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        freeze_once()
        return blocks_of(rows, partition, self._text_of, self._block_rows)


class _Taken:
    """Runs in an executor: returns some blocks of a partition, or its last one without text if it ends before them."""

    def __init__(self, offset: int, count: int, most_bytes: int) -> None:
        self._offset = offset
        self._count = count
        self._most_bytes = most_bytes

    def __call__(self, blocks: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        count = size = 0
        for block in blocks:
            start, rows, _, _, last, data = block
            if start + rows > self._offset:
                yield block
                count, size = count + 1, size + len(data)
                if count == self._count or size >= self._most_bytes:
                    return
            elif last:
                yield (*block[:-1], b"")


class Workers:
    """Up to ``most`` threads that make calls, started as they are needed, for which a program's end does not wait.

    The interpreter waits at its end for the calls of a ``ThreadPoolExecutor``. Calls of Spark's may take hours, and a driver that
    an error ends would continue for as long.

    Args:
        most: The number of threads at most, and so of calls at once.
        name: What the threads do, for people.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = Lock()
        self._calls: Calls = SimpleQueue()
        self._idle = Semaphore(0)
        self._threads = 0
        self._over = False
        weakref.finalize(self, _end_threads, self._calls, most).atexit = False

    def submit(self, call: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Have a thread make a call.

        Args:
            call: The function.
            arguments: What it is called with.

        Raises:
            RuntimeError: No more calls are taken, or no thread can be started.
        """
        future: Future[Result] = Future()
        with self._lock:
            if self._over:
                raise RuntimeError(f"the threads for {self._name!r} take no more calls")
            if not self._idle.acquire(blocking=False) and self._threads < self._most:
                self._start()
            self._calls.put((future, call, arguments))
        return future

    def shutdown(self) -> None:
        """Take no more calls, cancel those that wait, and let the threads end when they have made theirs."""
        with self._lock:
            self._over = True
            waiting = []
            try:
                while True:
                    item = self._calls.get_nowait()  # a thread may take the last one meanwhile
                    if item is not None:
                        waiting.append(item[0])
            except Empty:
                pass
            _end_threads(self._calls, self._most)
        for future in waiting:
            future.cancel()

    def _start(self) -> None:
        try:
            Thread(target=_work, args=(self._calls, self._idle), name=self._name, daemon=True).start()
            self._threads += 1
        except RuntimeError:
            if not self._threads:
                raise


def _work(calls: Calls, idle: Semaphore) -> None:
    while (item := calls.get()) is not None:
        future, call, arguments = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call(*arguments))
            except BaseException as error:  # noqa: BLE001  # it is for whoever asks for the result
                future.set_exception(error)
        del item, future, call, arguments  # not to be held while this waits
        idle.release()


def _end_threads(calls: Calls, threads: int) -> None:
    for _ in range(threads):
        calls.put(None)


def names_and_kinds(
    rows: RDD[Any] | DataFrame, fields: Sequence[str] | None
) -> tuple[tuple[str, ...], list[Kind] | None]:
    """Return the fields of rows, and the kinds of a DataFrame's columns; None for those of an RDD.

    Raises ConnectorError for what is no source, and for types without a JSON form.
    """
    from pyspark import RDD

    if isinstance(rows, RDD):
        return tuple(fields or ("value",)), None
    why_not = unsuitable(rows)
    if why_not is not None:
        raise ConnectorError(f"{type(rows).__name__} can't be a source: {why_not}")
    schema = getattr(rows, "schema", None)
    if schema is None:
        raise ConnectorError(f"a source is made of an RDD or a DataFrame, not of {type(rows).__name__}")
    if getattr(rows, "isStreaming", False):
        raise ConnectorError(
            "a streaming DataFrame has no partitions that could be read again: run the topology as a streaming query, "
            "spark_bridge.stream.stream_topology"
        )
    kinds = kinds_of(schema)
    if fields is not None and len(fields) != len(schema.names):
        raise ConnectorError(f"fields={list(fields)!r} for a DataFrame with the columns {schema.names!r}")
    return tuple(fields or schema.names), kinds


def _rdd_of(rows: Any) -> RDD[Any]:
    from pyspark.errors import PySparkException

    try:
        return exact_rows(rows)[0]
    except PySparkException as error:  # Spark looks at rows that it has here when it plans
        raise source_error(error, "the DataFrame can't be read") from None
