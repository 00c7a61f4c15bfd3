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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from multilang.coordination import BatchCollector
    from multilang.transactional.attempt import TransactionAttempt

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

    def emit_from(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, start: int
    ) -> dict[str, int]:
        """Emit the batch that begins at ``start``, and return its metadata."""
        rows = self.partitions[partition][start : start + self.batch_size]
        collector.emit_many([attempt, *row] for row in rows)
        return {"index": start, "amount": len(rows)}


def _end(metadata: dict[str, int] | None) -> int:
    return 0 if metadata is None else metadata["index"] + metadata["amount"]


class _MemoryCoordinator(PartitionedCoordinator, OpaqueCoordinator):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def num_partitions(self) -> int:
        return len(self._memory.partitions)

    def exhausted(self, metadata: Mapping[int, Any]) -> bool:
        return self._memory.ended(metadata)


class _MemoryEmitter(PartitionedEmitter):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        return self._memory.emit_from(attempt, collector, partition, _end(last_metadata))

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, metadata: Any
    ) -> None:
        rows = self._memory.partitions[partition][metadata["index"] : _end(metadata)]
        collector.emit_many([attempt, *row] for row in rows)


class _OpaqueMemoryEmitter(OpaqueEmitter):
    def __init__(self, memory: OpaqueMemoryTransactionalSpout) -> None:
        self._memory = memory

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        if partition in self._memory.disabled:
            return last_metadata
        return self._memory.emit_from(attempt, collector, partition, _end(last_metadata))

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
