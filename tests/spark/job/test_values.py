"""Values arrive unchanged on Spark, and at the task that Storm would choose, as tests.values has it of the embedded cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.topology.javahash import task_index
from spark_bridge.job import run_topology
from tests.values.test_values import SEED
from tests.values.topology import SEED as SEED_KEY
from tests.values.topology import SINKS, topology, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_values_arrive_unchanged_where_storm_would_send_them(spark: SparkSession) -> None:
    with run_topology(topology, {}, spark, conf={SEED_KEY: SEED}) as result:
        assert sorted(result.rdd("sink").collect()) == [
            [n, True, task_index([value], SINKS)] for n, value in enumerate(values(SEED))
        ]
    everything = list(enumerate(values(SEED)))
    rdd = spark.sparkContext.parallelize(everything, 3)
    with run_topology(topology, {"values": rdd}, spark, conf={SEED_KEY: SEED}) as result:
        assert sorted(result.rdd("sink").collect()) == [
            [n, True, task_index([value], SINKS)] for n, value in everything
        ]
