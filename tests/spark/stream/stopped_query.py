"""A query that is stopped while it works on a batch: ``python -m tests.spark.stream.stopped_query FOLDER``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from multilang import BasicBolt, TopologyBuilder
from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.spark.job.components import Rows
from tests.spark.stream.drivers import settings_of


class Slow(BasicBolt):
    """Takes a minute for its first tuple, and says when it begins."""

    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.begun = Path(conf["test.begun"])

    def process(self, tup: Any) -> None:
        self.begun.touch()
        time.sleep(60)


def main() -> None:
    folder = sys.argv[1]
    begun = Path(folder, "begun")
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("slow", Slow).shuffle_grouping("rows")
    with session("local[2]", "stopped", settings_of(folder)) as spark:
        rows = spark.readStream.text(f"{folder}/lines").selectExpr("value AS key", "1 AS n")
        query = stream_topology(
            builder.build("stopped", conf={"test.begun": str(begun)}), {"rows": rows}, checkpoint=f"{folder}/checkpoint"
        )
        while not begun.exists():
            time.sleep(0.05)
        query.stop()
        print(query.query.exception())


if __name__ == "__main__":
    main()
