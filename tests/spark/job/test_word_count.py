"""The topology that every Storm user has seen first, as a Spark job."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang import BasicBolt, TopologyBuilder
from multilang.local import LocalCluster
from multilang.topology import load_topology
from spark_bridge.job import run_topology
from tests.patience import patient
from tests.spark.job.components import Count, Seen, Split, Words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "word_count.py")
SENTENCES = [
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "",
    "ζ über naïve 日本 the",
] * 20
COUNTS = Counter(word for sentence in SENTENCES for word in sentence.split())


def word_count(split: int = 2, count: int = 2):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    builder.set_bolt("split", Split, parallelism=split).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=count).fields_grouping("split", "word")
    return builder.build("word-count")


@pytest.mark.parametrize(("partitions", "split", "count"), [(1, 1, 1), (2, 2, 2), (5, 2, 3), (2, 4, 1), (3, 3, 3)])
def test_it_counts_as_plain_python_does(spark: SparkSession, partitions: int, split: int, count: int) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, partitions)
    with run_topology(word_count(split, count), {"sentences": rdd}, spark) as result:
        counted = dict(result.rdd("count").reduceByKey(max).collect())
    assert counted == COUNTS
    assert (result.acked, result.lost, result.failed, result.rounds) == (len(SENTENCES), 0, [], 1)
    counters = result.counters
    assert counters["sentences"].emitted == counters["split"].executed == counters["split"].acked == len(SENTENCES)
    assert counters["split"].emitted == counters["count"].executed == counters["count"].emitted == COUNTS.total()


class Frozen(BasicBolt):
    """Emits how many objects the garbage collector of its process leaves alone."""

    output_fields = ["objects"]

    def process(self, tup):
        self.emit([gc.get_freeze_count()])


def test_a_worker_looks_for_garbage_in_no_module_behind_each_task(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    builder.set_bolt("frozen", Frozen).shuffle_grouping("sentences")
    rdd = spark.sparkContext.parallelize(SENTENCES[:2], 1)
    with run_topology(builder.build("frozen"), {"sentences": rdd}, spark) as result:
        objects = [row[0] for row in result.rdd("frozen").collect()]
    assert min(objects) > len(sys.modules)  # those of modules, at the least


def test_each_task_counts_the_words_that_it_counts_on_the_embedded_cluster(spark: SparkSession) -> None:
    topology = load_topology(EXAMPLE)
    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(topology, conf={"multilang.input.files": [__file__]}, capture=["count"])
        running.wait(timeout=patient(60))
        there = {(tup["word"], tup.task) for tup in running.captured("count")}
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)

    builder.set_bolt("count", Seen, parallelism=2).fields_grouping("sentences", "sentence")
    words = sorted({word for word, _ in there})
    with run_topology(builder.build("seen"), {"sentences": spark.sparkContext.parallelize(words, 3)}, spark) as result:
        here = {(values[0], task) for values, task, *_ in result.rdd("count").collect()}
    first = min(task for _, task in there), min(task for _, task in here)
    assert {(word, task - first[1]) for word, task in here} == {(word, task - first[0]) for word, task in there}


def test_the_example_runs_on_a_text_file(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(SENTENCES), encoding="utf-8")
    topology = load_topology(EXAMPLE)
    rdd = spark.sparkContext.textFile(str(file), 4)
    with run_topology(topology, {"sentences": rdd}, spark) as result:
        frame = result.dataframe("count")
        assert frame.columns == ["word", "count"]
        assert [kind for _, kind in frame.dtypes] == ["string", "bigint"]
        counted = {row["word"]: row["max(count)"] for row in frame.groupBy("word").max("count").collect()}
    assert counted == COUNTS


def test_a_run_is_the_same_each_time(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, 4)
    ran = []
    for _ in range(2):
        with run_topology(word_count(3, 2), {"sentences": rdd}, spark, outputs=["split", "count"]) as result:
            ran.append([result.rdd(name).glom().collect() for name in ("split", "count")])
    assert ran[0] == ran[1]
