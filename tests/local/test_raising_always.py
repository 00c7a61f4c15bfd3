"""A component that raises each time: the same number of lives, and the same end, in every mode."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, Bolt, LocalCluster, ReliableSpout, Spout, StatefulBasicBolt, TopologyBuilder
from multilang.local import TaskStartError

LIVES = 5


class Raising(Spout):
    output_fields = ["n"]

    def next_tuple(self):
        raise RuntimeError("no such row")


class Silent(Raising):
    """Lives for some turns, and emits nothing."""

    def initialize(self, conf, context):
        self.turns = 0

    def next_tuple(self):
        self.turns += 1
        if self.turns > 2:
            super().next_tuple()


class Emitting(Raising):
    """Emits a tuple in each life, which is another one each time only for its source."""

    def initialize(self, conf, context):
        self.emits = 0

    def next_tuple(self):
        if self.emits:
            super().next_tuple()
        self.emits += 1
        self.emit(["row"])


class Sink(BasicBolt):
    def process(self, tup):
        pass


class Three(Spout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < 3:
            self.n += 1
            self.emit([self.n], tup_id=self.n)

    def exhausted(self):
        return self.n == 3


class Dying(Bolt):
    def process(self, tup):
        raise RuntimeError("no such row")


def topology_of(spout, bolt=Sink):
    builder = TopologyBuilder()
    builder.set_spout("source", spout)
    builder.set_bolt("bolt", bolt).shuffle_grouping("source")
    return builder.build("raising", conf={"topology.message.timeout.secs": 1})


class Again(ReliableSpout):
    """Gives one row again and again, until it is acked."""

    output_fields = ["n"]
    max_replays = None

    def initialize(self, conf, context):
        self.given = False

    def next_tuple(self):
        if not self.given:
            self.given = True
            self.emit([1], tup_id=1)

    def exhausted(self):
        return self.given


class Kept(StatefulBasicBolt):
    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put("rows", tup[0])


def dies_at(namespace, step, txid):
    if namespace == "$checkpointspout-0" and step == "PREPARE emit":
        raise RuntimeError("no such row")


def stateful():
    builder = TopologyBuilder()
    builder.set_spout("source", Again)
    builder.set_bolt("bolt", Kept).shuffle_grouping("source")
    conf = {"topology.state.checkpoint.interval.ms": 100, "multilang.state.trace": f"{__name__}.dies_at"}
    return builder.build("stateful", conf=conf)


topologies = {each.__name__: topology_of(each) for each in (Raising, Silent, Emitting)}
raising, silent, emitting = topologies.values()
dying = topology_of(Three, Dying)
checkpointed = stateful()


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
@pytest.mark.parametrize("name", ["Raising", "Silent"])
def test_a_spout_that_never_emits_ends_the_topology_by_name(name, mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(topologies[name])
        with pytest.raises(
            TaskStartError, match=rf"(?s)'source' \(task \d\) died {LIVES} times without emitting a tuple.*no such row"
        ):
            run.wait(timeout=60)
        assert run.counters["source"].restarts == LIVES - 1


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_checkpoint_spout_that_completes_no_checkpoint_ends_the_topology_by_name(mode, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(checkpointed)
        with pytest.raises(
            TaskStartError,
            match=rf"(?s)'\$checkpointspout' \(task \d\) died {LIVES} times without completing a checkpoint.*no such row",
        ):
            run.wait(timeout=60)


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_spout_that_emits_in_each_life_goes_on(mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(topologies["Emitting"])
        run.wait(lambda run: run.counters["source"].restarts > LIVES, timeout=60)


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_bolt_that_dies_of_each_tuple_lets_the_run_end_with_what_failed(mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(dying)
        run.wait(timeout=60)
        counters = run.counters
        assert counters["source"].failed == 3
        assert counters["bolt"].restarts >= 1
        assert counters["bolt"].acked == 0
