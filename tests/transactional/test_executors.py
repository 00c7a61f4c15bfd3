"""Partitioned and opaque spouts: what a task emits of which partition, and what is stored of it."""

from __future__ import annotations

import random

import pytest

from multilang import FailedException
from multilang.component.context import Context
from multilang.component.errors import ConfigError
from multilang.transactional import (
    MemoryTransactionalSpout,
    OpaqueEmitter,
    OpaqueMemoryTransactionalSpout,
    OpaquePartitionedTransactionalSpout,
    OpaqueTransactionalFileSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
    TransactionalFileSpout,
    TransactionAttempt,
)
from multilang.transactional.executors import coordinator_of, emitter_of
from multilang.transactional.names import CURRENT
from multilang.transactional.rotating import Changes
from tests.soak import SOAK
from tests.transactional.kept import Kept, kept_conf


class Out:
    """Collects what is emitted."""

    def __init__(self):
        self.rows = []

    def emit(self, values):
        self.rows.append(list(values[1:]))

    def emit_many(self, rows):
        for values in rows:
            self.emit(values)


def without_history(stored):
    return {path: {key: each for key, each in value.items() if key != "history"} for path, value in stored.items()}


@pytest.fixture
def store(request):
    found = Kept(kept_conf(request.node.name), "kept")
    found.claim()
    yield found
    found.close()


def context(index=0, tasks=1):
    return Context(
        {"taskid": 10 + index, "task->component": {str(10 + n): "spout" for n in range(tasks)}, "componentid": "spout"}
    )


class Emitting:
    """An emitter as a task of the spout has it."""

    def __init__(self, spout, store, index=0, tasks=1):
        self.emitter = emitter_of(spout, Kept(store.conf, store.id), {}, context(index, tasks))
        self.emitter.enter(store.epoch)
        self.attempts = {}

    def emit(self, txid, metadata=None):
        out = Out()
        self.attempts[txid] = TransactionAttempt(txid, len(self.attempts))
        self.emitter.emit_batch(self.attempts[txid], metadata, out)
        return [row[0] for row in out.rows]

    def commit(self, txid):
        self.emitter.commit(self.attempts[txid])


ROWS = {p: [[f"{p}{letter}"] for letter in "abcdef"] for p in range(5)}


def test_each_task_has_every_nth_partition(store):
    spout = MemoryTransactionalSpout(ROWS, ["n"], 1)
    emitted = [Emitting(spout, store, index, 2).emit(1, 5) for index in range(2)]
    assert emitted == [["0a", "2a", "4a"], ["1a", "3a"]]
    assert without_history(store.stored) == {f"user/{p}/1": {"index": 0, "amount": 1} for p in range(5)}


def test_the_same_transaction_has_the_same_batch_also_in_another_process(store):
    spout = MemoryTransactionalSpout({0: ROWS[0]}, ["n"], 2)
    first = Emitting(spout, store)
    assert [first.emit(1, 1), first.emit(2, 1), first.emit(1, 1), first.emit(2, 1)] == [["0a", "0b"], ["0c", "0d"]] * 2
    again = Emitting(spout, store)
    assert [again.emit(2, 1), again.emit(3, 1), again.emit(1, 1)] == [["0c", "0d"], ["0e", "0f"], ["0a", "0b"]]
    again.emitter.cleanup_before(3)
    again.emitter.close()
    assert without_history(store.stored) == {"user/0/3": {"index": 4, "amount": 2}}


class Flaky(PartitionedEmitter):
    """Fails its first new batch, and says nothing of what is in a batch."""

    failed = False

    def emit_partition_batch_new(self, attempt, collector, partition, last_metadata):
        if not self.failed:
            self.failed = True
            raise FailedException("not now")
        collector.emit([attempt, "new"])

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        collector.emit([attempt, "again", metadata])


class FlakySpout(PartitionedTransactionalSpout):
    output_fields = ["tx", "n"]

    def get_coordinator(self, conf, context):
        return PartitionedCoordinator()

    def get_emitter(self, conf, context):
        return Flaky()


def test_a_batch_that_failed_before_a_later_one_began_stays_empty(store):
    flaky = Emitting(FlakySpout(), store)
    with pytest.raises(FailedException):
        flaky.emit(1, 1)
    assert flaky.emit(2, 1) == ["new"]
    assert flaky.emit(1, 1) == []
    assert flaky.emit(2, 1) == ["again"]
    assert flaky.emit(3, 1) == ["new"]
    assert sorted(store.stored) == ["user/0/2", "user/0/3"]


