"""A test controls a running topology in every mode: fed spouts, fixed tuples, a bolt that is controlled."""

from __future__ import annotations

import os
import signal

import pytest

from multilang import BasicBolt, Bolt, LocalCluster, Spout, TopologyBuilder
from multilang.local import Faults, TaskStartError
from multilang.protocol import UnserializableValue
from multilang.testing import AckTracker, ControlledBolt, FeederSpout, FixedTupleSpout, complete_topology
from multilang.topology import TopologyError
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS

LIMIT = 100


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        for word in tup["sentence"].split():
            self.emit([word])


class Words(Spout):
    """Would never come to an end."""

    output_fields = ["sentence"]

    def next_tuple(self):
        self.emit(["again"])


class EveryOther(Bolt):
    """Acks every second tuple, and fails the others."""

    def initialize(self, conf, context):
        self.n = 0

    def process(self, tup):
        self.n += 1
        (self.ack if self.n % 2 else self.fail)(tup)


def splitting(spout, *more):
    builder = TopologyBuilder()
    builder.set_spout("sentences", spout, *more)
    builder.set_bolt("split", Split, 2).shuffle_grouping("sentences")
    return builder.build("splitting")


module_level = splitting(FeederSpout(["sentence"]))
real = splitting(Words, 2)


@EVERY_MODE
def test_what_is_fed_is_emitted_and_its_ack_is_seen_again_and_again(mode):
    feeder = FeederSpout(["sentence"])
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(splitting(feeder), capture=["split"])
        run.wait(timeout=LIMIT)
        for n in range(1, 21):  # a wait that believed an earlier report would end too early
            assert feeder.feed(["the cow"] if n % 2 else {"sentence": "the cow"}) == n
            assert feeder.pending == [n]
            run.wait(timeout=LIMIT)
            assert feeder.tracker.acked == list(range(1, n + 1))
        assert feeder.feed(["é✓ 𝄞"], tup_id="mine") == "mine"
        run.wait(feeder.settled, LIMIT)
        assert feeder.tracker.is_acked("mine")
        words = [tup["word"] for tup in run.captured("split")]
    assert sorted(words) == sorted(["the", "cow"] * 20 + ["é✓", "𝄞"])


@MOSTLY_IN_PROCESS
def test_fails_are_seen_and_a_tracker_is_shared(mode):
    tracker = AckTracker()
    fixed = FixedTupleSpout(["n"], [[n] for n in range(4)], tracker=tracker)
    feeder = FeederSpout(streams={"more": ["n"]}, tracker=tracker)
    builder = TopologyBuilder()
    builder.set_spout("fixed", fixed)
    builder.set_spout("fed", feeder)
    builder.set_bolt("other", EveryOther).global_grouping("fixed").global_grouping("fed", stream="more")
    with LocalCluster(mode) as cluster:
        run = cluster.submit(builder.build("failing"))
        run.wait(timeout=LIMIT)
        assert (len(tracker.acked), len(tracker.failed)) == (2, 2)
        tracker.reset()
        feeder.feed([1], "a", stream="more")
        run.wait(timeout=LIMIT)
        feeder.feed([2], "b", stream="more")
        run.wait(timeout=LIMIT)
    assert (tracker.acked, tracker.failed) == (["a"], ["b"])
    assert not tracker.is_failed("a")


@EVERY_MODE
def test_a_controlled_bolt_does_what_the_test_asks_when_it_asks(mode):
    feeder = FeederSpout(["n"])
    held = ControlledBolt(["m"])
    builder = TopologyBuilder()
    builder.set_spout("fed", feeder)
    builder.set_bolt("held", held).shuffle_grouping("fed")
    builder.set_bolt("sink", EveryOther).shuffle_grouping("held")
    with LocalCluster(mode) as cluster:
        run = cluster.submit(builder.build("held"), capture=["held"])
        ids = [feeder.feed([n]) for n in range(4)]
        run.wait(lambda _: len(held.received) == 4, LIMIT)
        assert feeder.pending == ids
        assert [(each["n"], each.component, each.stream, each.state) for each in held.received] == [
            (n, "fed", "default", "held") for n in range(4)
        ]
        first, second, third, fourth = held.received
        third.emit([30])
        third.ack()
        run.wait(lambda _: feeder.tracker.acked, LIMIT)  # the sink acks the first that comes
        assert feeder.tracker.acked == [ids[2]]
        second.fail()
        first.ack()
        fourth.emit([40])  # which the sink fails
        run.wait(lambda _: len(feeder.tracker.failed) == 2, LIMIT)
        run.wait(lambda _: ids[0] in feeder.tracker.acked, LIMIT)
        assert set(feeder.tracker.failed) == {ids[1], ids[3]}
        fourth.ack()
        run.wait(timeout=LIMIT)
        assert [tup["m"] for tup in run.captured("held")] == [30, 40]
        with pytest.raises(RuntimeError, match=r"with the tuple \[0\]: it is acked already"):
            first.fail()


