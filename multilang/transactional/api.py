"""The three kinds of transactional spout, and what they are made of.

A spout here is declared, and makes two things where they are needed: one coordinator, in one task, which says when there
is a next transaction and what is in it; and an emitter in each of the spout's tasks, which emits the tuples. ``conf``, and
the metadata that says what is in a batch, are JSON values. Sources: Storm's ITransactionalSpout,
IPartitionedTransactionalSpout, IOpaquePartitionedTransactionalSpout.
"""

from __future__ import annotations

from multilang.component.base import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.component.context import Context
    from multilang.coordination import BatchCollector
    from multilang.transactional.attempt import TransactionAttempt


class _Part:
    def close(self) -> None:
        """Called at the end, where there is time for it."""


class _Ready(_Part):
    def is_ready(self) -> bool:
        """Whether to begin a transaction that was never begun before; never block for long. True unless overridden."""
        return True


class AnySpout(Component):
    """``output_fields`` and ``output_streams`` have the attempt as the first field, ``["tx", "word"]``."""

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> Any:
        """What decides about transactions; made in the coordinator's only task."""
        raise TypeError(
            f"{type(self).__name__} has no get_coordinator method: define get_coordinator(self, conf, context)"
        )

    def get_emitter(self, conf: dict[str, Any], context: Context) -> Any:
        """What emits the tuples; made in each task of the spout."""
        raise TypeError(f"{type(self).__name__} has no get_emitter method: define get_emitter(self, conf, context)")


class TransactionalSpout(AnySpout):
    """Emits the same batch for the same transaction, always. Makes a Coordinator and Emitters."""


class Coordinator(_Ready):
    """Of a TransactionalSpout."""

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        """The metadata of a new transaction, that of the one before being ``previous`` (None: there was none).

        It is stored before the transaction begins, and all attempts at it get the same. FailedException: not now.
        """
        raise TypeError(
            f"{type(self).__name__} has no initialize_transaction method: define initialize_transaction(self, txid, previous)"
        )

    def exhausted(self, metadata: Any) -> bool | None:
        """Whether no transaction will come after the one with this metadata (None: the first); None: it can't tell.

        Asked before each new transaction in the embedded cluster, whose topologies can come to their end, and never on Storm.
        """
        return None


class Emitter(_Part):
    """Of a TransactionalSpout."""

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchCollector) -> None:
        """Emit this task's part of the transaction's tuples, ``collector.emit([attempt, ...])``."""
        raise TypeError(
            f"{type(self).__name__} has no emit_batch method: define emit_batch(self, attempt, metadata, collector)"
        )

    def cleanup_before(self, txid: int) -> None:
        """All transactions before ``txid`` are committed: what was kept for them can go."""


class PartitionedTransactionalSpout(AnySpout):
    """Reads partitions, each from where it left off. Makes a PartitionedCoordinator and PartitionedEmitters.

    Which partitions a task has, and what was read from each in which transaction, is kept for it.
    """


class PartitionedCoordinator(_Ready):
    """Of a PartitionedTransactionalSpout."""

    def num_partitions(self) -> int:
        """How many partitions there are now; they are numbered from 0 on."""
        raise TypeError(f"{type(self).__name__} has no num_partitions method: define num_partitions(self)")

    def exhausted(self, metadata: Mapping[int, Any]) -> bool | None:
        """Whether nothing will come after these batches, the last one of each partition that had one; None: it can't tell.

        Asked before each new transaction in the embedded cluster, whose topologies can come to their end, and never on Storm.
        """
        return None


class PartitionedEmitter(_Part):
    """Of a PartitionedTransactionalSpout."""

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        """Emit a batch that was never emitted before, beginning where the one of ``last_metadata`` ended (None: the first).

        Returns its metadata: whatever emits the same batch again.
        """
        raise TypeError(f"{type(self).__name__} has no emit_partition_batch_new method")

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, metadata: Any
    ) -> None:
        """Emit exactly the batch that has this metadata once more."""
        raise TypeError(f"{type(self).__name__} has no emit_partition_batch method")


class OpaquePartitionedTransactionalSpout(AnySpout):
    """As PartitionedTransactionalSpout, but a replay may be a different batch. Makes an OpaqueCoordinator and OpaqueEmitters.

    So a partition that can't be read holds up nothing. What it feeds must be updated as OpaqueMap does.
    """


class OpaqueCoordinator(_Ready):
    """Of an OpaquePartitionedTransactionalSpout."""

    def exhausted(self, metadata: Mapping[int, Any]) -> bool | None:
        """As PartitionedCoordinator.exhausted."""
        return None


class OpaqueEmitter(_Part):
    """Of an OpaquePartitionedTransactionalSpout."""

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        """Emit a batch that begins where the one of ``last_metadata`` ended (None: the first); returns its metadata.

        A partition that can't be read emits nothing and returns ``last_metadata``.
        """
        raise TypeError(f"{type(self).__name__} has no emit_partition_batch method")

    def num_partitions(self) -> int:
        """How many partitions there are now; they are numbered from 0 on."""
        raise TypeError(f"{type(self).__name__} has no num_partitions method: define num_partitions(self)")
