"""The rows of each of several sources come under the name of its own spout, whatever RDDs and DataFrames they are."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import pytest

from multilang import TopologyBuilder
from spark_bridge.job import run_topology
from tests.soak import SOAK
from tests.spark.job.components import Rows, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Make = Callable[[SparkSession, list[tuple[str, int]]], Any]

# What Spark knows of the place of rows, such as the partitioner of the first two, must make no difference.
SOURCES: dict[str, Make] = {
    "reduced": lambda spark, rows: spark.sparkContext.parallelize(rows).reduceByKey(max, 3),
    "partitioned": lambda spark, rows: spark.sparkContext.parallelize(rows).partitionBy(3),
    "sorted": lambda spark, rows: spark.sparkContext.parallelize(rows).sortByKey(numPartitions=3),
    "plain": lambda spark, rows: spark.sparkContext.parallelize(rows, 3),
    "frame": lambda spark, rows: spark.createDataFrame(rows, ["key", "n"]).repartition(3, "key"),
    "united": lambda spark, rows: spark.sparkContext.parallelize(rows[:2], 1).union(
        spark.sparkContext.parallelize(rows[2:], 2)
    ),
    "empty": lambda spark, rows: spark.sparkContext.emptyRDD(),
}


@pytest.mark.parametrize(
    "kinds",
    [*combinations_with_replacement(SOURCES, 2)] if SOAK else [("reduced", "reduced"), tuple(SOURCES)],
    ids="-".join,
)
def test_rows_come_from_their_own_spout(spark: SparkSession, kinds: tuple[str, ...]) -> None:
    builder = TopologyBuilder()
    seen = builder.set_bolt("seen", Seen, parallelism=2)
    sources: dict[str, Any] = {}
    due: dict[str, list[Any]] = {}
    for number, kind in enumerate(kinds):
        id = f"spout {number}"
        builder.set_spout(id, Rows)
        seen.shuffle_grouping(id)
        rows = [(f"{id}: {n}", n) for n in range(6)]
        sources[id] = SOURCES[kind](spark, rows)
        if kind != "empty":
            due[id] = [list(row) for row in rows]
    with run_topology(builder.build("several"), sources, spark) as result:
        found: dict[str, list[Any]] = defaultdict(list)
        for values, _, component, *_ in result.rdd("seen").collect():
            found[component].append(values)
        assert {id: sorted(rows) for id, rows in found.items()} == due
