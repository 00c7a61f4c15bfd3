"""Transactional and opaque spouts that read any source whose rows can be read again.

A source has partitions, and each row of a partition has a position. The metadata of a batch has its beginning, its end and
its number of rows: ``{"from": 1200, "to": 2400, "rows": 31}``. It also has the partition's history, by which another source
is noticed.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import contextmanager
from time import monotonic

from multilang.component.errors import ConfigError, ReportedFailedException, SourceUnavailable
from multilang.component.streams import declared_streams
from multilang.helpers.closing import close_all
from multilang.transactional.api import (
    OpaqueCoordinator,
    OpaqueEmitter,
    OpaquePartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
)
from multilang.transactional.executors import Following, last_metadata
from multilang.transactional.names import CURRENT, METADATA, USER
from multilang.transactional.spouts.history import History
from multilang.transactional.spouts.interface import Source
from multilang.transactional.stores import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from multilang.coordination import BatchCollector
    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.spouts.interface import Position, Rows

IDLE_SECS = 0.05  # until a source that had nothing new is asked again
UNKNOWN_SECS = 0.005  # the same, while the sizes of the batches in flight are unknown
REST = 2.0  # a partition rests for so many times as long as its failed try took

__all__ = [
    "OpaqueTransactionalSourceSpout",
    "Source",
    "SourceSpout",
    "TransactionalSourceSpout",
]

log = logging.getLogger(__name__)


class SourceSpout(ABC):
    """A transactional spout that reads a source. Its fields are ``tx`` and ``fields``.

    Args:
        fields: The names of a row's values.
        batch_size: The largest number of rows of a partition in one batch.
    """

    def __init__(self, fields: Sequence[str], batch_size: int) -> None:
        if type(batch_size) is not int or batch_size < 1:
            raise ConfigError(
                f"batch_size is {batch_size!r}; use the number of rows of a partition that are one batch, from 1"
            )
        self.fields = list(fields)
        self.batch_size = batch_size

    def declared_streams(self) -> dict[str, Stream]:
        """Return the stream of the rows."""
        return declared_streams(["tx", *self.fields], None)

    def check_start(self, conf: dict[str, Any]) -> None:
        """Open the source once, to check that it is there."""
        self.open(conf).close()

    @abstractmethod
    def open(self, conf: Mapping[str, Any]) -> Source:
        """Return the source. Called in each task's process.

        Args:
            conf: The conf of the component.
        """


class TransactionalSourceSpout(SourceSpout, PartitionedTransactionalSpout):
    """A spout that replays the very same batch. A partition that can't be read holds up everything until it can."""

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> PartitionedCoordinator:
        return _Coordinator(self.open(conf), self.fields, conf, self.batch_size, waits=True)

    def get_emitter(self, conf: dict[str, Any], context: Context) -> PartitionedEmitter:
        return _Emitter(self.open(conf), self.fields, self.batch_size)


class OpaqueTransactionalSourceSpout(SourceSpout, OpaquePartitionedTransactionalSpout):
    """A spout that replays the rows that are there then.

    A partition that can't be read is left out until it can be read; the error is reported.
    """

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> OpaqueCoordinator:
        return _Coordinator(self.open(conf), self.fields, conf, self.batch_size, waits=False)

    def get_emitter(self, conf: dict[str, Any], context: Context) -> OpaqueEmitter:
        return _OpaqueSourceEmitter(self.open(conf), self.fields, self.batch_size)


