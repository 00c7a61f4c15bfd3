"""Stateful topologies as a whole: built, checked, run in every mode, and found again as they were committed."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, Bolt, ShellBolt, StatefulBasicBolt, StatefulBolt, Stream, TopologyBuilder
from multilang.component import ConfigError
from multilang.errors import LocalClusterError
from multilang.local import LocalCluster
from multilang.state.providers import provider_of
from multilang.topology import TopologyError
from tests.patience import patient
from tests.soak import combined
from tests.state.topologies import Count, Lengths, Sentences, Split, build, stored, topology, words_of

everywhere = pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])


def test_the_builder_adds_the_checkpoint_spout_and_wires_the_stream_across():
    assert list(topology.components) == ["sentences", "split", "count", "lengths", "$checkpointspout"]
    subscriptions = {
        id: [(each.component, each.grouping.type) for each in spec.inputs if each.stream == "$checkpoint"]
        for id, spec in topology.bolts.items()
    }
    assert subscriptions == {
        "split": [("$checkpointspout", "all")],
        "count": [("split", "all")],
        "lengths": [("count", "all")],
    }
    assert topology["split"].streams["$checkpoint"] == Stream(["txid", "action", "epoch"])
    assert topology["$checkpointspout"].tasks == topology["$checkpointspout"].parallelism == 1
    assert topology.with_conf({"topology.tasks": 7})["$checkpointspout"].tasks == 1
    assert "bolt count: Count, 2 tasks" in topology.to_text()


def test_a_topology_without_stateful_bolts_is_left_as_it_is():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split).shuffle_grouping("sentences")
    assert list(builder.build("plain").components) == ["sentences", "split"]


def test_checkpoints_go_around_bolts_in_other_languages():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split).shuffle_grouping("sentences")
    builder.set_bolt("node", ShellBolt(["another-language"], ["word"])).shuffle_grouping("split")
    builder.set_bolt("last", ShellBolt(["another-language"])).shuffle_grouping("node")
    builder.set_bolt("count", Count).fields_grouping("node", "word")
    built = builder.build("mixed")
    assert [each.component for each in built["count"].inputs if each.stream == "$checkpoint"] == ["split"]
    assert [each.component for each in built["node"].inputs] == ["split"]


def test_a_bolt_that_has_ticks_alone_gets_its_checkpoints_from_the_spout():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("count", Count).fields_grouping("sentences", "sentence")
    builder.set_bolt("alone", Lengths, conf={"topology.tick.tuple.freq.secs": 1})
    assert [each.component for each in builder.build("ticks")["alone"].inputs] == ["$checkpointspout"]


class Taken(Bolt):
    output_streams = {"$checkpoint": ["x"]}


@pytest.mark.parametrize("fault", ["cycle", "spout", "stream"])
def test_what_checkpoints_can_not_go_through_is_refused(fault):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    count = builder.set_bolt("count", Count).fields_grouping("sentences", "sentence")
    if fault == "cycle":
        builder.set_bolt("split", Split).shuffle_grouping("count")
        count.shuffle_grouping("split")
    elif fault == "spout":
        builder.set_spout("$checkpointspout", Sentences)
    else:
        builder.set_bolt("taken", Taken).shuffle_grouping("count")
    with pytest.raises(
        TopologyError,
        match={"cycle": "can't have a cycle", "spout": "checkpoint spout", "stream": "checkpoints"}[fault],
    ):
        builder.build("wrong")


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"topology.state.checkpoint.interval.ms": 30_000}, "fraction of the timeout"),
        ({"topology.message.timeout.secs": 1}, "fraction of the timeout"),
        ({"topology.state.checkpoint.interval.ms": "1s"}, "milliseconds"),
        ({"topology.acker.executors": 0}, "without ackers"),
        ({"multilang.state.alignment": "maybe"}, "'exact'"),
        ({"multilang.state.cache.keys": -1}, "number of keys"),
        ({"multilang.state.alignement": "exact"}, "did you mean 'multilang.state.alignment'"),
        ({"multilang.state.colour": "red"}, "'multilang.state.colour' is read by nobody; the keys that begin"),
    ],
)
def test_a_conf_that_can_not_work_is_refused_when_built_and_when_run(conf, says):
    with pytest.raises(TopologyError, match=says):
        build(conf)
    with (
        LocalCluster(mode="inprocess", conf={"topology.state.provider": "memory"}) as cluster,
        pytest.raises((LocalClusterError, TopologyError), match=says),
    ):
        cluster.submit(topology, conf=conf)


@pytest.mark.parametrize(
    ("mode", "conf"), combined(["simulated", "process", "inprocess"], ["memory", "sqlite", "redis"]), indirect=["conf"]
)
def test_every_word_is_counted_and_counting_goes_on_where_it_was(mode, conf):
    if conf["topology.state.provider"] != "sqlite" and mode == "process":
        conf = {**conf, "topology.state.checkpoint.interval.ms": 500}
    found = provider_of(conf)
    runs = 1 if "Memory" in conf["topology.state.provider"] else 3
    for times in range(1, runs + 1):
        with LocalCluster(mode=mode, conf=conf, seed=times) as cluster:
            run = cluster.submit(topology, capture=["count"])
            run.wait(timeout=patient(100))
            assert [str(error) for error in run.errors] == []
            assert run.counters["sentences"].acked == 200
            assert {task.restarts for task in run.tasks} == {0}
            last = {tup["word"]: tup["count"] for tup in run.captured("count")}
        assert last == {word: count * times for word, count in words_of(200).items()}
        if runs > 1:
            assert stored(found, "count", 2) == last
            lengths = stored(found, "lengths", 1)
            assert sum(lengths.values()) == sum(last.values())
    found.close()


@everywhere
def test_tuples_are_acked_only_when_their_state_is_committed(mode, tmp_path):
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 1000,
        "topology.max.spout.pending": 40,
        "test.sentences": 80,
    }
    found = provider_of({**conf, "topology.name": "stateful"})
    with LocalCluster(mode=mode, conf=conf, seed=1) as cluster:
        run = cluster.submit(topology)
        run.wait(lambda run: run.counters["sentences"].acked >= 40, timeout=patient(100))
        counted = sum(stored(found, "count", 2).values())
        assert counted >= sum(words_of(40).values())
        run.wait(timeout=patient(150))
    found.close()


class Also(StatefulBasicBolt):
    """Makes a topology stateful."""

    def process(self, tup):
        pass


class Silent(StatefulBolt):
    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.emit([tup[0]])
        self.ack(tup)

    output_fields = ["x"]


class Loose(BasicBolt):
    output_fields = ["x"]

    def process(self, tup):
        self.emit([tup[0]], anchors=[])


class Bare(Bolt):
    output_fields = ["x"]

    def process(self, tup):
        self.emit_many([[tup[0]]])
        self.ack(tup)


class Noted(StatefulBasicBolt):
    """Its hooks, and what the state was in them."""

    def initialize(self, conf, context):
        self.calls = ["initialize"]

    def init_state(self, state):
        self.state = state
        self.calls.append("init_state")

    def process(self, tup):
        self.calls.append("process")
        self.state.put("n", self.state.get("n", 0) + 1)

    def process_tick(self, tup):
        self.calls.append("tick")

    def pre_prepare(self, txid):
        self.calls.append(f"pre_prepare {txid}")

    def pre_commit(self, txid):
        self.calls.append(f"pre_commit {txid}")

    def pre_rollback(self):
        self.calls.append("pre_rollback")


def one_bolt(bolt, **conf):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("bolt", bolt).shuffle_grouping("sentences")
    builder.set_bolt("also", Also).global_grouping("sentences")
    return builder.build("one", conf={"topology.state.provider": "memory", **conf})


@pytest.mark.parametrize("bolt", [Silent, Bare])
def test_a_tuple_that_is_anchored_to_nothing_is_refused(bolt):
    with LocalCluster(mode="inprocess", fail_fast=True) as cluster:
        run = cluster.submit(one_bolt(bolt))
        with pytest.raises(
            LocalClusterError, match=r"bolt 'bolt' emits a tuple that is anchored to nothing.*anchors=\[\]"
        ):
            run.run_for(30)


def test_a_tuple_that_is_anchored_to_nothing_on_purpose_is_not():
    class Count2(Lengths):
        def process(self, tup):
            self.lengths.put("n", self.lengths.get("n", 0) + 1)

    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("loose", Loose).shuffle_grouping("sentences")
    builder.set_bolt("count", Count2).shuffle_grouping("loose")
    with LocalCluster(mode="inprocess", conf={"topology.state.provider": "memory"}) as cluster:
        run = cluster.submit(builder.build("loose", {"topology.state.checkpoint.interval.ms": 100}))
        run.wait(timeout=patient(60))
        assert run.counters["loose"].emitted >= 200


def test_hooks_are_called_in_their_order(tmp_path):
    conf = {"topology.state.checkpoint.interval.ms": 100, "test.sentences": 3, "topology.tick.tuple.freq.secs": 0.05}
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        run = cluster.submit(one_bolt(Noted))
        noted = next(task.instance for task in run.tasks if task.component == "bolt")
        assert isinstance(noted, Noted)
        run.wait(
            lambda _: sum("pre_commit" in call for call in noted.calls) >= 3 and "tick" in noted.calls,
            timeout=patient(60),
        )
        calls = [call.split()[0] for call in noted.calls if call != "tick"]
        assert calls[:2] == ["initialize", "init_state"]
        assert calls.count("process") == 3
        phases = [call for call in calls if call.startswith("pre_")]
        assert phases[:4] == ["pre_prepare", "pre_commit"] * 2
        run.wait(timeout=patient(60))
        assert noted.state.get("n") == 3


class Hurt(Noted):
    """Fails its first prepare that is about any tuple."""

    def pre_prepare(self, txid):
        super().pre_prepare(txid)
        if "process" in self.calls and "failed" not in self.calls:
            self.calls.append("failed")
            raise ValueError("no disk")


def test_a_prepare_that_fails_is_rolled_back_and_its_tuples_replayed():
    conf = {"topology.state.checkpoint.interval.ms": 100, "test.sentences": 30, "topology.max.spout.pending": 10}
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        run = cluster.submit(one_bolt(Hurt))
        run.wait(timeout=patient(60))
        hurt = next(task.instance for task in run.tasks if task.component == "bolt")
        assert hurt.calls.count("pre_rollback") >= 1
        assert hurt.calls.count("init_state") == 1
        assert hurt.calls.count("process") > 30
        assert hurt.state.get("n") == 30  # what was rolled back is counted once
        assert any("ValueError" in error.message and "no disk" in error.message for error in run.errors)
        assert run.counters["sentences"].acked == 30


class Pairs(Bolt):
    """Emits tuples that come of two sentences each."""

    output_fields = ["sentence"]

    def initialize(self, conf, context):
        self.first = None

    def process(self, tup):
        if self.first is None:
            self.first = tup
            return
        self.emit([tup[0]], anchors=[self.first, tup])
        self.ack(self.first)
        self.ack(tup)
        self.first = None


@everywhere
def test_all_that_a_tuple_came_of_is_acked_at_the_commit_and_fails_at_a_rollback(mode):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("pairs", Pairs).shuffle_grouping("sentences")
    builder.set_bolt("hurt", Hurt).shuffle_grouping("pairs")
    conf = {"topology.state.provider": "memory", "topology.state.checkpoint.interval.ms": 100}
    with LocalCluster(mode=mode, conf=conf, seed=1) as cluster:
        run = cluster.submit(builder.build("pairs", conf={"test.sentences": 40, "topology.max.spout.pending": 10}))
        run.wait(timeout=patient(100))
        counters = run.counters
    assert counters["sentences"].acked == 40
    assert counters["sentences"].failed > 0
    assert counters["sentences"].failed % 2 == 0


def test_an_ack_by_id_counts_and_a_second_one_is_refused():
    class Twice(StatefulBolt):
        def init_state(self, state):
            pass

        def process(self, tup):
            self.ack(tup.id)
            self.ack(tup)

    with LocalCluster(mode="inprocess", fail_fast=True) as cluster:
        run = cluster.submit(one_bolt(Twice))
        with pytest.raises(LocalClusterError, match="acked or failed before"):
            run.run_for(30)


def test_state_of_another_number_of_tasks_is_refused(tmp_path):
    conf = {"topology.state.provider": "sqlite", "topology.state.provider.config": {"path": str(tmp_path / "s.sqlite")}}
    with LocalCluster(mode="inprocess", conf={**conf, "topology.state.checkpoint.interval.ms": 100}) as cluster:
        cluster.submit(topology).wait(timeout=patient(60))
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises(
            LocalClusterError, match=r"'count' is that of 2 tasks, and it has 1 now.*state reshard TOPOLOGY count 1"
        ),
    ):
        cluster.submit(topology, conf={"topology.max.task.parallelism": 1})


def test_run_bolt_gives_a_state_in_memory(run_bolt):
    run = run_bolt(Count, [{"word": "moon"}, {"word": "sun"}, {"word": "moon"}], state={"sun": 5})
    assert run.values == [["moon", 1], ["sun", 6], ["moon", 2]]
    assert dict(run.state) == {"moon": 2, "sun": 6}
    assert len(run.acked) == 3


def test_a_stateful_bolt_outside_of_a_topology_says_what_it_needs():
    from multilang.component.context import Context
    from multilang.component.runner import start_bolt

    with pytest.raises(ConfigError, match="TopologyBuilder"):
        start_bolt(Count(), None, {}, Context({"taskid": 1, "task->component": {"1": "count"}}))