def test_metadata_of_none_is_metadata(store):
    """Storm's emits nothing when such a batch is replayed, so that it would be lost."""
    flaky = Emitting(FlakySpout(), store)
    with pytest.raises(FailedException):
        flaky.emit(1, 1)
    assert flaky.emit(1, 1) == ["new"]
    assert flaky.emit(1, 1) == ["again"]


def test_the_number_of_partitions_is_a_transactions_metadata(store):
    coordinator = coordinator_of(MemoryTransactionalSpout(ROWS, ["n"], 1), store, {}, context())
    assert coordinator.initialize_transaction(1, None) == 5
    assert coordinator.is_ready()
    wrong = coordinator_of(FlakySpout(), store, {}, context())
    wrong._own.num_partitions = lambda: "many"
    with pytest.raises(ConfigError, match="returned 'many'"):
        wrong.initialize_transaction(1, None)


def test_the_end_is_known_from_what_is_stored(store):
    spout = MemoryTransactionalSpout({0: ROWS[0], 1: ROWS[1]}, ["n"], 4)
    coordinator = coordinator_of(spout, store, {}, context())
    tasks = [Emitting(spout, store, index, 2) for index in range(2)]
    said = []
    for txid in (1, 2):
        for task in tasks:
            said.append(coordinator.exhausted(2))
            task.emit(txid, 2)
    assert said == [False] * 4
    assert coordinator.exhausted(2) is True


@pytest.mark.parametrize("kind", [TransactionalFileSpout, OpaqueTransactionalFileSpout])
def test_a_source_with_nothing_new_begins_no_transaction(kind, store, tmp_path, monkeypatch):
    monkeypatch.setattr("multilang.transactional.spouts.source.IDLE_SECS", 0.0)
    monkeypatch.setattr("multilang.transactional.spouts.source.UNKNOWN_SECS", 0.0)
    spout = kind(tmp_path, batch_size=3, pattern="*.txt")
    coordinator = coordinator_of(spout, store, store.conf, context())
    emitting = Emitting(spout, store)
    batches, line = [], 0
    for burst in (7, 1, 3, 1, 1):
        with open(tmp_path / "orders.txt", "a") as file:
            for _ in range(burst):
                line += 1
                file.write(f"{line}\n")
        while coordinator.is_ready():
            txid = len(batches) + 1
            batches.append(emitting.emit(txid, coordinator.initialize_transaction(txid, None)))
            if kind is OpaqueTransactionalFileSpout:
                emitting.commit(txid)
    sizes = [3, 3, 1, 1, 3, 1, 1]
    assert [len(batch) for batch in batches] == sizes
    assert [int(each) for batch in batches for each in batch] == list(range(1, line + 1))
    coordinator.close()
    emitting.emitter.close()


@pytest.mark.parametrize("seed", range(200 if SOAK else 15))
@pytest.mark.parametrize("kind", [TransactionalFileSpout, OpaqueTransactionalFileSpout])
def test_no_transaction_is_empty_however_many_are_under_way(kind, seed, store, tmp_path, monkeypatch):
    monkeypatch.setattr("multilang.transactional.spouts.source.IDLE_SECS", 0.0)
    monkeypatch.setattr("multilang.transactional.spouts.source.UNKNOWN_SECS", 0.0)
    rng = random.Random(seed)
    files, window, take = rng.randint(1, 3), rng.choice([1, 2, 3, 10]), rng.randint(1, 4)
    spout = kind(tmp_path, batch_size=take, pattern="*.txt")
    for number in range(files):
        (tmp_path / f"{number}.txt").touch()
    coordinator = coordinator_of(spout, store, store.conf, context())
    emitting = Emitting(spout, store)
    written, batches, metadata, committed = 0, [], [], 0

    def step(way):
        nonlocal written, committed
        if way == "write" and written < 60:
            with open(tmp_path / f"{rng.randrange(files)}.txt", "a") as file:
                for _ in range(rng.randint(1, 12)):
                    written += 1
                    file.write(f"{written}\n")
        elif way == "begin" and len(metadata) - committed < window and coordinator.is_ready():
            metadata.append(coordinator.initialize_transaction(len(metadata) + 1, None))
        elif way == "emit" and len(batches) < len(metadata):
            batches.append(emitting.emit(len(batches) + 1, metadata[len(batches)]))
            assert batches[-1], f"transaction {len(batches)} of {batches} is empty"
        elif way == "commit" and committed < len(batches):
            committed += 1
            store.set_data(CURRENT, committed + 1)
            if kind is OpaqueTransactionalFileSpout:
                emitting.commit(committed)

    for _ in range(300):
        step(rng.choice(["write", "begin", "begin", "emit", "commit"]))
    while sum(map(len, batches)) < written:
        for way in ("begin", "emit", "commit"):
            step(way)
    assert sorted(int(each) for batch in batches for each in batch) == list(range(1, written + 1))
    coordinator.close()
    emitting.emitter.close()