class _Coordinator(Following, PartitionedCoordinator, OpaqueCoordinator):
    """A coordinator that begins a transaction when there is something to read.

    It knows how many rows the batches in flight take at the most, and begins a transaction if there are more than that.
    ``waits`` is whether it waits for partitions that can't be read.
    """

    def __init__(
        self, source: Source, fields: Sequence[str], conf: dict[str, Any], batch_size: int, waits: bool
    ) -> None:
        self._source = source
        self._reader = _SourcePartitionReader(source, fields, batch_size, 0.0 if waits else REST)
        self._waits = waits
        self._tells = type(source).committed is not Source.committed
        self._state = open_state(conf)
        self._newest = max(map(int, self._state.list(METADATA)), default=0)  # the last transaction that was begun
        self._ask_at = float("-inf")
        self._resumed = False
        self._reported: set[str] = set()

    def is_ready(self) -> bool:
        if monotonic() < self._ask_at:
            return False
        newest = self._state.newest_of_each(USER)
        done = self._committed()
        unknown = {int(each): self._newest - max(txid, done) for each, (txid, _) in newest.items()}
        metadata = {int(each): value for each, (_, value) in newest.items()}
        # Ask before each transaction, since an empty one is also written to the store.
        if self._more(metadata, defaultdict(lambda: self._newest - done, unknown) if self._newest > done else None):
            return True
        self._ask_at = monotonic() + (UNKNOWN_SECS if self._newest > done else IDLE_SECS)
        return False

    def begun(self, txid: int) -> None:
        """Note that a new transaction begins."""
        self._newest = txid

    def resume(self, metadata: Mapping[int, Any]) -> None:
        try:
            self._resume(metadata)
        except SourceUnavailable as problem:
            # It is tried again before a new transaction begins; the emitters compare for themselves.
            self._log_once(problem)

    def num_partitions(self) -> int:
        return _count(self._source)

    def exhausted(self, metadata: Mapping[int, Any]) -> bool:
        return self._more(metadata) is False

    def close(self) -> None:
        close_all(self._state.close, self._source.close)

    def _committed(self) -> int:
        """Return the last committed transaction."""
        return (self._state.get_data(CURRENT) or 1) - 1

    def _more(self, metadata: Mapping[int, Any], unknown: Mapping[int, int] | None = None) -> bool | None:
        """Return whether there are rows after these batches; None if that is unknown now.

        ``unknown`` has, by partition, the number of batches in flight after these.
        """
        more = self._look(metadata, unknown)
        if self._tells:
            committed = last_metadata(self._state, self._committed())
            try:
                self._source.committed({each: known["to"] for each, known in committed.items() if known is not None})
            except SourceUnavailable as problem:
                self._log_once(problem)
                return None
        return more

    def _resume(self, metadata: Mapping[int, Any]) -> None:
        """Check, before anything is read, that the source is the one of which these batches were the last."""
        known = {each: value for each, value in metadata.items() if value is not None}
        for partition, value in sorted(known.items()):
            try:
                self._reader.compare(partition, value)
            except SourceUnavailable as problem:
                if self._waits:
                    raise
                self._log_once(problem)  # with an opaque spout it is left out until it can be read, and compared then
        self._source.resume({each: value["to"] for each, value in known.items()})
        self._resumed = True

    def _look(self, metadata: Mapping[int, Any], unknown: Mapping[int, int] | None) -> bool | None:
        try:
            if not self._resumed:
                # With an opaque spout, the rows of a batch that is not committed may differ when it is read again.
                self._resume(metadata if self._waits else last_metadata(self._state, self._committed()))
            self._source.discover()
            partitions = self._source.num_partitions()
        except SourceUnavailable as problem:
            self._log_once(problem)
            return None
        more: bool | None = False
        for partition in range(partitions):
            try:
                if self._reader.has_more(
                    partition, metadata.get(partition), 0 if unknown is None else unknown[partition]
                ):
                    return True
            except SourceUnavailable as problem:
                if self._waits:  # the emitter will get the same error, and report it
                    return True
                self._log_once(problem)
                more = None
        for text in self._source.notices():
            log.warning("%s", text)
        if more is False:
            self._reported.clear()
        return more

    def _log_once(self, problem: SourceUnavailable) -> None:
        """Log a problem once: it recurs until it is solved."""
        if str(problem) not in self._reported:
            self._reported.add(str(problem))
            log.warning("%s", problem)


class _Emitter(PartitionedEmitter):
    def __init__(self, source: Source, fields: Sequence[str], batch_size: int) -> None:
        self._source = source
        self._reader = _SourcePartitionReader(source, fields, batch_size, 0.0)

    def close(self) -> None:
        self._source.close()

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> dict[str, Any]:
        try:
            rows, metadata = self._reader.read(partition, last_metadata)
        except SourceUnavailable as problem:
            raise ReportedFailedException(str(problem)) from problem
        _report(self._source, collector)
        collector.emit_many([attempt, *row] for row in rows)
        return metadata

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, metadata: Any
    ) -> None:
        try:
            rows = self._reader.read_again(partition, metadata)
        except SourceUnavailable as problem:
            raise ReportedFailedException(str(problem)) from problem
        collector.emit_many([attempt, *row] for row in rows)


