"""The coordinators and emitters that run a spout of any kind.

Partitioned spouts are asked partition by partition. Task i of n has the partitions i, i + n, i + 2n ..., and the metadata
of each is stored in ``user/<partition>/<txid>``. A task reads that when the first batch of an epoch comes. From
then on no earlier instance of the task can write there (TransactionalState.enter). Sources: Storm's
PartitionedTransactionalSpoutExecutor and OpaquePartitionedTransactionalSpoutExecutor.
"""

from __future__ import annotations

from contextlib import suppress

from multilang.component.errors import ConfigError
from multilang.helpers.closing import close_all
from multilang.store.errors import FencedError
from multilang.transactional.api import (
    Committer,
    Coordinator,
    Emitter,
    OpaqueCoordinator,
    OpaqueEmitter,
    OpaquePartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
)
from multilang.transactional.names import CURRENT, USER
from multilang.transactional.rotating import Changes, RotatingTransactionalState, as_stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.component.context import Context
    from multilang.coordination import BatchCollector
    from multilang.transactional.api import AnySpout
    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.state import TransactionalState


def last_metadata(state: TransactionalState, last_txid: float = float("inf")) -> dict[int, Any]:
    """Return the stored metadata of each partition's last batch, by transactions up to ``last_txid``."""
    return {int(partition): metadata for partition, metadata in state.last_of_each(USER, last_txid).items()}


def is_committer(spout: AnySpout) -> bool:
    """Return whether the spout's emitters take part in the commit phase: then their ``commit(attempt)`` is called."""
    return isinstance(spout, OpaquePartitionedTransactionalSpout | Committer)


def coordinator_of(spout: AnySpout, state: TransactionalState, conf: dict[str, Any], context: Context) -> Coordinator:
    """Return the coordinator that the coordinator's task calls."""
    own = spout.get_coordinator(conf, context)
    if isinstance(spout, PartitionedTransactionalSpout):
        return _CountingCoordinator(_whole(own, spout, PartitionedCoordinator), state)  # type: ignore[return-value]
    if isinstance(spout, OpaquePartitionedTransactionalSpout):
        return _PartitionedCoordinator(_whole(own, spout, OpaqueCoordinator), state)  # type: ignore[return-value]
    return _whole(own, spout, Coordinator)  # type: ignore[no-any-return]


def emitter_of(spout: AnySpout, state: TransactionalState, conf: dict[str, Any], context: Context) -> Emitter:
    """Return the emitter that a task of the spout calls."""
    own = spout.get_emitter(conf, context)
    if isinstance(spout, PartitionedTransactionalSpout):
        return _PartitionedEmitter(_whole(own, spout, PartitionedEmitter), _Partitions(state, context))  # type: ignore[return-value]
    if isinstance(spout, OpaquePartitionedTransactionalSpout):
        return _OpaqueEmitter(_whole(own, spout, OpaqueEmitter), _Partitions(state, context))  # type: ignore[return-value]
    _whole(own, spout, Emitter)
    if is_committer(spout) and not hasattr(own, "commit"):
        raise TypeError(
            f"{type(spout).__name__} is a Committer, and {type(own).__name__}, its emitter, has no commit method: "
            "define commit(self, attempt)"
        )
    return own  # type: ignore[no-any-return]


def _whole(own: Any, spout: AnySpout, kind: type) -> Any:
    """Return the spout's coordinator or emitter, checked to have all methods of its ``kind``."""
    missing = [name for name in dir(kind) if not name.startswith("_") and not callable(getattr(own, name, None))]
    if missing:
        raise ConfigError(
            f"{own!r}, which {type(spout).__name__} made, has no {', no '.join(missing)} method: make it a subclass of "
            f"multilang.transactional.{kind.__name__}, which has what you leave out"
        )
    return own


class Following:
    """A coordinator that gets the last batches, and the transactions that begin."""

    def begun(self, txid: int) -> None:
        """Note that a transaction begins for the first time."""

    def resume(self, metadata: Mapping[int, Any]) -> None:
        """Check that the source is the one of which these are the last batches. Called after the claim."""


class _PartitionedCoordinator:
    """The coordinator of an opaque spout, whose transactions have no metadata."""

    def __init__(self, own: PartitionedCoordinator | OpaqueCoordinator, state: TransactionalState) -> None:
        self._own: Any = own
        self._state = state
        self.is_ready = own.is_ready
        self.close = own.close

    def resume(self) -> None:
        """Check that the source is still the same, before any transaction begins."""
        if isinstance(self._own, Following):
            self._own.resume(last_metadata(self._state, self._last_fixed()))

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        self._note(txid)
        return None

    def _last_fixed(self) -> float:
        """Return the last transaction whose rows are the same in each replay: an opaque spout's are when committed."""
        return (self._state.get_data(CURRENT) or 1) - 1

    def _note(self, txid: int) -> None:
        if isinstance(self._own, Following):
            self._own.begun(txid)

    def exhausted(self, metadata: Any) -> bool | None:
        return self._own.exhausted(last_metadata(self._state))  # type: ignore[no-any-return]


