"""Tuples that come of several spout tuples: one joined root tells the spout what a root for each of them does."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from multilang.component import BasicBolt, Bolt, Spout
from multilang.local import LocalCluster
from multilang.topology import TopologyBuilder
from tests.patience import patient

TUPLES = 12


class Numbers(Spout):
    """Emits numbers, some of them without an id, and remembers what was acked and failed."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = list(range(TUPLES))
        self.told = []

    def next_tuple(self):
        if self.left:
            n = self.left.pop(0)
            self.emit([n], None if n % 5 == 4 else n)

    def ack(self, tup_id):
        self.told.append((tup_id, True))

    def fail(self, tup_id):
        self.told.append((tup_id, False))

    def exhausted(self):
        return not self.left


class Grouping(Bolt):
    """Gathers tuples, emits some with any of them as anchors, and settles them in any order; what it does is random by seed."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.random = Random(f"{conf['test.seed']} {context.component}")
        self.fails = conf["test.fails"]
        self.kept = []

    def process(self, tup):
        self.kept.append(tup)
        random = self.random
        if len(self.kept) < random.randrange(1, 6):
            return
        kept, self.kept = self.kept, []
        for _ in range(random.randrange(3)):
            anchors = [random.choice(kept) for _ in range(random.randrange(1, 5))]  # also one twice
            rows = [[random.randrange(100)] for _ in range(random.randrange(4))]
            if random.random() < 0.5:
                self.emit_many(rows, anchors=anchors)
            else:
                for row in rows:
                    self.emit(row, anchors=anchors)
        random.shuffle(kept)
        for each in kept:
            if random.random() < self.fails:
                self.fail(each)
            elif random.random() < 0.9:  # or it is never settled
                self.ack(each)


def told(seed, fails, tasks, ackers):
    """Return what the spout was told of each tuple. With two ackers nothing is joined."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("first", Grouping).shuffle_grouping("numbers")
    builder.set_bolt("second", Grouping, 2 if tasks > 1 else 1).all_grouping("first")
    builder.set_bolt("third", Grouping, tasks).fields_grouping("second", "n").all_grouping("first")
    conf = {"test.seed": seed, "test.fails": fails, "topology.acker.executors": ackers}
    with LocalCluster("inprocess", {**conf, "topology.enable.message.timeouts": False}, seed=1) as cluster:
        run = cluster.submit(builder.build("joined"))
        (spout,) = (task.instance for task in run.tasks if task.component == "numbers")
        run.wait(lambda _: spout.exhausted(), timeout=patient(60))
        run.run_for(0)
        return sorted(spout.told)


@given(st.integers(0, 2**32), st.sampled_from([0, 0.03, 0.3]), st.integers(1, 3))
def test_a_spout_is_told_the_same_of_tuples_whose_roots_are_joined(seed, fails, tasks):
    assert told(seed, fails, tasks, ackers=1) == told(seed, fails, tasks, ackers=2)


class Fans(Bolt):
    """Emits 50 tuples with the 50 tuples that it got as anchors."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.kept = []

    def process(self, tup):
        self.kept.append(tup)
        if len(self.kept) == 50:
            self.emit_many([[n] for n in range(50)], anchors=self.kept)
            self.ack_many(self.kept)


class Passes(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        self.emit([tup["n"]])


class Fifty(Numbers):
    def initialize(self, conf, context):
        self.left = [n * 10 for n in range(50)]
        self.told = []


def test_what_comes_of_many_tuples_together_is_tracked_once_and_not_for_each_of_them():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Fifty)
    builder.set_bolt("fans", Fans).shuffle_grouping("numbers")
    builder.set_bolt("passes", Passes).shuffle_grouping("fans")
    builder.set_bolt("end", Passes).shuffle_grouping("passes")
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(builder.build("fans"))
        run.wait(timeout=patient(60))
        assert run.counters["numbers"].acked == 50
        messages = run.counters["__acker"].executed
    assert messages == 50 + 1 + 50 + 50 + 50 + 50  # inits, the join, the acks of three bolts, and the join's own
