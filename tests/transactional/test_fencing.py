"""Only the newest owner can write: not coordinators, tasks of spouts and committers that were stopped and wake up.

Each store gets the same tests. Here objects are stopped and wake up; in ``test_overlap`` processes are.
"""

from __future__ import annotations

import pytest

from multilang.protocol.codec import loads
from multilang.store import claims as owners
from multilang.store.errors import FencedError, InUseError, StateError
from multilang.testing import run_spout
from multilang.transactional import (
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionAttempt,
)
from multilang.transactional.bolts import EmitterBolt, TransactionalSpoutBatchExecutor
from multilang.transactional.names import BATCH_STREAM, COMMIT_STREAM
from multilang.transactional.spout import TransactionalSpoutCoordinator
from multilang.transactional.state import OutdatedError
from multilang.transactional.stores import check_state, open_state
from tests.coordination.task import Task
from tests.patience import patient
from tests.transactional.kept import kept_conf

STORES = ["kept", "sqlite", "zookeeper"]
ROWS = {0: [[f"a{n}"] for n in range(20)], 1: [[f"b{n}"] for n in range(20)]}


@pytest.fixture(params=STORES)
def conf(request, tmp_path):
    own = {"topology.transactional.id": request.node.name, "topology.name": "counts", "storm.id": "run-1"}
    if request.param == "kept":
        return {**kept_conf(str(tmp_path)), **own}
    if request.param == "sqlite":
        where = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
        return {"multilang.transactional.store": "sqlite", **where, **own}
    return {**request.getfixturevalue("zookeeper").conf, **own}


_states = []


@pytest.fixture(autouse=True)
def close_all():
    """Also what failed: a client of ZooKeeper has threads, which go on without end."""
    yield
    while _states:
        _states.pop().close()


@pytest.fixture
def opened(conf):
    def make(**more):
        _states.append(open_state({**conf, **more}))
        return _states[-1]

    return make


def test_each_claim_raises_the_epoch(opened):
    assert [opened().claim() for _ in range(3)] == [1, 2, 3]


def test_who_claimed_nothing_may_write_nothing(opened):
    with pytest.raises(StateError, match="was not claimed"):
        opened().set_data("coordinator/currtx", 7)


def test_a_coordinator_that_was_replaced_within_its_run_writes_nothing_more(opened):
    old, new = opened(), opened()
    old.claim()
    old.update({"coordinator/currtx": 7, "coordinator/meta/7": "seven"})
    new.claim()
    new.update({"coordinator/currtx": 20}, ["coordinator/meta/7"])
    for write in (
        lambda: old.set_data("coordinator/currtx", 8),
        lambda: old.delete("coordinator/currtx"),
        lambda: old.update({"coordinator/meta/8": "eight"}),
        old.verify,
    ):
        with pytest.raises(OutdatedError, match=r"was taken over by .*epoch 2; this one has 1"):
            write()
    new.verify()
    assert (new.get_data("coordinator/currtx"), new.list("coordinator/meta")) == (20, [])


def test_a_task_of_the_spout_that_wakes_up_after_a_takeover_writes_nothing(opened):
    old_epoch = opened().claim()
    old = opened()
    old.enter(old_epoch, "0")
    old.set_data("user/0/1", "old")
    new_epoch = opened().claim()
    with pytest.raises(OutdatedError):
        old.set_data("user/0/2", "old")
    late = opened()
    with pytest.raises(OutdatedError):
        late.enter(old_epoch, "0")
    new = opened()
    new.enter(new_epoch, "0")
    new.set_data("user/0/2", "new")
    with pytest.raises(OutdatedError):
        old.update({}, ["user/0/2"])
    assert (new.get_data("user/0/1"), new.get_data("user/0/2")) == ("old", "new")


def test_of_two_instances_of_a_task_in_one_epoch_the_older_writes_nothing(opened):
    epoch = opened().claim()
    old, new, neighbour = opened(), opened(), opened()
    old.enter(epoch, "0")
    neighbour.enter(epoch, "1")
    new.enter(epoch, "0")
    with pytest.raises(FencedError, match="another instance of this task") as caught:
        old.set_data("user/0/1", "old")
    assert not isinstance(caught.value, OutdatedError)
    new.set_data("user/0/1", "new")
    neighbour.set_data("user/1/1", "next")
    assert new.get_data("user/0/1") == "new"


# ---- components ----


