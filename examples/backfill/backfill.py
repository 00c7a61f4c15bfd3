"""A live topology gets its history: eleven months of flights by Spark, the twelfth by the topology itself.

pip install '.[cli,spark,flights]'
python examples/backfill/backfill.py
python examples/backfill/backfill.py --state redis://localhost:6379/0

All twelve are in one log of four partitions, in which each row has its offset, and the topology's spout reads that log. The
history is what comes before the cut, an offset per partition. With its counts Spark saves its positions, so the topology
resumes with the first flight that is not counted. At the end its states are compared with the answer of Spark SQL.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).parents[1] / "flights"))  # its modules read the flights for both examples

from data import Results, by_sql, flights
from pyspark.sql import functions as f
from totals import topology

from multilang import LocalCluster
from multilang.state.admin import StoredStates
from spark_bridge import PublishedSource, publish
from spark_bridge.job import run_topology
from spark_bridge.job.state import conf_of
from spark_bridge.session import session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


def in_states(conf: Mapping[str, Any]) -> Results:
    """Return what the topology's bolts have counted, read from their states."""
    states = StoredStates(topology, conf)
    found: Results = {"carriers": {}, "airports": {}}
    for line in states.export():
        component = line.get("namespace", "").rpartition("-")[0]
        if component in found:
            found[component][line["key"]] = [line["key"], *line["value"]]
    states.close()
    return found


def written(spark: SparkSession, folder: Path, months: int) -> tuple[PublishedSource, dict[int, int]]:
    """Write the log, and return it with the cut: partition -> its number of flights before the last month."""
    history = flights(spark, folder, months - 1).withColumn("live", f.lit(0))
    live = flights(spark, folder, months, first=months).withColumn("live", f.lit(1))
    log = history.union(live).repartition(4, "carrier").sortWithinPartitions("live").persist()
    cut = log.groupBy(f.spark_partition_id()).agg(f.sum(1 - f.col("live"))).collect()
    source = publish(log.drop("live"), f"{folder}/log")
    log.unpersist()
    return source, {**dict.fromkeys(range(source.partitions), 0), **dict(cut)}


def main() -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description="The backfill example; see the top of this file.")
    parser.add_argument(
        "--months", type=int, default=12, help="only the first months; the last of them is the live one"
    )
    parser.add_argument("--state", metavar="PLACE", help="an SQLite file or redis://HOST:PORT/DATABASE, empty so far")
    parser.add_argument("--processes", action="store_true", help="the live topology's tasks in processes of their own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        session("local[2]", "backfill", {"spark.sql.shuffle.partitions": "2"}) as spark,
    ):
        place = chosen.state or f"{folder}/totals.sqlite"
        log, cut = written(spark, Path(folder), chosen.months)

        begin = time.perf_counter()
        with run_topology(topology, {"flights": log.until(cut)}, spark, save_state=place) as result:
            print(f"history: {result.acked:,} flights by Spark in {time.perf_counter() - begin:.1f} s")

        begin = time.perf_counter()
        conf = {**conf_of(place), "multilang.source": log.url}
        with LocalCluster(mode="process" if chosen.processes else "inprocess", conf=conf) as cluster:
            cluster.submit(topology).wait(until="drained")
        found = in_states(conf_of(place))
        counted = sum(row[2] for row in found["carriers"].values())
        print(f"live: {counted - result.acked:,} flights on the cluster in {time.perf_counter() - begin:.1f} s")

        due = by_sql(spark, flights(spark, Path(folder), chosen.months))
    for row in sorted(found["carriers"].values(), key=lambda row: -row[4] / row[2]):
        print(f"{row[1]:<28} {row[4] / row[2]:+6.1f} minutes on average, {row[3]:>6} of {row[2]:>6} late")
    if chosen.json:
        chosen.json.write_text(json.dumps(found), encoding="utf-8")
    print("the same by plain Spark SQL" if found == due else "DIFFERENT from plain Spark SQL")
    return 0 if found == due else 1


if __name__ == "__main__":
    sys.exit(main())
