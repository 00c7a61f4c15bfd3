"""Partitions in memory, for tests and examples (Storm's MemoryTransactionalSpout and OpaqueMemoryTransactionalSpout)."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.streams import declared_streams
from multilang.transactional.api import (
    OpaqueCoordinator,
    OpaqueEmitter,
    OpaquePartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
)
from multilang.transactional.executors import Following
from multilang.transactional.spouts.history import History
from multilang.transactional.spouts.interface import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from multilang.coordination import BatchCollector
    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.spouts.interface import Rows

    Partitions = Mapping[int, Sequence[Sequence[Any]]]


class _Memory:
    def __init__(self, partitions: Partitions, fields: Sequence[str], batch_size: int) -> None:
        if sorted(partitions) != list(range(len(partitions))):
            raise ConfigError(f"partitions are numbered from 0 on, not {sorted(partitions)}")
        if type(batch_size) is not int or batch_size < 1:
            raise ConfigError(
                f"batch_size is {batch_size!r}; use the number of rows of a partition that are one batch, from 1"
            )
        self.partitions = {partition: list(rows) for partition, rows in partitions.items()}
        self.batch_size = batch_size
        self._fields = fields

    def declared_streams(self) -> dict[str, Stream]:
        """Return the stream of the rows."""
        return declared_streams(["tx", *self._fields], None)

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> Any:
        """Return a coordinator that is always ready."""
        return self._coordinator(self)

    def get_emitter(self, conf: dict[str, Any], context: Context) -> Any:
        """Return an emitter of rows by their index."""
        return self._emitter(self)

    _coordinator: Any
    _emitter: Any

    def ended(self, metadata: Mapping[int, Any]) -> bool:
        """Return whether all rows were in these batches or earlier ones."""
        return all(_end(metadata.get(partition)) >= len(rows) for partition, rows in self.partitions.items())

    def history(self) -> History:
        """Return the history, which compares the rows with those that were read before."""
        return History(_MemorySource(self.partitions), self._fields)

    def emit_after(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last: Any, history: History
    ) -> dict[str, Any]:
        """Emit the batch that follows the last one, and return its metadata."""
        history.compare(partition, last)
        start = _end(last)
        rows = self.partitions[partition][start : start + self.batch_size]
        more = history.after(partition, last, start, start + len(rows), rows)
        collector.emit_many([attempt, *row] for row in rows)
        return {"index": start, "amount": len(rows), **more}


class _MemorySource(Source):
    """The rows as a source, by which they are compared."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def num_partitions(self) -> int:
        return len(self._partitions)

    def first(self, partition: int) -> int:
        return 0

    def describe(self) -> str:
        return "memory"

    def identity(self, partition: int) -> dict[str, str]:
        return {"kind": "memory"}

    def read(self, partition: int, position: int, most: int) -> tuple[Rows, int]:
        rows = self._partitions[partition][position : position + most]
        return rows, position + len(rows)

    def read_again(self, partition: int, start: int, end: int) -> Rows:
        return self._partitions[partition][start:end]

    def has_more(self, partition: int, position: int) -> bool:
        return position < len(self._partitions[partition])


def _end(metadata: dict[str, int] | None) -> int:
    return 0 if metadata is None else metadata["index"] + metadata["amount"]


class _MemoryCoordinator(Following, PartitionedCoordinator, OpaqueCoordinator):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def resume(self, metadata: Mapping[int, Any]) -> None:
        history = self._memory.history()
        for partition, last in metadata.items():
            history.compare(partition, last)

    def num_partitions(self) -> int:
        return len(self._memory.partitions)

    def exhausted(self, metadata: Mapping[int, Any]) -> bool:
        return self._memory.ended(metadata)


class _MemoryEmitter(PartitionedEmitter):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory
        self._history = memory.history()

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        return self._memory.emit_after(attempt, collector, partition, last_metadata, self._history)

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, metadata: Any
    ) -> None:
        rows = self._memory.partitions[partition][metadata["index"] : _end(metadata)]
        collector.emit_many([attempt, *row] for row in rows)


class _OpaqueMemoryEmitter(OpaqueEmitter):
    def __init__(self, memory: OpaqueMemoryTransactionalSpout) -> None:
        self._memory = memory
        self._history = memory.history()

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        if partition in self._memory.disabled:
            return last_metadata
        return self._memory.emit_after(attempt, collector, partition, last_metadata, self._history)

    def num_partitions(self) -> int:
        return len(self._memory.partitions)


class MemoryTransactionalSpout(_Memory, PartitionedTransactionalSpout):
    """Rows in memory. In the embedded cluster the topology ends with the last row; on Storm empty batches follow.

    Args:
        partitions: The rows of each partition, by its number from 0 on.
        fields: The names of a row's values. The stream's fields are ``tx`` and these.
        batch_size: The largest number of rows of a partition in one batch.
    """

    _coordinator = _MemoryCoordinator
    _emitter = _MemoryEmitter


class OpaqueMemoryTransactionalSpout(_Memory, OpaquePartitionedTransactionalSpout):
    """Rows in memory, from an opaque spout.

    Args:
        partitions: The rows of each partition, by its number from 0 on.
        fields: The names of a row's values. The stream's fields are ``tx`` and these.
        batch_size: The largest number of rows of a partition in one batch.
        disabled: The partitions that can't be read at the moment.
    """

    _coordinator = _MemoryCoordinator
    _emitter = _OpaqueMemoryEmitter

    def __init__(
        self, partitions: Partitions, fields: Sequence[str], batch_size: int, disabled: Sequence[int] = ()
    ) -> None:
        super().__init__(partitions, fields, batch_size)
        self.disabled = set(disabled)
