"""The tuples that a job keeps of a spout that runs in the driver; no Spark is needed for it."""

from __future__ import annotations

import tracemalloc

import pytest

from multilang import BasicBolt, ReliableSpout, Spout, TopologyBuilder
from multilang.engine.settings import DEFAULTS, Settings
from spark_bridge.job import rounds
from spark_bridge.job.rounds import EmittedFeed
from spark_bridge.job.spouts import SpoutFeed

LONG = "x" * 10_000


class LongTuples(Spout):
    """Emits 0, 1, 2 ... with long texts, and none of them again."""

    output_fields = ["n", "text"]

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        self.emit([self.n, f"{self.n}{LONG}"], tup_id=self.n)
        self.n += 1

    def exhausted(self):
        return self.n >= 5000


class Anything(BasicBolt):
    def process(self, tup):
        pass


class OneTuple(ReliableSpout):
    """Emits one tuple, and pauses before it emits it again."""

    output_fields = ["n"]
    max_replay_delay_secs = 0.01
    left = 1

    def next_tuple(self):
        if self.left:
            self.left = 0
            self.emit([7])

    def exhausted(self):
        return not self.left


def feed_of(said: list[str], spout: type[Spout] = LongTuples) -> EmittedFeed:
    builder = TopologyBuilder()
    builder.set_spout("long", spout)
    builder.set_bolt("anything", Anything).shuffle_grouping("long")
    topology = builder.build("feeds")
    conf = {**DEFAULTS, **topology.conf}
    tasks = SpoutFeed(
        topology,
        topology.components["long"],
        conf,
        topology.task_ids(Settings(conf).ackers),
        limit=None,
        batch=500,
        report=lambda task, message: said.append(message),
    )
    return EmittedFeed(tasks, size=2, max_replays=3)


class NoCluster:
    """Takes what a round would be made of."""

    def parallelize(self, chunks, size):
        return sum(map(len, chunks))


def test_values_of_failed_tuples_are_kept_only_for_those_that_the_result_names() -> None:
    feed = feed_of([])
    tracemalloc.start()
    while feed.waiting:
        count, _ = feed.round(NoCluster())
        feed.settle(count, [(n % 2, n // 2) for n in range(1, count)], {})
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert (feed.acked, feed.failures, len(feed.lost)) == (10, 4990, 4990)
    assert [values[0] for _, values in feed.named.values()] == [n for n in range(1100) if n % 500][:1000]
    assert kept < 2000 * len(LONG)
    feed.spout.close()


def test_a_spout_of_which_too_many_tuples_fail_in_a_row_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MAX_FAILING", 1999)
    said: list[str] = []
    feed = feed_of(said)
    while feed.waiting:
        count, _ = feed.round(NoCluster())
        feed.settle(count, [(n % 2, n // 2) for n in range(count)], {})
    assert len(feed.lost) == 2000
    assert len(said) == 1
    assert said[0].startswith("spout 'long' was given up: 2,000 different tuples failed, and none was acked meanwhile.")
    feed.spout.close()


def test_rounds_without_its_tuples_do_not_keep_a_spout_that_only_fails() -> None:
    said: list[str] = []
    feed = feed_of(said, OneTuple)
    emitted = 0
    while feed.waiting and emitted < 20:
        count, _ = feed.round(NoCluster())  # in most of these rounds its tuple waits, while another spout emits
        emitted += count
        feed.settle(count, [(0, 0)][:count], {})
    assert emitted == 5
    (error,) = said
    assert error.startswith(
        "spout 'long' was given up: nothing of its last 4 batches was acked, and all that failed had failed before."
    )
    feed.spout.close()
