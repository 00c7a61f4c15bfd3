"""A query over the files of a folder, in a driver of its own: ``python -m tests.spark.stream.killed_query FOLDER CONF``.

With the environment variables KAFKA, a broker, and KAFKA_JARS, those of Spark's connector, it reads the topic ``lines`` instead.
Prints, when all is counted, what Spark's UI says of it: whether the query's name and a batch's description are there.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import TYPE_CHECKING

from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.spark.stream.drivers import settings_of
from tests.state.topologies import topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def lines(spark: SparkSession, folder: str) -> DataFrame:
    """The lines as a streaming DataFrame of their texts, a file or 300 messages in a batch."""
    broker = os.environ.get("KAFKA")
    if broker is None:
        return spark.readStream.option("maxFilesPerTrigger", 1).text(f"{folder}/lines")
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", "lines")
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 300)
    return reader.load().selectExpr("CAST(value AS STRING) AS value")


def main() -> None:
    folder, conf = sys.argv[1], json.loads(sys.argv[2])
    settings = {**settings_of(folder), "spark.ui.enabled": "true", "spark.ui.port": "0"}
    settings |= {"spark.jars": os.environ["KAFKA_JARS"]} if "KAFKA" in os.environ else {}
    with session("local[2]", "killed", settings) as spark:
        query = stream_topology(
            topology,
            {"sentences": lines(spark, folder).withColumnRenamed("value", "sentence")},
            checkpoint=f"{folder}/checkpoint",
            state=conf,
            conf={"multilang.trace": "tests.state.crashing.at_step"},
            name="words of the test",
            trigger={"availableNow": True},
        )
        query.wait()
        pages = [
            urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}/{page}/").read().decode()
            for page in ("StreamingQuery", "jobs")
        ]
        print(json.dumps(["words of the test" in pages[0], "stateful: batch " in pages[1]]))


if __name__ == "__main__":
    main()
