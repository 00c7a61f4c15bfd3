"""A query over a spout, in a driver of its own: ``python -m tests.spark.stream.killed_spout FOLDER OPTIONS BATCH``.

Each batch's rows are written to a file of their own, ``seen/BATCH-PID``. The driver kills itself in the middle of BATCH.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from spark_bridge.session import session
from spark_bridge.stream import register_spouts
from tests.spark.stream.drivers import settings_of


def main() -> None:
    folder, options, last = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])

    def keep(rows, batch):
        found = [list(row) for row in rows.collect()]
        part = f"{folder}/seen/.{batch}-{os.getpid()}"
        with open(part, "w") as file:
            json.dump(found, file)
        os.rename(part, f"{folder}/seen/{batch}-{os.getpid()}")
        if batch == last:
            os.kill(os.getpid(), signal.SIGKILL)

    with session("local[2]", "killed", settings_of(folder)) as spark:
        register_spouts(spark)
        rows = spark.readStream.format("storm_spout").options(log=f"{folder}/log", **options).load()
        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", f"{folder}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
