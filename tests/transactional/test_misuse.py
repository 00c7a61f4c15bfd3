"""A mistake in a transactional topology fails where the user wrote it, and loses nothing."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, LocalCluster
from multilang.local import TaskStartError
from multilang.topology import TopologyError
from multilang.transactional import (
    Committer,
    Coordinator,
    Emitter,
    TransactionalSpout,
    TransactionalTopologyBuilder,
)
from tests.patience import patient
from tests.transactional.kept import kept_conf
from tests.transactional.mistaken import Commits, ManyOfAnotherAttempt, OfAnotherAttempt, WithoutAttempt, builder_of


@pytest.mark.parametrize("mode", ["simulated", "process"])
@pytest.mark.parametrize(
    ("bolt", "message"),
    [
        (WithoutAttempt, "first value of a tuple in a transactional topology is its TransactionAttempt, not 'moon'"),
        (
            OfAnotherAttempt,
            "a tuple of TransactionAttempt(1, 5) is emitted, but no tuple of that attempt came to this task",
        ),
        (
            ManyOfAnotherAttempt,
            "a tuple of TransactionAttempt(1, 5) is emitted, but no tuple of that attempt came to this task",
        ),
    ],
)
def test_a_tuple_that_would_be_lost_fails_its_batch_where_it_is_emitted(bolt, message, mode, tmp_path):
    Commits.committed.clear()
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    with LocalCluster(mode=mode, conf=conf) as cluster:
        run = cluster.submit(builder_of(bolt, 2).build())
        run.wait(until=lambda run: len(run.errors) > 1, timeout=patient(60))
        assert {error.component for error in run.errors} == {"bolt"}
        assert message in run.errors[0].message
        assert not any(error.fatal for error in run.errors)
    assert Commits.committed == []


def test_a_basic_bolt_commits_nothing():
    with pytest.raises(TopologyError, match="bolt 'wrong': a committer is a BatchBolt"):
        builder_of(WithoutAttempt).set_bolt("wrong", type("Wrong", (BasicBolt, Committer), {}))


class Halves(TransactionalSpout):
    """A coordinator and an emitter that are no subclasses of ours."""

    output_fields = ["tx"]

    def __init__(self, coordinator=None, emitter=None):
        self.coordinator, self.emitter = coordinator or Coordinator(), emitter or Emitter()

    def get_coordinator(self, conf, context):
        return self.coordinator

    def get_emitter(self, conf, context):
        return self.emitter


class Half:
    def is_ready(self):
        return True

    def emit_batch(self, attempt, metadata, collector):
        pass


@pytest.mark.parametrize(
    ("spout", "message"),
    [
        (
            Halves(coordinator=Half()),
            "no close, no exhausted, no initialize_transaction method.*of multilang.transactional.Coordinator",
        ),
        (
            Halves(emitter=Half()),
            "no cleanup_before, no close method: make it a subclass of multilang.transactional.Emitter",
        ),
    ],
)
def test_a_coordinator_or_emitter_without_all_methods_is_not_started(spout, message):
    builder = TransactionalTopologyBuilder("wrong", "spout", spout)
    with (
        LocalCluster(mode="simulated", conf=kept_conf("wrong")) as cluster,
        pytest.raises(TaskStartError, match=f"Half object at .*, which Halves made, has {message}"),
    ):
        cluster.submit(builder.build())


class CommittingSpout(TransactionalSpout, Committer):
    output_fields = ["tx"]

    def get_emitter(self, conf, context):
        return Emitter()


def test_a_committing_spout_whose_emitters_can_not_commit_is_not_started():
    builder = TransactionalTopologyBuilder("wrong", "spout", CommittingSpout)
    with (
        LocalCluster(mode="simulated", conf=kept_conf("wrong")) as cluster,
        pytest.raises(
            TaskStartError, match=r"Emitter, its emitter, has no commit method: define commit\(self, attempt\)"
        ),
    ):
        cluster.submit(builder.build()).wait(timeout=patient(60))
