"""The same topology on the embedded cluster, as a Spark job, and in plain Python: the same answer for any rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, ReliableSpout, TopologyBuilder
from multilang.local import LocalCluster
from spark_bridge.job import run_topology
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.spark.job.components import FailsAtFirst, Parts, Sums

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = 300 if SOAK else 6


class Given(ReliableSpout):
    """Emits the rows of conf test.rows on the embedded cluster; on Spark an RDD takes its place."""

    output_fields = ["key", "n"]

    def initialize(self, conf, context):
        self.rows = list(conf.get("test.rows", ()))

    def next_tuple(self):
        if self.rows:
            self.emit(self.rows.pop())

    def exhausted(self):
        return not self.rows


class Tens(BasicBolt):
    """Ten times as many tuples as it gets, for one key in two."""

    output_fields = ["key", "n"]

    def process(self, tup):
        for _ in range(10 if len(str(tup["key"])) % 2 else 1):
            self.emit([tup["key"], tup["n"]])


keys = st.one_of(st.text(max_size=3), st.integers(-(2**63), 2**63 - 1), st.none())
hot = st.just("hot")
rows = st.lists(st.tuples(st.one_of(hot, hot, keys), st.integers(-1000, 1000)), max_size=30)
# Partitions of all kinds: some empty, and often one that is far larger than the others.
giant = st.tuples(st.integers(0, 300), st.integers(0, 5)).map(
    lambda drawn: [("giant" if n % 3 else f"g{n % 7}", n) for n in range(drawn[0])]
)
partitions = st.tuples(st.lists(rows, max_size=5), giant).map(lambda drawn: [*drawn[0], drawn[1]])


def topology(tasks: tuple[int, int, int], groupings: tuple[str, str], name: str = "drawn"):
    builder = TopologyBuilder()
    builder.set_spout("rows", Given)
    builder.set_bolt("fails", FailsAtFirst, parallelism=tasks[0]).fields_grouping("rows", "n")
    declarer = builder.set_bolt("parts", Parts, parallelism=tasks[1])
    getattr(declarer, groupings[0])("fails")
    declarer = builder.set_bolt("tens", Tens, parallelism=tasks[1])
    getattr(declarer, groupings[1])("parts", stream="odd")
    builder.set_bolt("sums", Sums, parallelism=tasks[2]).fields_grouping("tens", "key").fields_grouping(
        "parts", "key", stream="even"
    )
    return builder.build(name)


def final(said):
    """Of what was said of each key, the last: that of the most tuples."""
    sums = {}
    for key, total, tuples in said:
        if tuples >= sums.get(key, (0, 0))[1]:
            sums[key] = (total, tuples)
    return sums


def plain(rows):
    totals: Counter[object] = Counter()
    tuples: Counter[object] = Counter()
    for key, n in rows:
        times = 10 if n % 2 and len(str(key)) % 2 else 1
        totals[key] += n * times
        tuples[key] += times
    return {key: (totals[key], tuples[key]) for key in tuples}


@soak_only
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    drawn=partitions,
    tasks=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    groupings=st.tuples(*[st.sampled_from(["shuffle_grouping", "local_or_shuffle_grouping", "global_grouping"])] * 2),
    failing=st.sets(st.integers(-1000, 1000), max_size=5),
    times=st.integers(1, 2),
)
def test_the_embedded_cluster_spark_and_plain_python_agree(
    spark: SparkSession, drawn, tasks, groupings, failing, times
) -> None:
    every = [row for each in drawn for row in each]
    bad = sorted(failing | {n for _, n in every[:2]})
    conf = {"test.fail": bad, "test.times": [times] * len(bad), "topology.message.timeout.secs": 60}
    due = plain(every)

    chunks = spark.sparkContext.parallelize(drawn, len(drawn)).flatMap(lambda chunk: chunk)
    assert chunks.glom().map(len).collect() == list(map(len, drawn))
    with run_topology(topology(tasks, groupings), {"rows": chunks}, spark, conf=conf) as result:
        here = final(result.rdd("sums").collect())
        assert (result.acked, result.lost) == (len(every), 0)
    assert here == due

    with LocalCluster(mode="simulated", seed=1) as cluster:
        # Its clock is virtual: the tick that says the sums comes at once.
        running = cluster.submit(
            topology(tasks, groupings), conf={**conf, "test.rows": [list(row) for row in every]}, capture=["sums"]
        )
        running.wait(timeout=patient(600))
        running.run_for(5)
        there = final(tup.values for tup in running.captured("sums"))
        assert running.counters["rows"].acked == len(every)
    assert there == due
