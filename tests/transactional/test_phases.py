"""Whole topologies in process: what is done in which phase, and what fails does so alone."""

from __future__ import annotations

from collections import Counter

import pytest

from multilang import BasicBolt, BatchBolt, FailedException, Stream
from multilang.coordination import COORD_STREAM, BatchBoltExecutor
from multilang.local import LocalCluster
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from multilang.transactional.bolts import EmitterBolt, TransactionalBolt, TransactionalSpoutBatchExecutor
from multilang.transactional.names import BATCH_STREAM, COMMIT_STREAM
from tests.coordination.task import FROM_ALL, IDS, Task
from tests.patience import patient
from tests.transactional.kept import Kept, kept_conf
from tests.transactional.topologies import COUNTS, Database, opaque, topology

ROWS = {0: [[n] for n in range(10)]}
done = []  # (component, what, txid) in their order


class Step(BatchBolt):
    """Passes its tuples on, and tells what it does."""

    output_fields = ["tx", "n"]

    def initialize(self, conf, context, collector, id):
        self.name = context.component
        self.seen = 0

    def process(self, tup):
        self.seen += 1
        self.emit([self.id, tup["n"]])

    def finish_batch(self):
        done.append((self.name, self.id.txid, self.seen))
        self.emit([self.id, -1])


class CommittingStep(Step, Committer):
    pass


def run_here(builder, request, **conf):
    done.clear()
    conf = kept_conf(request.node.name, **conf)
    del conf["topology.transactional.id"]
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        # Ticks let go of what an attempt that failed has left behind.
        running = cluster.submit(builder.build(conf={"topology.tick.tuple.freq.secs": 0.1}), capture=["a"])
        running.wait(timeout=patient(60))
    return running


def the_pages_topology(spout):
    """A sends to B and C; B, which commits, to C; C to D, which commits."""
    builder = TransactionalTopologyBuilder("page", "spout", spout)
    builder.set_bolt("a", Step, 2).shuffle_grouping("spout")
    builder.set_bolt("b", CommittingStep).global_grouping("a")
    builder.set_bolt("c", Step).global_grouping("a").global_grouping("b")
    builder.set_committer_bolt("d", Step).all_grouping("c")
    return builder


def test_what_is_behind_a_committer_finishes_in_the_commit_phase_and_sees_the_whole_batch(request):
    run_here(the_pages_topology(MemoryTransactionalSpout(ROWS, ["n"], 4)), request)
    assert [(name, txid) for name, txid, _ in done] == [
        (name, txid) for txid in (1, 2, 3) for name in ("a", "a", "b", "c", "d")
    ]
    seen = {name: [seen for each, _, seen in done if each == name] for name in "bcd"}
    assert seen == {"b": [6, 6, 4], "c": [13, 13, 9], "d": [14, 14, 10]}


def test_batches_are_processed_while_earlier_ones_are_not_committed_yet(request):
    run_here(the_pages_topology(MemoryTransactionalSpout(ROWS, ["n"], 4)), request, **{"topology.max.spout.pending": 3})
    order = [(name, txid) for name, txid, _ in done]
    assert order[:6] == [("a", 1)] * 2 + [("a", 2)] * 2 + [("a", 3)] * 2
    assert [txid for name, txid in order if name == "b"] == [1, 2, 3]
    assert [txid for name, txid in order if name == "d"] == [1, 2, 3]


class FailsOnce(Step):
    """Fails each second transaction at its first attempt, here or there. ``how``: what is raised."""

    tried = Counter()

    def __init__(self, where, how):
        self.where = where
        self.how = how

    def process(self, tup):
        super().process(tup)
        if self.where == "process":
            self.maybe()

    def finish_batch(self):
        if self.where == "finish_batch":
            self.maybe()
        super().finish_batch()

    def maybe(self):
        self.tried[self.id.txid] += 1
        if self.id.txid % 2 == 0 and self.tried[self.id.txid] == 1:
            raise self.how("once")


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("where", ["process", "finish_batch"])
@pytest.mark.parametrize("how", [FailedException, ValueError])
def test_a_batch_that_fails_is_replayed_and_no_process_ends(request, commits, where, how):
    FailsOnce.tried.clear()
    builder = TransactionalTopologyBuilder("fails", "spout", MemoryTransactionalSpout(ROWS, ["n"], 4))
    bolt = FailsOnce(where, how)
    (builder.set_committer_bolt if commits else builder.set_bolt)("a", bolt).shuffle_grouping("spout")
    builder.set_committer_bolt("b", Step).global_grouping("a")
    run = run_here(builder, request, **{"topology.max.spout.pending": 2, "topology.message.timeout.secs": 1})
    assert [each for each in done if each[0] == "b"] == [("b", 1, 5), ("b", 2, 5), ("b", 3, 3)]
    assert all(task.restarts == 0 for task in run.tasks)
    assert [("once" in error.message, error.fatal) for error in run.errors] == [(True, False)] * (how is ValueError)
    assert {type(tup["tx"]) for tup in run.captured("a")} <= {str, TransactionAttempt}