def coordinator_of(spout, conf):
    run = run_spout(TransactionalSpoutCoordinator(spout), conf=conf)
    _states.append(run.spout._state)
    return run


class Emitters:
    """A task of a spout, as the coordinator sees it."""

    def __init__(self, spout, conf):
        self.task = Task(TransactionalSpoutBatchExecutor(spout), conf=conf, kind=EmitterBolt)
        _states.append(self.task.bolt.wrapped._state)

    def begin(self, emitted):
        """Give it a batch; what it emits, or None when it fails that."""
        failed, sent = len(self.task.failed), len(self.task.emitted)
        self.task.give("source", BATCH_STREAM, list(emitted.values), fields=("tx", "meta", "committed"))
        if len(self.task.failed) > failed:
            return None
        return [values[1] for stream, values, *_ in self.task.emitted[sent:] if stream == "default"]

    def commit(self, attempt):
        failed = len(self.task.failed)
        self.task.give("source", COMMIT_STREAM, [attempt, "words/1"], fields=("tx", "owner"))
        return len(self.task.failed) == failed


def begun(run):
    """The batches that a coordinator begins now."""
    return [each for each in run.next() if each.stream == BATCH_STREAM]


def test_attempts_are_counted_from_the_epoch_so_that_they_grow_with_each_coordinator(conf):
    spout = MemoryTransactionalSpout(ROWS, ["n"], 2)
    epochs = []
    for _ in range(3):
        run = coordinator_of(spout, conf)
        epochs.append(TransactionAttempt.parse(begun(run)[0].values[0]).epoch)
        run.spout._state.close()
    assert epochs == [1, 2, 3]


@pytest.mark.parametrize("kind", [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout])
def test_a_batch_of_a_coordinator_that_was_replaced_fails_and_leaves_nothing(kind, conf, opened):
    spout = kind(ROWS, ["n"], 2)
    old, emitters = coordinator_of(spout, conf), Emitters(spout, conf)
    (first,) = begun(old)
    assert emitters.begin(first) == ["a0", "a1", "b0", "b1"]
    new = coordinator_of(spout, conf)
    (again,) = begun(new)
    if kind is OpaqueMemoryTransactionalSpout:
        assert not emitters.commit(first.values[0])
    before = opened().last_of_each("user")
    other = Emitters(spout, conf)
    assert other.begin(first) is None
    assert opened().last_of_each("user") == before
    assert emitters.begin(again) == ["a0", "a1", "b0", "b1"]
    assert emitters.begin(first) is None, "an attempt of an older epoch"


def test_an_emitter_forgets_what_it_read_when_the_epoch_changes(conf, opened):
    """In between another instance of the task worked, and a second later this one gets batches again."""
    spout = OpaqueMemoryTransactionalSpout(ROWS, ["n"], 2)
    run, here = coordinator_of(spout, conf), Emitters(spout, conf)
    (batch,) = begun(run)
    assert here.begin(batch) == ["a0", "a1", "b0", "b1"]
    run = coordinator_of(spout, conf)
    there = Emitters(spout, conf)
    for expected in (["a0", "a1", "b0", "b1"], ["a2", "a3", "b2", "b3"]):
        (batch,) = begun(run)
        assert there.begin(batch) == expected
        run.ack(batch.values[0])
        run.next()
        assert there.commit(batch.values[0])
        run.ack(batch.values[0])
    run.next()
    run = coordinator_of(spout, conf)
    (batch,) = begun(run)
    assert here.begin(batch) == ["a4", "a5", "b4", "b5"]


def test_an_older_instance_of_a_task_dies_of_its_next_write(conf):
    spout = MemoryTransactionalSpout(ROWS, ["n"], 2)
    run = coordinator_of(spout, {**conf, "topology.max.spout.pending": 2})
    old, new = Emitters(spout, conf), Emitters(spout, conf)
    first, second = begun(run)
    assert old.begin(first) == ["a0", "a1", "b0", "b1"]
    assert new.begin(first) == ["a0", "a1", "b0", "b1"]
    with pytest.raises(FencedError, match="another instance of this task"):
        old.begin(second)
    assert new.begin(second) == ["a2", "a3", "b2", "b3"]