@MOSTLY_IN_PROCESS
def test_a_controlled_bolt_may_decide_as_tuples_come(mode):
    feeder = FixedTupleSpout(["n"], [[n] for n in range(10)])
    bolt = ControlledBolt(decide=lambda held: held.ack() if held["n"] % 3 else held.fail())
    builder = TopologyBuilder()
    builder.set_spout("fed", feeder)
    builder.set_bolt("held", bolt, 2).shuffle_grouping("fed")
    with LocalCluster(mode) as cluster:
        cluster.submit(builder.build("decided")).wait(timeout=LIMIT)
    assert sorted(feeder.tracker.failed) == [1, 4, 7, 10]
    assert len(feeder.tracker.acked) == 6


def test_what_a_task_held_is_lost_with_it():
    feeder, bolt = FeederSpout(["n"]), ControlledBolt()
    builder = TopologyBuilder()
    builder.set_spout("fed", feeder)
    builder.set_bolt("held", bolt).shuffle_grouping("fed")
    with LocalCluster("process") as cluster:
        run = cluster.submit(builder.build("lost"), conf={"topology.message.timeout.secs": 1})
        feeder.feed([1])
        run.wait(lambda _: bolt.received, LIMIT)
        (task,) = [task for task in run.tasks if task.component == "held"]
        os.kill(task.pid, signal.SIGKILL)
        run.wait(lambda _: bolt.received[0].state == "lost", LIMIT)
        with pytest.raises(RuntimeError, match="its task died"):
            bolt.received[0].ack()
        run.wait(lambda _: feeder.tracker.failed == [1], LIMIT)


@EVERY_MODE
def test_nothing_can_be_fed_or_decided_when_the_topology_has_ended(mode):
    feeder, bolt = FeederSpout(["n"]), ControlledBolt()
    builder = TopologyBuilder()
    builder.set_spout("fed", feeder)
    builder.set_bolt("held", bolt).shuffle_grouping("fed")
    ended = builder.build("ended")
    feeder.feed([1])  # before it began
    with LocalCluster(mode) as cluster:
        run = cluster.submit(ended)
        run.wait(lambda _: bolt.received, LIMIT)
    with pytest.raises(RuntimeError, match=r"feed\(\[2\]\): the topology of this FeederSpout has ended"):
        feeder.feed([2])
    with pytest.raises(RuntimeError, match="its topology has ended"):
        bolt.received[0].ack()
    with LocalCluster(mode) as cluster:  # and again while another runs
        run = cluster.submit(ended)
        two = feeder.feed([2])
        run.wait(lambda _: len(bolt.received) == 2, LIMIT)
        bolt.received[1].ack()
        run.wait(lambda _: feeder.tracker.is_acked(two), LIMIT)


def test_a_topology_that_processes_import_can_not_be_fed_and_says_what_to_do():
    with LocalCluster("process") as cluster, pytest.raises(TaskStartError, match="Build the topology inside the test"):
        cluster.submit(module_level).wait(timeout=LIMIT)


def test_what_does_not_fit_is_refused_where_it_is_fed():
    feeder = FeederSpout(["a", "b"])
    for values, stream, why in (
        ([1], "default", "has 2 fields, a, b"),
        ({"a": 1, "c": 2}, "default", "has the fields a, b"),
        ([1, 2], "other", "declares 'default'"),
        ([1, {2}], "default", "which JSON does not have"),
    ):
        with pytest.raises((ValueError, UnserializableValue), match=why):
            feeder.feed(values, stream=stream)
    feeder.feed([1, 2], "x")
    with pytest.raises(ValueError, match="under way; take another"):
        feeder.feed([1, 2], "x")


@EVERY_MODE
def test_a_topology_runs_on_given_tuples_to_its_end(mode):
    done = complete_topology(real, {"sentences": [["the cow"], {"sentence": "jumped"}]}, mode, timeout=LIMIT)
    assert sorted(done.values("split")) == [["cow"], ["jumped"], ["the"]]
    assert sorted(done.trackers["sentences"].acked) == [1, 2]
    assert done.counters["split"].acked == 2
    assert done.errors == []
    assert sorted(tup["sentence"] for tup in done.tuples("sentences")) == ["jumped", "the cow"]
    with pytest.raises(LookupError, match="no stream 'x' of 'split'; it has 'sentences' stream 'default'"):
        done.tuples("split", "x")
    with pytest.raises(TopologyError, match="which is no spout"):
        complete_topology(real, {"split": []})
    assert issubclass(type(real["sentences"].new()), Words)


def test_given_tuples_meet_faults_too():
    failed = 0
    for seed in range(20):
        rows = [["a b"]] * 10
        done = complete_topology(
            real, {"sentences": rows}, "simulated", seed=seed, faults=Faults(crash=0.1), timeout=None
        )
        tracker = done.trackers["sentences"]
        assert sorted(tracker.acked + tracker.failed) == list(range(1, 11))
        failed += len(tracker.failed)
    assert failed
