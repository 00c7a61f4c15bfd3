"""The three kinds of transactional spout, with their coordinators and emitters.

A spout here is a declaration that makes two kinds of objects. One coordinator, in one task, decides when there is a
next transaction and what is in it. An emitter in each of the spout's tasks emits the tuples. ``conf``, and the metadata
that describes a batch, are JSON values. Sources: Storm's ITransactionalSpout, IPartitionedTransactionalSpout and
IOpaquePartitionedTransactionalSpout.
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


class Committer:
    """A mark on a class whose work is part of the commit phase.

    Mark a BatchBolt, ``class Update(BatchBolt, Committer)``, and its ``finish_batch`` is called in the commit phase, in
    the order of transactions (Storm's ICommitter). The emitters of a TransactionalSpout that is marked need a method
    ``commit(attempt)``, which is called in the same phase (Storm's ICommitterTransactionalSpout).
    """


class _Part:
    def close(self) -> None:
        """Close open files and connections: the task ends. Not called when the process is killed."""


class _Ready(_Part):
    def is_ready(self) -> bool:
        """Return whether to begin a new transaction. It must not block for long. True unless overridden."""
        return True


class AnySpout(Component):
    """A transactional spout of any kind: it makes a coordinator and emitters.

    The first field of ``output_fields`` and of each of ``output_streams`` is the attempt: ``["tx", "word"]``.
    """

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> Any:
        """Return the coordinator. Called in the coordinator's only task.

        Args:
            conf: The conf of the component.
            context: The context of the task.
        """
        raise TypeError(
            f"{type(self).__name__} has no get_coordinator method: define get_coordinator(self, conf, context)"
        )

    def get_emitter(self, conf: dict[str, Any], context: Context) -> Any:
        """Return an emitter. Called in each task of the spout.

        Args:
            conf: The conf of the component.
            context: The context of the task.
        """
        raise TypeError(f"{type(self).__name__} has no get_emitter method: define get_emitter(self, conf, context)")


class TransactionalSpout(AnySpout):
    """A spout that always emits the same batch for the same transaction. It makes a Coordinator and Emitters."""


class Coordinator(_Ready):
    """The coordinator of a TransactionalSpout."""

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        """Return the metadata of a new transaction.

        It is stored before the transaction begins, and all attempts at the transaction get the same metadata.

        Args:
            txid: The transaction, from 1 on.
            previous: The metadata of the transaction before; None: there was none.

        Returns:
            A JSON value that describes the batch.

        Raises:
            FailedException: The transaction can't begin now; it is tried again.
        """
        raise TypeError(
            f"{type(self).__name__} has no initialize_transaction method: define initialize_transaction(self, txid, previous)"
        )

    def exhausted(self, metadata: Any) -> bool | None:
        """Return whether no transaction will follow. Never called on Storm.

        The embedded cluster, whose topologies can end, asks before each new transaction.

        Args:
            metadata: The metadata of the last transaction; None: there was none.

        Returns:
            True if none will follow, False if one may, None if that is unknown.
        """
        return None


class Emitter(_Part):
    """An emitter of a TransactionalSpout."""

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchCollector) -> None:
        """Emit this task's part of the transaction's tuples, ``collector.emit([attempt, ...])``.

        Args:
            attempt: The attempt, which is the first value of each tuple.
            metadata: The value that the coordinator returned for this transaction.
            collector: The collector, which emits and reports.
        """
        raise TypeError(
            f"{type(self).__name__} has no emit_batch method: define emit_batch(self, attempt, metadata, collector)"
        )

    def cleanup_before(self, txid: int) -> None:
        """Drop the data of transactions before ``txid``: they are committed. Nothing unless overridden.

        Args:
            txid: The first transaction that is still needed.
        """


class PartitionedTransactionalSpout(AnySpout):
    """A spout that reads partitions, each from the end of its last batch.

    It makes a PartitionedCoordinator and PartitionedEmitters. The library divides the partitions among the tasks, and
    stores what was read from each one in each transaction.
    """


class PartitionedCoordinator(_Ready):
    """The coordinator of a PartitionedTransactionalSpout."""

    def num_partitions(self) -> int:
        """Return the current number of partitions. They are numbered from 0 on."""
        raise TypeError(f"{type(self).__name__} has no num_partitions method: define num_partitions(self)")

    def exhausted(self, metadata: Mapping[int, Any]) -> bool | None:
        """Return whether no transaction will follow. Never called on Storm.

        The embedded cluster, whose topologies can end, asks before each new transaction.

        Args:
            metadata: The metadata of the last batch of each partition that had one.

        Returns:
            True if none will follow, False if one may, None if that is unknown.
        """
        return None


class PartitionedEmitter(_Part):
    """An emitter of a PartitionedTransactionalSpout."""

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        """Emit a new batch that begins where the last one ended.

        Args:
            attempt: The attempt, which is the first value of each tuple.
            collector: The collector, which emits and reports.
            partition: The number of the partition.
            last_metadata: The metadata of the last batch; None: this is the first one.

        Returns:
            The metadata of the new batch: a JSON value from which the same batch can be emitted again.
        """
        raise TypeError(f"{type(self).__name__} has no emit_partition_batch_new method")

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, metadata: Any
    ) -> None:
        """Emit the batch that has this metadata again, without a difference.

        Args:
            attempt: The attempt, which is the first value of each tuple.
            collector: The collector, which emits and reports.
            partition: The number of the partition.
            metadata: The value that ``emit_partition_batch_new`` returned.
        """
        raise TypeError(f"{type(self).__name__} has no emit_partition_batch method")


class OpaquePartitionedTransactionalSpout(AnySpout):
    """A partitioned spout whose replays may be other batches. It makes an OpaqueCoordinator and OpaqueEmitters.

    So a partition that can't be read holds up nothing. Bolts behind it must update their results as OpaqueMap does.
    """


class OpaqueCoordinator(_Ready):
    """The coordinator of an OpaquePartitionedTransactionalSpout."""

    def exhausted(self, metadata: Mapping[int, Any]) -> bool | None:
        """Return whether no transaction will follow; see PartitionedCoordinator.exhausted.

        Args:
            metadata: The metadata of the last batch of each partition that had one.

        Returns:
            True if none will follow, False if one may, None if that is unknown.
        """
        return None


class OpaqueEmitter(_Part):
    """An emitter of an OpaquePartitionedTransactionalSpout."""

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchCollector, partition: int, last_metadata: Any
    ) -> Any:
        """Emit a batch that begins where the batch before ended.

        Args:
            attempt: The attempt, which is the first value of each tuple.
            collector: The collector, which emits and reports.
            partition: The number of the partition.
            last_metadata: The metadata of the batch before; None: this is the first one.

        Returns:
            The metadata of the batch, a JSON value. For a partition that can't be read now: ``last_metadata``, with
            nothing emitted.
        """
        raise TypeError(f"{type(self).__name__} has no emit_partition_batch method")

    def num_partitions(self) -> int:
        """Return the current number of partitions. They are numbered from 0 on."""
        raise TypeError(f"{type(self).__name__} has no num_partitions method: define num_partitions(self)")
