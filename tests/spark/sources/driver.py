"""A Spark driver that serves numbers until all are acked: python driver.py PORT ROWS PARTITIONS."""

from __future__ import annotations

import os
import sys


def main() -> None:
    port, rows, partitions = map(int, sys.argv[1:])
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    from pyspark.sql import SparkSession

    from spark_bridge import RDDSource, serve

    builder = SparkSession.builder.master("local[2, 8]").config("spark.driver.memory", "512m")
    for key in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(key, "false")
    for key in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(key, "127.0.0.1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    source = RDDSource(spark.sparkContext.parallelize(range(rows), partitions), name="numbers", block_rows=200)
    with serve(source, port=port) as served:
        served.wait(timeout=3000)  # whoever has started this program waits less, by the speed of the machine
        print(f"acked {served.acked}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