class _CountingCoordinator(_PartitionedCoordinator):
    """The coordinator of a partitioned spout. The metadata of a transaction is the number of partitions."""

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        partitions = self._own.num_partitions()
        if type(partitions) is not int or partitions < 0:
            raise ConfigError(
                f"num_partitions() of {type(self._own).__name__} returned {partitions!r}; return a number"
            )
        self._note(txid)
        return partitions

    def _last_fixed(self) -> float:
        return float("inf")


class _Partitions(dict[int, RotatingTransactionalState]):
    """The stored state of a task's partitions. It is read when an epoch begins."""

    def __init__(self, state: TransactionalState, context: Context) -> None:
        self._state = state
        self._changes = Changes(state)
        self.write = self._changes.write
        self._first = context.task_index
        self._step = len(context.tasks(context.component))

    def enter(self, epoch: int) -> None:
        """Take the task's partitions over, and drop the values of an earlier epoch."""
        self.clear()
        self._changes.forget()
        self._state.enter(epoch, str(self._first))
        stored: dict[int, dict[str, Any]] = {}
        for below, value in self._state.below(USER).items():
            partition, _, txid = below.partition("/")
            stored.setdefault(int(partition), {})[txid] = value
        for each, values in stored.items():
            if each % self._step == self._first:
                self._add(each, values)

    def __missing__(self, partition: int) -> RotatingTransactionalState:
        return self._add(partition, {})

    def _add(self, partition: int, values: Mapping[str, Any]) -> RotatingTransactionalState:
        found = self[partition] = RotatingTransactionalState(self._changes, f"{USER}/{partition}", values)
        return found

    def mine(self, partitions: int) -> range:
        """Return the task's share of ``partitions`` partitions."""
        return range(self._first, partitions, self._step)

    def close(self) -> None:
        """Write the pending changes, unless another instance has the partitions by now and does it."""
        with suppress(FencedError):
            self.write()

    def cleanup_before(self, txid: int) -> None:
        for known in self.values():
            known.cleanup_before(txid)


class _PartitionedEmitter:
    """An emitter that stores the metadata of a batch after its first emit, and emits exactly that again."""

    def __init__(self, own: PartitionedEmitter, partitions: _Partitions) -> None:
        self._own = own
        self._partitions = partitions
        self.enter = partitions.enter
        self.cleanup_before = partitions.cleanup_before

    def close(self) -> None:
        close_all(self._own.close, self._partitions.close)

    def emit_batch(self, attempt: TransactionAttempt, metadata: int, collector: BatchCollector) -> None:
        txid = attempt.txid
        for partition in self._partitions.mine(metadata):
            known = self._partitions[partition]
            if txid in known:
                self._own.emit_partition_batch(attempt, collector, partition, known[txid])
            elif not known.has_after(txid):
                known[txid] = self._own.emit_partition_batch_new(attempt, collector, partition, known.before(txid))
            # Otherwise this batch failed before it was emitted, and a later one began at its place: it stays empty.
        self._partitions.write()


class _OpaqueEmitter:
    """An emitter whose batches begin where the batch before ended. That end is stored when the batch is committed."""

    def __init__(self, own: OpaqueEmitter, partitions: _Partitions) -> None:
        self._own = own
        self._partitions = partitions
        self._uncommitted: dict[int, dict[int, Any]] = {}
        self.cleanup_before = partitions.cleanup_before

    def enter(self, epoch: int) -> None:
        """Forget the batches of an earlier epoch that were not committed."""
        self._uncommitted.clear()
        self._partitions.enter(epoch)

    def close(self) -> None:
        close_all(self._own.close, self._partitions.close)

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchCollector) -> None:
        txid = attempt.txid
        before = self._uncommitted.get(max((each for each in self._uncommitted if each < txid), default=0), {})
        self._uncommitted[txid] = ends = {}
        for partition in self._partitions.mine(self._own.num_partitions()):
            last = before[partition] if partition in before else self._partitions[partition].before(txid)
            end = self._own.emit_partition_batch(attempt, collector, partition, last)
            # A batch that could not be read resumes from the same place, not from the beginning.
            ends[partition] = last if end is None else as_stored(end)

    def commit(self, attempt: TransactionAttempt) -> None:
        for partition, end in self._uncommitted.pop(attempt.txid).items():
            self._partitions[partition][attempt.txid] = end
        self._partitions.write()
