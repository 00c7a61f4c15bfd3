"""The coordinator by itself: what it begins, commits and begins again."""

from __future__ import annotations

import pytest

from multilang import FailedException
from multilang.component.errors import ConfigError
from multilang.testing import run_spout
from multilang.transactional import Coordinator, TransactionalSpout, TransactionAttempt
from multilang.transactional.names import BATCH_STREAM
from multilang.transactional.spout import TransactionalSpoutCoordinator
from tests.transactional.kept import Kept, kept_conf


class Numbers(Coordinator):
    """Batches of ten numbers. ``ready``: what is_ready says, one after the other, and True after that."""

    def __init__(self, ready):
        self.ready = list(ready)
        self.begun = []

    def is_ready(self):
        said = self.ready.pop(0) if self.ready else True
        if isinstance(said, Exception):
            raise said
        return said

    def initialize_transaction(self, txid, previous):
        self.begun.append(txid)
        return {"from": previous["from"] + 10 if previous else 0}


class NumberSpout(TransactionalSpout):
    output_fields = ["tx", "number"]

    def __init__(self, ready=()):
        self.ready = ready

    def get_coordinator(self, conf, context):
        self.coordinator = Numbers(self.ready)
        return self.coordinator


@pytest.fixture
def conf(request):
    return kept_conf(request.node.name, **{"topology.max.spout.pending": 3, "storm.id": "run-1"})


def started(conf, ready=()):
    return run_spout(TransactionalSpoutCoordinator(NumberSpout(ready)), conf=conf)


def told(emitted):
    """Return what was emitted: (B or C for batch or commit, txid)."""
    return [
        ("B" if each.stream == BATCH_STREAM else "C", TransactionAttempt.parse(each.values[0]).txid) for each in emitted
    ]


def test_as_many_transactions_are_begun_as_may_be_pending(conf):
    run = started(conf)
    assert told(run.next(3)) == [("B", 1), ("B", 2), ("B", 3)]
    assert [each.values[1:] for each in run.emitted] == [
        ['{"from":0}', None],
        ['{"from":10}', None],
        ['{"from":20}', None],
    ]
    one = started(kept_conf("one"))
    assert told(one.next(3)) == [("B", 1)]


def test_whatever_is_processed_first_commits_are_in_order_and_one_at_a_time(conf):
    run = started(conf)
    run.next()
    first, second, third = run.pending
    run.ack(third)
    run.ack(second)
    assert told(run.next(2)) == []
    run.ack(first)
    assert told(run.next(2)) == [("C", 1)]
    run.ack(first)
    assert told(run.next(2)) == [("C", 2), ("B", 4)]
    assert run.emitted[-1].values[1:] == ['{"from":30}', 1]
    run.ack(second)
    assert told(run.next(2)) == [("C", 3), ("B", 5)]


@pytest.mark.parametrize("phase", ["processing", "commit"])
def test_a_failure_fails_the_later_ones_too_and_all_are_begun_again_with_what_they_had(conf, phase):
    run = started(conf)
    run.next()
    first, second, third = run.pending
    run.ack(second)
    if phase == "commit":
        run.ack(first)
        run.next()
        run.fail(first)
        again = run.next()
        assert told(again) == [("B", 1), ("B", 2), ("B", 3)]
        assert [each.values[1] for each in again] == ['{"from":0}', '{"from":10}', '{"from":20}']
    else:
        run.fail(third)
        again = run.next()
        assert told(again) == [("B", 3)]
        assert again[0].values[1] == '{"from":20}'
    assert {each.values[0] for each in again}.isdisjoint({first, second, third})
    assert run.spout._coordinator.begun == [1, 2, 3]


def test_news_of_an_attempt_that_was_replaced_changes_nothing(conf):
    """Storm's drops the attempt that is under way when one before it fails late."""
    run = started(conf)
    run.next()
    first, second, third = run.pending
    run.fail(first)
    new = [each.values[0] for each in run.next()]
    run.fail(second)
    run.ack(third)
    assert told(run.next(3)) == []
    for attempt in new:
        run.ack(attempt)
    assert told(run.next()) == [("C", 1)]


def test_no_transaction_is_begun_before_the_one_before_it_was(conf):
    """Storm's asks once for each, and would begin the third when the second was not ready."""
    run = started(conf, ready=[True, False, True, FailedException("not now"), True])
    assert told(run.next()) == [("B", 1)]
    assert told(run.next()) == [("B", 2)]
    assert told(run.next()) == [("B", 3)]
    assert run.spout._coordinator.begun == [1, 2, 3]
    assert run.errors == []