def test_a_task_that_was_replaced_ends_without_a_word(conf):
    """There is one line already, the coordinator's."""
    spout = MemoryTransactionalSpout(ROWS, ["n"], 2)
    run, here = coordinator_of(spout, conf), Emitters(spout, conf)
    for _ in range(3):
        (batch,) = begun(run)
        assert here.begin(batch)
        run.ack(batch.values[0])
        run.next()
        run.ack(batch.values[0])
    coordinator_of(spout, conf)
    here.task.bolt.wrapped._emitter.close()


@pytest.mark.parametrize("when", ["begin", "commit", "failure"])
def test_a_coordinator_that_was_replaced_ends_in_the_embedded_cluster(conf, when):
    spout = MemoryTransactionalSpout(ROWS, ["n"], 2)
    old = coordinator_of(spout, conf)
    if when != "begin":
        (first,) = begun(old)
    new = coordinator_of(spout, conf)
    if when == "commit":
        old.ack(first.values[0])
        old.next()
        old.ack(first.values[0])  # which is to be written down
    elif when == "failure":
        old.fail(first.values[0])  # by an emitter that knows of the new one
    with pytest.raises(OutdatedError, match="taken over by"):
        old.next()
    assert begun(new)


def test_a_coordinator_that_was_replaced_tells_it_once_on_storm_and_goes_on_when_the_other_ended(conf, monkeypatch):
    monkeypatch.setattr(owners, "CLAIM_SECS", 0.5)
    now = [0.0]
    monkeypatch.setattr(TransactionalSpoutCoordinator, "clock", lambda self: now[0])
    conf = {**conf, "multilang.parent": None}  # as under a ShellSpout
    spout = MemoryTransactionalSpout(ROWS, ["n"], 2)
    old = coordinator_of(spout, conf)
    begun(old)
    other = open_state({**conf, "storm.id": "run-1"})
    assert other.claim() == 2
    old.fail(old.pending[0])
    for _ in range(3):
        assert old.next() == []
    assert len(old.errors) == 1
    assert "taken over by" in old.errors[0]
    assert "waits until the transactions are free" in old.errors[0]
    now[0] += 100
    assert old.next() == []
    assert len(old.errors) == 1
    other.close()
    now[0] += 100
    old.next()
    (again,) = begun(old)
    assert TransactionAttempt.parse(again.values[0]).epoch == 3
    assert loads(again.values[1]) == 2
    assert len(old.errors) == 1


def test_a_second_run_is_refused_by_name_and_changes_nothing(conf, opened, monkeypatch):
    monkeypatch.setattr(owners, "CLAIM_SECS", 0.5)
    first = opened()
    first.claim()
    first.set_data("coordinator/currtx", 7)
    second = {"storm.id": "run-2", "topology.name": "second", "storm.zookeeper.session.timeout": patient(1000)}
    who = r"is in use by topology 'counts' \(process \d+ on \S+, since 20\d\d-"
    other = opened(**second)
    with pytest.raises(InUseError, match=who):
        other.claim()
    with pytest.raises(InUseError, match=who):
        check_state({**conf, **second})
    first.set_data("coordinator/currtx", 8)
    assert first.epoch == 1


def test_a_second_run_waits_on_storm_without_being_started_again_and_again(conf, monkeypatch):
    monkeypatch.setattr(owners, "CLAIM_SECS", 0.5)
    now = [0.0]
    monkeypatch.setattr(TransactionalSpoutCoordinator, "clock", lambda self: now[0])
    conf = {**conf, "multilang.parent": None}  # as under a ShellSpout
    spout = MemoryTransactionalSpout(ROWS, ["n"], 2)
    first = coordinator_of(spout, conf)
    second = coordinator_of(spout, {**conf, "storm.id": "run-2", "topology.name": "second"})
    assert second.next() == []
    now[0] += 60
    assert second.next() == second.next() == []
    now[0] += 60
    assert second.next() == []
    assert len(second.errors) == 1
    assert "is in use by topology 'counts'" in second.errors[0]
    assert begun(first)
    first.spout._state.close()
    now[0] += 60
    second.next()
    assert begun(second)


def test_a_run_that_was_taken_over_from_does_not_come_back_in_the_embedded_cluster(opened):
    """Its coordinator died, or was killed, and its parent starts it again."""
    opened().claim()
    other = opened(**{"storm.id": "run-2", "topology.name": "second"})
    _states.pop(0).close()
    other.claim()
    other.close()
    with pytest.raises(FencedError, match=r"taken over by topology 'second'"):
        opened().claim()
    assert opened().claim(waits=False) == 3