def test_an_opaque_batch_begins_where_the_one_before_it_ended_and_is_stored_when_it_is_committed(store):
    emitting = Emitting(OpaqueMemoryTransactionalSpout({0: ROWS[0]}, ["n"], 2), store)
    assert [emitting.emit(1), emitting.emit(2)] == [["0a", "0b"], ["0c", "0d"]]
    assert store.stored == {}
    emitting.commit(1)
    assert without_history(store.stored) == {"user/0/1": {"index": 0, "amount": 2}}
    assert emitting.emit(3) == ["0e", "0f"]  # after the second, which is under way
    again = Emitting(OpaqueMemoryTransactionalSpout({0: ROWS[0]}, ["n"], 3), store)
    assert [again.emit(2), again.emit(3)] == [["0c", "0d", "0e"], ["0f"]]
    again.commit(2)
    again.commit(3)
    again.emitter.cleanup_before(3)
    again.emitter.close()
    assert without_history(store.stored) == {"user/0/3": {"index": 5, "amount": 1}}


def test_a_commit_that_is_repeated_begins_again_before_the_transaction(store):
    spout = OpaqueMemoryTransactionalSpout({0: ROWS[0]}, ["n"], 2)
    emitting = Emitting(spout, store)
    for txid in (1, 2):
        emitting.emit(txid)
        emitting.commit(txid)
    again = Emitting(spout, store)  # the commit phase failed elsewhere, and this task died
    assert again.emit(2) == ["0c", "0d"]
    again.commit(2)
    assert again.emit(3) == ["0e", "0f"]


def test_a_partition_that_can_not_be_read_goes_on_where_it_was(store):
    spout = OpaqueMemoryTransactionalSpout({0: ROWS[0], 1: ROWS[1]}, ["n"], 2)
    emitting = Emitting(spout, store)
    assert emitting.emit(1) == ["0a", "0b", "1a", "1b"]
    emitting.commit(1)
    spout.disabled.add(1)
    assert emitting.emit(2) == ["0c", "0d"]
    emitting.commit(2)
    spout.disabled.clear()
    assert emitting.emit(3) == ["0e", "0f", "1c", "1d"]


class Silent(OpaqueEmitter):
    """Returns None now and then."""

    def __init__(self):
        self.starts = []

    def num_partitions(self):
        return 1

    def emit_partition_batch(self, attempt, collector, partition, last_metadata):
        self.starts.append(last_metadata)
        return None if attempt.txid % 2 == 0 else attempt.txid


class SilentSpout(OpaquePartitionedTransactionalSpout):
    output_fields = ["tx", "n"]

    def get_emitter(self, conf, context):
        self.emitter = Silent()
        return self.emitter


def test_none_from_an_opaque_emitter_is_no_new_beginning(store):
    """Storm's next batch would begin from scratch."""
    spout = SilentSpout()
    emitting = Emitting(spout, store)
    for txid in (1, 2, 3, 4):
        emitting.emit(txid)
        emitting.commit(txid)
    assert spout.emitter.starts == [None, 1, 1, 3]
    assert store.stored["user/0/4"] == 3


def test_what_is_set_after_it_was_deleted_is_there():
    conf = kept_conf("set again")
    state = Kept(conf, "kept")
    state.claim()
    changes = Changes(state)
    changes.set_data("user/0/1", 1)
    changes.delete("user/0/1")
    changes.set_data("user/0/1", 2)
    changes.write()
    assert state.stored == {"user/0/1": 2}