def test_one_that_is_started_again_goes_on_with_what_is_stored(conf):
    run = started(conf)
    run.next()
    for _ in range(2):
        txid = run.pending[0]
        run.ack(txid)
        run.next()
        run.ack(txid)
        run.next()
    assert Kept(conf, "kept").stored == {
        "coordinator/currtx": 3,
        "coordinator/kind": "TransactionalSpout",
        **{f"coordinator/meta/{txid}": {"from": 10 * txid - 10} for txid in (2, 3, 4, 5)},  # 2 is that before the first
    }
    old = [TransactionAttempt.parse(each.values[0]).attempt for each in run.emitted]
    again = started(conf)
    assert told(again.next()) == [("B", 3), ("B", 4), ("B", 5)]
    assert [each.values[1] for each in again.emitted] == ['{"from":20}', '{"from":30}', '{"from":40}']
    assert [each.values[2] for each in again.emitted] == [2, 2, 2]
    assert max(old) < min(TransactionAttempt.parse(each.values[0]).attempt for each in again.emitted)
    assert again.spout._coordinator.begun == []


def test_one_that_fails_again_and_again_is_begun_again_after_a_pause(conf, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(TransactionalSpoutCoordinator, "clock", lambda self: now[0])
    run = started({**conf, "topology.max.spout.pending": 1})
    waits = []
    run.next()
    for _ in range(12):
        run.fail(run.pending[0])
        before = now[0]
        while not run.next():
            now[0] += 0.005
        waits.append(round(now[0] - before, 3))
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert 0.9 < waits[-1] < 1.1
    txid = run.pending[0]
    run.ack(txid)
    assert told(run.next()) == [("C", 1)]
    run.ack(txid)
    assert told(run.next()) == [("B", 2)]
    run.fail(run.pending[0])
    assert told(run.next()) == [("B", 2)]  # at once: it is another one


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"topology.acker.executors": 0}, "without ackers it is unknown"),
        ({"topology.max.spout.pending": 0}, "from 1"),
        ({"topology.max.spout.pending": "many"}, "is 'many'"),
        ({"topology.transactional.id": "a/b"}, "without '/'"),
        ({"multilang.transactional.store": "redis"}, r"redis://HOST:PORT/DATABASE"),
        ({"multilang.transactional.store": "nowhere.Store"}, "can't be imported"),
        ({"multilang.transactional.store": "collections.Counter"}, "not a subclass of multilang.store.Store"),
        ({"multilang.transactional.store": 5}, "is 5"),
    ],
)
def test_a_setting_with_which_nothing_could_be_committed_is_refused(conf, wrong, message):
    with pytest.raises(ConfigError, match=message):
        started({**conf, **wrong})


class Described(Coordinator):
    """Transactions with this metadata. ``previous``: what it was told of the one before, each time."""

    def __init__(self, metadata):
        self.metadata = metadata
        self.previous = []

    def initialize_transaction(self, txid, previous):
        self.previous.append(previous)
        return self.metadata


class DescribedSpout(TransactionalSpout):
    output_fields = ["tx"]

    def __init__(self, metadata):
        self.coordinator = Described(metadata)

    def get_coordinator(self, conf, context):
        return self.coordinator


def test_metadata_is_what_is_read_again_from_the_beginning_and_nobody_elses(conf):
    metadata = {"range": (1, 2)}
    spout = DescribedSpout(metadata)
    run_spout(TransactionalSpoutCoordinator(spout), conf=conf).next()
    assert spout.coordinator.previous == [None, {"range": [1, 2]}, {"range": [1, 2]}]
    assert spout.coordinator.previous[1] is not metadata


@pytest.mark.parametrize(
    ("metadata", "message"),
    [({1: 2}, "JSON has string keys only"), ({3}, "a set"), (float("nan"), "nan has no JSON form"), (b"x", "bytes")],
)
def test_metadata_that_could_not_be_read_again_is_refused(conf, metadata, message):
    with pytest.raises(TypeError, match=f"metadata of a transaction can't be stored.*{message}"):
        run_spout(TransactionalSpoutCoordinator(DescribedSpout(metadata)), conf=conf).next()
