"""A year of flights out of New York: read by Spark, counted by one topology wherever it runs, drawn as a chart.

pip install '.[cli,spark,flights]'
python examples/flights/flights.py                     # everything below, compared
python examples/flights/flights.py live published      # some of it
python examples/flights/flights.py --chart delays.svg --publish flights-rows

sql         plain Spark SQL, which the others are compared with
live        on the embedded cluster, the rows straight from the partitions in Spark
published   on the embedded cluster, the rows from files that Spark's executors wrote; Spark has no part in it
spark       as a Spark job
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chart import bar_chart
from data import Results, by_sql, flights
from delays import delays

from multilang import LocalCluster
from spark_bridge import RDDSource, publish
from spark_bridge.job import run_topology
from spark_bridge.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_bridge import PartitionSource

_SHUFFLES = {"spark.sql.shuffle.partitions": "2"}  # more would be of no use on two cores
WAYS = ("sql", "live", "published", "spark")


def newest(rows: list[tuple[str, list[Any]]]) -> Results:
    """Return the last tuple of each key, which is the one with most flights."""
    found: Results = {"carriers": {}, "airports": {}}
    for component, row in rows:
        known = found[component].get(row[0])
        if known is None or known[2] < row[2]:
            found[component][row[0]] = list(row)
    return found


def flights_in(results: Results, component: str) -> int:
    """Return how many flights a component has counted."""
    return sum(row[2] for row in results[component].values())


def on_embedded_cluster(source: PartitionSource, rows: int) -> Results:
    """Run the topology in this process until its output has every row, and return the output."""
    captured: list[tuple[str, list[Any]]] = []
    capture = {name: lambda tup, name=name: captured.append((name, tup.values)) for name in ("carriers", "airports")}
    with LocalCluster(mode="inprocess") as cluster:
        run = cluster.submit(delays(source), capture=capture)
        run.wait(until="drained")  # the next tick after this brings the last output
        run.wait(until=lambda _: all(flights_in(newest(captured), name) == rows for name in capture), timeout=60)
    return newest(captured)


def as_spark_job(spark: SparkSession, rows: DataFrame) -> Results:
    """Run the topology's bolts as stages over the DataFrame's partitions."""
    with run_topology(delays(), {"flights": rows}, spark, outputs=["carriers", "airports"]) as result:
        return newest([(name, row) for name in ("carriers", "airports") for row in result.rdd(name).collect()])


def chart(results: Results) -> str:
    """Draw the carriers by their mean delay."""
    carriers = sorted(results["carriers"].values(), key=lambda row: -row[4] / row[2])
    bars = [(row[1], row[4] / row[2], f"{row[3] / row[2]:.0%} late of {row[2]:,}") for row in carriers]
    text: str = bar_chart(
        "How late they arrived, out of New York, 2013", "Mean arrival delay in minutes; late: 15 or more", bars
    )
    return text


def main() -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description="The flights example; see the top of this file.")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}; all if none")
    parser.add_argument("--months", type=int, default=12, help="only the first months of the year")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the result as SVG")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    parser.add_argument(
        "--publish", metavar="URL", help="where the partitions are published; a temporary folder unless given"
    )
    chosen = parser.parse_args()
    ways = chosen.ways or list(WAYS)
    if unknown := set(ways) - set(WAYS):
        parser.error(f"no such way: {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    with tempfile.TemporaryDirectory() as folder, session("local[2]", "flights", _SHUFFLES) as spark:
        rows = flights(spark, Path(folder), chosen.months)
        count = rows.count()
        print(f"{count:,} flights arrived, in {rows.rdd.getNumPartitions()} partitions")
        results: dict[str, Results] = {}
        for way in ways:
            begin = time.perf_counter()
            if way == "sql":
                results[way] = by_sql(spark, rows)
            elif way == "live":
                source = RDDSource(rows)
                results[way] = on_embedded_cluster(source, count)
                source.close()
            elif way == "published":
                url = chosen.publish or f"{folder}/published"
                results[way] = on_embedded_cluster(publish(rows, url), count)
            else:
                results[way] = as_spark_job(spark, rows)
            print(f"{way}: {time.perf_counter() - begin:.1f} s")
        if chosen.publish and "published" not in ways:
            publish(rows, chosen.publish)
    first = results[ways[0]]
    differing = [way for way in ways if results[way] != first]
    for row in sorted(first["carriers"].values(), key=lambda row: -row[4] / row[2]):
        print(
            f"{row[1]:<28} {row[4] / row[2]:+6.1f} minutes on average, {row[3]:>6} of {row[2]:>6} late, {row[5]} at worst"
        )
    if chosen.chart:
        chosen.chart.write_text(chart(first), encoding="utf-8")
        print(f"drawn: {chosen.chart}")
    if chosen.json:
        chosen.json.write_text(json.dumps(first), encoding="utf-8")
    print(f"DIFFERENT: {', '.join(differing)}" if differing else f"the same by {', '.join(ways)}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
