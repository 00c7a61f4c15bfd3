"""The tuples that a job keeps of a spout that runs in the driver; no Spark is needed for it."""

from __future__ import annotations

import tracemalloc

import pytest

from multilang import BasicBolt, Spout, TopologyBuilder
from multilang.runtime.settings import DEFAULTS, Settings
from spark_bridge.job import feeds
from spark_bridge.job.feeds import EmittedFeed
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


def feed_of(said: list[str]) -> EmittedFeed:
    builder = TopologyBuilder()
    builder.set_spout("long", LongTuples)
    builder.set_bolt("anything", Anything).shuffle_grouping("long")
    topology = builder.build("feeds")
    conf = {**DEFAULTS, **topology.conf}
    spout = SpoutFeed(
        topology,
        topology.components["long"],
        conf,
        topology.task_ids(Settings(conf).ackers),
        limit=None,
        batch=500,
        report=lambda task, message: said.append(message),
    )
    return EmittedFeed(spout, size=2, max_replays=3)


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
    monkeypatch.setattr(feeds, "MAX_FAILING", 1999)
    said: list[str] = []
    feed = feed_of(said)
    while feed.waiting:
        count, _ = feed.round(NoCluster())
        feed.settle(count, [(n % 2, n // 2) for n in range(count)], {})
    assert len(feed.lost) == 2000
    assert len(said) == 1
    assert said[0].startswith("spout 'long' was given up: 2,000 different tuples failed, and none was acked meanwhile.")
    feed.spout.close()
