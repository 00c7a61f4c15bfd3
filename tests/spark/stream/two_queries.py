"""Two queries over the same rows, one after the other, into one state: ``python -m tests.spark.stream.two_queries FOLDER``."""

from __future__ import annotations

import sys

from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.patience import patient
from tests.spark.stream.drivers import settings_of
from tests.state.topologies import topology


def main() -> None:
    folder = sys.argv[1]
    with session("local[2]", "two", settings_of(folder)) as spark:
        rows = spark.readStream.text(f"{folder}/lines").withColumnRenamed("value", "sentence")
        for name in ("one", "two"):
            with stream_topology(
                topology,
                {"sentences": rows},
                checkpoint=f"{folder}/{name}",
                state=f"{folder}/state",
                trigger={"availableNow": True},
            ) as query:
                query.wait(patient(300))


if __name__ == "__main__":
    main()
