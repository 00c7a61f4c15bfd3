"""A query over the files of a folder, in a driver of its own: ``python -m tests.spark.stream.killed_query FOLDER CONF``.

Prints, when all is counted, what Spark's UI says of it: whether the query's name and a batch's description are there.
"""

from __future__ import annotations

import json
import sys
import urllib.request

from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.spark.stream.drivers import settings_of
from tests.state.topologies import topology


def main() -> None:
    folder, conf = sys.argv[1], json.loads(sys.argv[2])
    settings = {**settings_of(folder), "spark.ui.enabled": "true", "spark.ui.port": "0"}
    with session("local[2]", "killed", settings) as spark:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{folder}/lines")
        query = stream_topology(
            topology,
            {"sentences": lines.withColumnRenamed("value", "sentence")},
            checkpoint=f"{folder}/checkpoint",
            state=conf,
            conf={"multilang.state.trace": "tests.state.crashing.at_step"},
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
