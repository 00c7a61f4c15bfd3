"""Exact alignment: what it asks for, what it undoes, and that it counts exactly in every mode."""

from __future__ import annotations

import re
import time

import pytest

from multilang import BasicBolt, BatchingBolt, Bolt, ShellBolt, TopologyBuilder
from multilang.local import LocalCluster
from multilang.state import StatefulBasicBolt
from multilang.state.providers import provider_of
from multilang.topology import TopologyError
from tests.patience import patient
from tests.soak import combined
from tests.state.conftest import conf_of
from tests.state.topologies import Count, Lines, Sentences, Split, build, exact, stored, words_of

EXACT = {"multilang.state.alignment": "exact"}
everywhere = pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])


def test_sources_become_bolts_that_the_checkpoint_spout_gives_turns():
    assert list(exact.spouts) == ["$checkpointspout"]
    assert [(each.component, each.stream) for each in exact["sentences"].inputs] == [
        ("$checkpointspout", "$checkpoint"),
        ("$checkpointspout", "$turn"),
        ("$checkpointspout", "$more"),
    ]
    assert [each.component for each in exact["split"].inputs if each.stream == "$checkpoint"] == ["sentences"]
    assert exact["sentences"].tasks == 2


@pytest.mark.parametrize(
    ("mode", "durable"),
    combined(["process", "inprocess", "simulated"], ["sqlite", "redis", "files"]),
    indirect=["durable"],
)
def test_counting_goes_on_where_it_was_each_word_once(mode, durable):
    found = provider_of(durable)
    for total in (100, 100, 270):
        with LocalCluster(mode=mode, conf={**durable, "test.sentences": total}, seed=total) as cluster:
            run = cluster.submit(exact)
            run.wait(timeout=patient(100))
            assert not run.errors
            assert [each.failed for each in run.counters.values()] == [0] * len(run.counters)
            assert run.counters["$checkpointspout"].lost == 0
        assert stored(found, "count", 2) == words_of(total)
        assert sum(stored(found, "lengths", 1).values()) == sum(words_of(total).values())
    found.close()


class Once(BasicBolt):
    """Raises at the fiftieth word that the process gets."""

    output_fields = ["word"]
    seen = 0

    def process(self, tup):
        Once.seen += 1
        if Once.seen == 50:
            raise ValueError("once")
        self.emit([tup["word"]])


class Memory(StatefulBasicBolt):
    """Counts in itself, too: a rollback gives it a new instance, so that both are the same."""

    def initialize(self, conf, context):
        self.mine = {}

    def init_state(self, state):
        self.state = state
        self.mine = dict(state)

    def process(self, tup):
        word = tup["word"]
        self.mine[word] = self.mine.get(word, 0) + 1
        self.state.put(word, self.mine[word])


def counted(bolt, conf, **parts):
    builder = TopologyBuilder()
    builder.set_spout("sentences", parts.get("spout", Lines))
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("between", bolt, parallelism=parts.get("tasks", 1)).shuffle_grouping("split")
    builder.set_bolt("count", Memory).global_grouping("between")
    return builder.build("stateful", {**conf, **EXACT, "test.sentences": 60})


def test_a_failed_tuple_undoes_everything_since_the_last_checkpoint_and_it_is_done_again(durable):
    Once.seen = 0
    with LocalCluster(mode="inprocess", conf=durable) as cluster:
        run = cluster.submit(counted(Once, durable))
        run.wait(timeout=patient(60))
        assert any("ValueError" in error.message for error in run.errors)
        assert run.counters["$checkpointspout"].lost == 0
    found = provider_of(durable)
    assert stored(found, "count", 1) == words_of(60)
    assert Once.seen > sum(words_of(60).values())
    found.close()


class Batches(BatchingBolt):
    output_fields = ["word"]
    component_conf = {"topology.tick.tuple.freq.secs": 3600}
    batch_size = 1000

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit([tup["word"]])


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_a_batching_bolt_is_asked_for_its_batches_before_a_checkpoint(mode, durable):
    with LocalCluster(mode=mode, conf=durable, seed=1) as cluster:
        run = cluster.submit(counted(Batches, durable, tasks=2))
        run.wait(timeout=patient(60))
    found = provider_of(durable)
    assert stored(found, "count", 1) == words_of(60)
    found.close()


class Slow(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        time.sleep(0.02)
        self.emit([tup["word"]])


def test_bolts_that_are_slow_against_the_message_timeout_get_on(tmp_path):
    conf = {**conf_of("sqlite", None, tmp_path), "topology.message.timeout.secs": 1}
    with LocalCluster(mode="process", conf=conf) as cluster:
        cluster.submit(counted(Slow, conf), conf={"test.sentences": 50}).wait(timeout=patient(100))
    found = provider_of(conf)
    assert stored(found, "count", 1) == words_of(50)
    found.close()


class Holds(Bolt):
    output_fields = ["word"]

    def process(self, tup):
        pass


def test_a_bolt_that_holds_tuples_is_told_that_it_can_not(durable):
    with LocalCluster(mode="inprocess", conf=durable) as cluster:
        run = cluster.submit(counted(Holds, durable))
        run.wait(lambda run: run.errors, timeout=patient(60))
        assert re.search(r"bolt 'between' still holds \d+ tuples at a checkpoint", run.errors[0].message)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("spout", "spout 'sentences' .Sentences. can't go back"),
        ("shell", "'node' .another-language. is no Python component"),
    ],
)
def test_what_can_not_be_exact_is_refused_when_built(what, says):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences if what == "spout" else Lines)
    builder.set_bolt("count", Count).fields_grouping("sentences", "sentence")
    if what == "shell":
        builder.set_bolt("node", ShellBolt(["another-language"])).shuffle_grouping("count")
    with pytest.raises(TopologyError, match=says):
        builder.build("wrong", EXACT)


def test_at_least_once_takes_a_replayable_spout_for_a_reliable_one(durable):
    with LocalCluster(mode="inprocess", conf=durable) as cluster:
        run = cluster.submit(build(spout=Lines))
        run.wait(timeout=patient(60))
        assert run.counters["sentences"].acked == 200


class Nowhere(Lines):
    def position(self):
        return None


def test_a_source_without_a_position_is_named(durable):
    with LocalCluster(mode="inprocess", conf=durable) as cluster:
        run = cluster.submit(counted(Split2, durable, spout=Nowhere))
        run.wait(lambda run: run.errors, timeout=patient(60))
        assert "Nowhere.position() returned None" in run.errors[0].message


class Split2(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        self.emit([tup["word"]])
