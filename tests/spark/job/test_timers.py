"""Timers on Spark run at the end of a task's input, as ticks do, in the order of their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang import Bolt, TopologyBuilder
from multilang.local import LocalCluster
from spark_bridge.job import run_topology
from tests.local import timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def whole(topology, spark, component="bolt", **conf):
    """The result, and what a component emitted."""
    outputs = [component, *(["sums"] if "sums" in topology.components else [])]
    with run_topology(topology, {}, spark, conf=conf, outputs=outputs) as result:
        return result, [[*row] for row in result.rdd(component).collect()]


def test_the_answers_are_those_of_the_embedded_cluster(spark: SparkSession) -> None:
    for topology in (timed.holds, timed.twice, timed.fails):
        result, emitted = whole(topology, spark, **{"test.numbers": 8})
        with LocalCluster("simulated", {"test.numbers": 8}, seed=1) as cluster:
            run = cluster.submit(topology, capture=["bolt"])
            run.wait()
            assert sorted(emitted) == sorted(list(tup.values) for tup in run.captured("bolt")), topology.name
            told = (result.counters["numbers"].acked, result.counters["numbers"].failed)
            assert told == (run.counters["numbers"].acked, run.counters["numbers"].failed), topology.name
        assert result.counters["bolt"].unfinished == 0


def test_timers_run_in_the_order_of_their_times_when_all_rows_have_come(spark: SparkSession) -> None:
    _, emitted = whole(timed.twice, spark, **{"test.numbers": 4})
    assert [time for _, time in emitted] == 4 * ["first"] + 4 * ["second"]
    assert sorted(n for n, _ in emitted) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_timer_that_is_put_off_again_and_again_runs_once(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", timed.Numbers)
    builder.set_bolt("bolt", timed.Sums).global_grouping("numbers")
    _, emitted = whole(builder.build("sums"), spark)
    assert emitted == [[sum(range(30)), 30]]


def test_a_repeated_timer_and_a_chain_run_once_for_a_bolt_that_holds_nothing(spark: SparkSession) -> None:
    _, emitted = whole(timed.beats, spark, **{"test.numbers": 3})
    assert sorted(emitted) == [["beat"], ["chain"]]


class Third(Bolt):
    """Acks what it holds when its repeated timer runs for the third time, by its own clock after three seconds."""

    output_fields = ["n", "beats"]

    def initialize(self, conf, context):
        self.kept, self.beats, self.start = [], 0, self.clock()
        self.timer = self.set_timer(1, self.beat, every=1)

    def process(self, tup):
        self.kept.append(tup)

    def beat(self):
        self.beats += 1
        assert self.clock() - self.start >= self.beats
        if self.beats == 3:
            for tup in self.kept:
                self.emit([tup["n"], self.beats], anchors=[tup])
                self.ack(tup)
            self.timer.cancel()


def test_a_repeated_timer_goes_on_while_the_bolt_holds_tuples(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", timed.Numbers)
    builder.set_bolt("bolt", Third).global_grouping("numbers")
    result, emitted = whole(builder.build("third"), spark, **{"test.numbers": 3})
    assert sorted(emitted) == [[n, 3] for n in range(3)]
    assert (result.rounds, result.lost) == (1, 0)


def test_what_a_timer_raises_is_reported_and_the_bolt_lives_on(spark: SparkSession) -> None:
    result, emitted = whole(timed.reports, spark, **{"test.numbers": 3})
    assert sorted(emitted) == [[0], [1], [2]]
    assert "in a timer: the disk is full" in str(result.errors[0])


def test_a_spout_in_the_driver_emits_from_its_timers(spark: SparkSession) -> None:
    result, emitted = whole(timed.timed, spark, "numbers")
    assert emitted == [[4], [3], [2], [1], [0]]
    assert result.acked == 5
