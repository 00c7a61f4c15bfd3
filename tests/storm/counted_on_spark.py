"""What Spark counts between two lives on Storm: ``python -m tests.storm.counted_on_spark FOLDER CONF``.

``publish`` first: the sentences, as partitions. Then a job from where the state is up to a cut in the middle of what is left, and
a streaming query on sentences of its own, upon the same state. Prints how many rows each had, as JSON.
"""

from __future__ import annotations

import json
import sys

from multilang.topology import load_topology
from spark_bridge import PublishedSource, publish
from spark_bridge.job import run_topology
from spark_bridge.job.states import States
from spark_bridge.replayable import offsets_of
from spark_bridge.session import session
from spark_bridge.stream import stream_topology


def main() -> None:
    folder, conf = sys.argv[1], json.loads(sys.argv[2])
    settings = {
        "spark.driver.memory": "768m",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    with session("local[2]", "handover", settings) as spark:
        if conf is None:
            lines = spark.read.text(f"{folder}/lines").withColumnRenamed("value", "sentence")
            publish(lines.repartition(3), f"{folder}/published")
            return
        topology = load_topology("tests/storm/shipped/handover.py")
        source = PublishedSource(f"{folder}/published")
        states = States(topology, conf)
        begins = offsets_of(states.positions("sentences"))
        states.close()
        cut = {each: (begins.get(each, 0) + source.count(each)) // 2 for each in range(source.partitions)}
        rows = {"sentences": source.until(cut)}
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
