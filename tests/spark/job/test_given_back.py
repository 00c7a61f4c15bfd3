"""Reading a result after its end is refused, since it would run the topology again; so is one that Spark made anew otherwise."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from multilang import BasicBolt, TopologyBuilder
from spark_bridge.job import SparkJobError, run_topology
from tests.spark.job.components import Words
from tests.spark.job.test_word_count import COUNTS, SENTENCES, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_result_is_read_inside_its_with_and_not_behind_it(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, 2)
    with run_topology(word_count(), {"sentences": rdd}, spark) as result:
        used, unused = result.rdd("count"), result.rdd("count")
        frame = result.dataframe("count")
        assert used.count() == frame.count() == COUNTS.total()
    for read in (result.rdd, result.dataframe):
        with pytest.raises(SparkJobError, match="outputs of 'word-count' were given back, by unpersist"):
            read("count")
    late: list[Any] = [used, unused, frame]
    for made in late:
        with pytest.raises(Exception, match=r"(?i)broadcast"):
            made.count()
    assert result.acked == len(SENTENCES)  # what is in the result itself stays


class Dice(BasicBolt):
    output_fields = ["number"]

    def process(self, tup):
        self.emit([random.getrandbits(60)])


def test_outputs_that_are_lost_and_come_out_otherwise_are_refused(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    builder.set_bolt("dice", Dice).shuffle_grouping("sentences")
    rdd = spark.sparkContext.parallelize(SENTENCES, 2)
    with run_topology(builder.build("dice"), {"sentences": rdd}, spark) as result:
        assert result.rdd("dice").count() == len(SENTENCES)
        kept: Any = spark.sparkContext._jsc.getPersistentRDDs()  # type: ignore[union-attr]
        for each in kept.values():  # as if their disks were lost
            if "the records of round" in str(each.name()):
                each.unpersist(True)
        with pytest.raises(Exception, match="what 'dice' emitted is not there any more as it was counted"):
            result.rdd("dice").count()
