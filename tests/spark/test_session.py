"""The Spark that the tests beside this one run on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_job_runs_in_python_processes_of_this_very_interpreter(spark: SparkSession) -> None:
    def executable(_rows: object) -> list[str]:
        return [sys.executable]

    found = spark.sparkContext.parallelize([1, 2], 2).mapPartitions(executable).collect()
    assert found == [sys.executable] * 2


def test_it_listens_on_loopback_alone(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
