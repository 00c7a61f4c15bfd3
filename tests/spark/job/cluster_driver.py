"""A driver of its own on a Spark cluster: ``cluster_driver.py MASTER ROOT FOLDER RUNS``; prints what each run told, a JSON line a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from multilang import TopologyBuilder
from spark_bridge.job import run_topology
from spark_bridge.session import session
from tests.spark.job.components import LosesItsMachine, Rows, SlowOnce, Sums

ROWS = [(f"k{n % 7}", n) for n in range(1000)]
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.25",
}


def topology(bolt: type, first: bool):
    """rows -> trouble -> sums, with trouble where the rows are read (``first``), or in the last stage."""
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    if first:
        builder.set_bolt("trouble", bolt, parallelism=2).shuffle_grouping("rows")
        builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("trouble", "key")
    else:
        builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("rows", "key")
        builder.set_bolt("trouble", bolt, parallelism=2).fields_grouping("sums", "key").fields_grouping("rows", "key")
    return builder.build("trouble")


def main() -> None:
    master, root, folder, runs = sys.argv[1:]
    conf = {
        **SPECULATION,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": root,
        "spark.sql.warehouse.dir": folder,
    }
    with session(master, "trouble", conf) as spark:
        rdd = spark.sparkContext.parallelize(ROWS, 2)
        for name, first in json.loads(runs):
            bolt = {"SlowOnce": SlowOnce, "LosesItsMachine": LosesItsMachine}[name]
            marks = Path(folder, f"{bolt.__name__}-{first}")
            marks.mkdir()
            with run_topology(topology(bolt, first), {"rows": rdd}, spark, conf={"test.folder": str(marks)}) as result:
                rows = result.rdd("sums" if first else "trouble").collect()
            counters = {id: [each.executed, each.emitted] for id, each in result.counters.items()}
            said = {"acked": result.acked, "lost": result.lost, "rounds": result.rounds, "counters": counters}
            names = sorted(path.name for path in marks.iterdir())
            print(
                json.dumps({"bolt": bolt.__name__, "first": first, "marks": names, "rows": rows, **said}),
                flush=True,
            )


if __name__ == "__main__":
    main()