@pytest.mark.parametrize("which", ["transactional", "opaque"])
def test_each_batch_is_finished_once_in_each_task_also_where_the_spout_commits(request, tmp_path, which):
    """Storm's finishes a batch of a committing spout again with the commit tuple."""
    made = opaque if which == "opaque" else topology
    conf = kept_conf(str(tmp_path / "counts"))
    del conf["topology.transactional.id"]
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        run = cluster.submit(made, capture=[("spout", COORD_STREAM)])
        run.wait(timeout=patient(60))
        reports = Counter(tup[0] for tup in run.captured("spout", COORD_STREAM))
    found = Database(conf)
    assert {key: count for key, count in found.counts().items() if key != "*"} == COUNTS
    attempts = {attempt for *_, attempt in found.commits()}
    assert set(reports) == attempts
    assert set(reports.values()) == {2 * 2}  # of two emitters to two tasks each


def committer():
    return Task(BatchBoltExecutor(Step()), FROM_ALL, IDS, kind=TransactionalBolt)


def test_a_committer_that_lost_a_batch_fails_its_commit_at_once():
    """Storm's waits until the message times out."""
    task = committer()
    task.bolt.early = frozenset(task.bolt.sources)
    task.identify("7:3")
    assert task.failed == [("id", "7:3")]
    task.report("7:4", 1)
    task.report("7:4", 0, up=1)
    task.identify("7:4")  # a tuple did not come
    assert task.failed[1:] == [("id", "7:4")]
    task.data("7:5")
    task.report("7:5", 1)
    task.report("7:5", 0, up=1)
    task.identify("7:5")
    assert ("id", "7:5") in task.acked


def test_a_committer_behind_another_waits_for_what_is_still_to_come():
    task = committer()
    task.identify("7:3")
    assert task.failed == []
    task.data("7:3")
    task.report("7:3", 1)
    task.report("7:3", 0, up=1)
    assert ("id", "7:3") in task.acked


def test_a_commit_of_what_this_emitter_did_not_emit_fails():
    spout = OpaqueMemoryTransactionalSpout(ROWS, ["n"], 4)
    conf = kept_conf("emitter")
    first = TransactionAttempt.first_of(Kept(conf, "kept").claim())
    task = Task(TransactionalSpoutBatchExecutor(spout), conf=conf, kind=EmitterBolt)
    task.give("source", BATCH_STREAM, [f"1:{first + 5}", "null", None], fields=("tx", "meta", "committed"))
    assert [values[1] for stream, values, *_ in task.emitted if stream == "default"] == [0, 1, 2, 3]
    reports = task.reports
    for attempt in (f"1:{first + 6}", f"1:{first + 5}", f"1:{first + 5}"):
        task.give("source", COMMIT_STREAM, [attempt, "words/1"], fields=("tx", "owner"))
    assert task.failed == [(COMMIT_STREAM, f"1:{first + 6}", "words/1"), (COMMIT_STREAM, f"1:{first + 5}", "words/1")]
    assert task.acked == [(BATCH_STREAM, f"1:{first + 5}", "null", None), (COMMIT_STREAM, f"1:{first + 5}", "words/1")]
    assert task.reports == reports


class Careless(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        self.emit(["moon"])


def test_a_tuple_without_its_attempt_is_reported(request):
    builder = TransactionalTopologyBuilder("careless", "spout", MemoryTransactionalSpout(ROWS, ["n"], 4))
    builder.set_bolt("a", Careless).shuffle_grouping("spout")
    builder.set_bolt("b", Step).shuffle_grouping("a")
    conf = kept_conf(request.node.name, **{"topology.message.timeout.secs": 1})
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        run = cluster.submit(builder.build())
        run.wait(until=lambda run: run.errors, timeout=patient(60))
        assert "the first value of a tuple in a transactional topology is its TransactionAttempt, not 'moon'" in str(
            run.errors[0]
        )


def test_a_direct_stream_has_its_attempt_and_is_counted(request):
    class Sends(Step):
        output_fields = None
        output_streams = {"to": Stream(["tx", "n"], direct=True)}

        def initialize(self, conf, context, collector, id):
            super().initialize(conf, context, collector, id)
            self.task = context.tasks("b")[1]

        def process(self, tup):
            self.seen += 1
            self.emit([self.id, tup["n"]], "to", direct_task=self.task)

        def finish_batch(self):
            pass

    builder = TransactionalTopologyBuilder("direct", "spout", MemoryTransactionalSpout(ROWS, ["n"], 4))
    builder.set_bolt("a", Sends()).shuffle_grouping("spout")
    builder.set_committer_bolt("b", Step, 2).direct_grouping("a", stream="to")
    done.clear()
    conf = kept_conf(request.node.name)
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(builder.build()).wait(timeout=patient(60))
    assert sorted(done) == [("b", 1, 0), ("b", 1, 4), ("b", 2, 0), ("b", 2, 4), ("b", 3, 0), ("b", 3, 2)]


def test_a_newer_attempt_lets_go_of_the_older_one_and_refuses_what_still_comes_of_it():
    task = committer()
    task.identify("7:3")
    task.data("7:4")
    assert task.failed == [("id", "7:3")]
    task.identify("7:2")  # which nobody waits for, and which never came here before
    assert task.failed == [("id", "7:3"), ("id", "7:2")]
    task.identify("8:1")
    assert len(task.failed) == 2
