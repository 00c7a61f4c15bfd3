"""Reading a result after its end is refused, since it would run the topology again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spark_bridge.job import SparkJobError, run_topology
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