class _OpaqueSourceEmitter(OpaqueEmitter):
    def __init__(self, source: Source, fields: Sequence[str], batch_size: int) -> None:
        self._source = source
        self._reader = _SourcePartitionReader(source, fields, batch_size, REST)
        self._reported: dict[int, str] = {}

    def close(self) -> None:
        self._source.close()

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        try:
            rows, metadata = self._reader.read(partition, last_metadata)
        except SourceUnavailable as problem:
            if self._reported.get(partition) != str(problem):
                collector.report_error(f"partition {partition} is left out: {problem}")
            self._reported[partition] = str(problem)
            return last_metadata
        self._reported.pop(partition, None)
        _report(self._source, collector)
        collector.emit_many([attempt, *row] for row in rows)
        return metadata

    def num_partitions(self) -> int:
        return _count(self._source)


class _SourcePartitionReader:
    """A reader of batches. ``rest`` is REST, or 0 if everything waits for a partition that can't be read anyway."""

    def __init__(self, source: Source, fields: Sequence[str], batch_size: int, rest: float) -> None:
        self._source = source
        self._history = History(source, fields)
        self._batch_size = batch_size
        self._rest = rest
        self._resting: dict[int, tuple[float, SourceUnavailable]] = {}
        self._ends: dict[int, list[Position]] = {}  # by partition, the positions at which full batches would end
        self._tails: dict[
            int, tuple[Position, int, Position]
        ] = {}  # the last batch of these: its rows, as far as they are there

    def read(self, partition: int, last: Any) -> tuple[Rows, dict[str, Any]]:
        """Return the rows after the last batch (None: there was none), and the new batch's metadata."""
        with self._tried(partition):
            start = self._start(partition, last)
            rows, end = self._source.read(partition, start, self._batch_size)
            more = self._history.after(partition, last, start, end, rows)
        return rows, {"from": start, "to": end, "rows": len(rows), **more}

    def compare(self, partition: int, last: Any) -> None:
        """Check that the partition is the one of which this was the last batch."""
        with self._tried(partition):
            self._history.compare(partition, last)

    def read_again(self, partition: int, metadata: Mapping[str, Any]) -> Rows:
        """Return the rows of a batch."""
        if not metadata["rows"]:
            return []
        with self._tried(partition):
            rows = self._source.read_again(partition, metadata["from"], metadata["to"])
        if len(rows) != metadata["rows"] or not self._history.is_same(partition, metadata, rows):
            now = f"{len(rows)} now" if len(rows) != metadata["rows"] else "others now"
            raise SourceUnavailable(
                f"partition {partition} had {metadata['rows']} rows from {metadata['from']} to {metadata['to']} when they were "
                f"emitted, and has {now}: rows must not change until they are committed. Where that can't be "
                "promised, use the opaque spout of this source, and OpaqueMap"
            )
        return rows

    def has_more(self, partition: int, last: Any, batches: int = 0) -> bool:
        """Return whether there are rows after the last batch and so many further full ones."""
        has_more = self._source.has_more
        with self._tried(partition):
            start = self._start(partition, last)
            if not batches:
                return has_more(partition, start)
            ends = self._ends.get(partition, [])
            ends = self._ends[partition] = ends[ends.index(start) :] if start in ends else [start]
            while len(ends) <= batches:
                start, count, at = self._tails.get(partition, (None, 0, None))
                if start != ends[-1]:
                    count, at = 0, ends[-1]
                if not has_more(partition, at):
                    return False
                rows, end = self._source.read(partition, at, self._batch_size - count)
                if count + len(rows) < self._batch_size:
                    self._tails[partition] = ends[-1], count + len(rows), end
                    return False
                ends.append(end)
            return has_more(partition, ends[batches])

    def _start(self, partition: int, last: Any) -> Position:
        self._history.compare(partition, last)
        return self._source.first(partition) if last is None else last["to"]

    @contextmanager
    def _tried(self, partition: int) -> Iterator[None]:
        begin = monotonic()
        until, problem = self._resting.get(partition, (0.0, None))
        if problem is not None and begin < until:
            raise problem
        try:
            yield
        except SourceUnavailable as problem:
            now = monotonic()
            self._resting[partition] = (now + self._rest * (now - begin), problem)
            raise
        self._resting.pop(partition, None)


def _report(source: Source, collector: BatchCollector) -> None:
    for text in source.notices():
        collector.report_error(text)


def _count(source: Source) -> int:
    try:
        return source.num_partitions()
    except SourceUnavailable as problem:
        raise ReportedFailedException(str(problem)) from problem
