"""Counts sentences as a Spark job, into a state: ``python -m tests.handover.spark_job CONF FOLDER``."""

from __future__ import annotations

import json
import sys

from spark_bridge.job import run_topology
from spark_bridge.session import session
from tests.state.topologies import SENTENCES, topology

ROWS = 60


def main() -> None:
    conf, folder = json.loads(sys.argv[1]), sys.argv[2]
    settings = {
        "spark.driver.memory": "512m",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    with session("local[1]", "handover", settings) as spark:
        rows = {"sentences": spark.sparkContext.parallelize([SENTENCES[n % 5] for n in range(ROWS)], 2)}
        with run_topology(topology, rows, spark, initial_state=conf, save_state=conf) as result:
            print(f"{result.acked} rows are counted")


if __name__ == "__main__":
    main()
