"""The part that Spark counts between two runs on Storm: ``python -m tests.storm.counted_on_spark FOLDER CONF``.

A job reads from the state's position to a cut in the middle of what is left, and a streaming query reads sentences of
its own, both with the same state. Prints how many rows Storm, the job and the query had, as JSON.
"""

from __future__ import annotations

import json
import sys

from spark_bridge.job import run_topology
from spark_bridge.job.state import States
from spark_bridge.replayable import marks_of
from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.storm.shipped.handover import SOURCE, topology


def main() -> None:
    folder, conf = sys.argv[1], json.loads(sys.argv[2])
    settings = {
        "spark.driver.memory": "768m",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    with session("local[2]", "handover", settings) as spark:
        states = States(topology, conf)
        begins = {each: mark.watermark for each, mark in marks_of(states.positions("sentences")).items()}
        states.close()
        cut = {each: (begins.get(each, 0) + SOURCE.count(each)) // 2 for each in range(SOURCE.partitions)}
        rows = {"sentences": SOURCE.until(cut)}
        with run_topology(topology, rows, spark, initial_state=conf, save_state=conf) as result:
            counted = [sum(begins.values()), result.acked]
        more = spark.readStream.text(f"{folder}/more").withColumnRenamed("value", "sentence")
        told = []
        query = stream_topology(
            topology,
            {"sentences": more},
            checkpoint=f"{folder}/checkpoint",
            state=conf,
            trigger={"availableNow": True},
            progress=told.append,
        )
        query.wait()
        print(json.dumps([*counted, sum(each.acked for each in told)]))


if __name__ == "__main__":
    main()
