"""The cost of partition sources on an embedded cluster: `python -m benchmarks.spark_sources`.

The same word count, in one process, reads the same sentences from a list in memory, from an RDD (live) and from
published files. Rounds are interleaved in alternating order; ratios are taken within a round and shown as median, least
and greatest. Every count is checked. Then the time to the first tuple is measured, in a session that has run nothing
yet.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, LocalCluster, Spout, TopologyBuilder
from spark_bridge import ListSource, PartitionSpout, RDDSource, publish, serve
from spark_bridge.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST = {"live": 0.8, "published": 0.9}
FIRST_TUPLE_SECS = 1.0
WORDS = [f"{word}{n}" for n in range(50) for word in ("storm", "spark", "spout", "bolt", "tuple")]
PARTITIONS = 4


def sentence(n: int) -> str:
    """Return eight words, the same for the same number."""
    return " ".join(WORDS[(n * 7 + k * 31) % len(WORDS)] for k in range(8))


class ListSpout(Spout):
    """The simplest reliable spout over a list, with which the sources are compared."""

    output_fields = ["value"]

    def __init__(self, rows: list[str]) -> None:
        self.rows = rows

    def __deepcopy__(self, memo: object) -> ListSpout:
        return ListSpout(self.rows)

    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.at = 0
        self.pending: dict[int, str] = {}
        self.failed: list[int] = []

    def next_tuple(self) -> None:
        if self.failed:
            number = self.failed.pop()
        elif self.at < len(self.rows):
            number = self.at
            self.at += 1
        else:
            return
        row = self.pending[number] = self.rows[number]
        self.emit([row], number)

    def ack(self, tup_id: int) -> None:
        self.pending.pop(tup_id, None)

    def fail(self, tup_id: int) -> None:
        self.failed.append(tup_id)

    def exhausted(self) -> bool:
        return self.at == len(self.rows) and not self.pending


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Any) -> None:
        for word in tup["value"].split():
            self.emit([word])


class Count(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.counts: Counter[str] = Counter()

    def process(self, tup: Any) -> None:
        self.counts[tup[0]] += 1


def topology(spout: Spout) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("sentences", spout)
    builder.set_bolt("split", Split).shuffle_grouping("sentences")
    builder.set_bolt("count", Count).fields_grouping("split", "word")
    return builder.build("sources", conf={"topology.max.spout.pending": 1000, "topology.message.timeout.secs": 600})


def run(spout: Spout, due: Counter[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of this process, from the submission until the topology is drained."""
    with LocalCluster(mode="inprocess") as cluster:
        begin, cpu = time.perf_counter(), time.process_time()
        running = cluster.submit(topology(spout))
        running.wait(timeout=900)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        [count] = [task.instance for task in running.tasks if task.component == "count"]
        if count.counts != due:
            raise SystemExit(f"{type(spout).__name__}: wrong counts")
    return wall, cpu


def rates(sentences: int, rounds: int) -> dict[str, Any]:
    """Return, per way and round, sentences per second, and CPU microseconds of this process per sentence."""
    rows = [sentence(n) for n in range(sentences)]
    due = Counter(word for row in rows for word in row.split())
    step = -(-sentences // PARTITIONS)
    parts = [rows[n : n + step] for n in range(0, sentences, step)]
    found: dict[str, list[tuple[float, float]]] = {}
    with session("local[2]") as spark, tempfile.TemporaryDirectory() as folder:
        rdd = spark.sparkContext.range(sentences, numSlices=PARTITIONS).map(sentence)
        published = publish(rdd, f"{folder}/published")
        for number in range(rounds + 1):
            live = RDDSource(rdd)
            served = serve(rdd)
            ways: dict[str, Spout] = {
                "list": ListSpout(rows),
                "list source": PartitionSpout(ListSource(parts)),
                "live": PartitionSpout(live),
                "served": PartitionSpout(served.source),
                "published": PartitionSpout(published),
            }
            for way in list(ways)[:: 1 if number % 2 else -1]:
                measured = run(ways[way], due)
                if number:  # the first round warms Spark's JVM up
                    found.setdefault(way, []).append(measured)
            live.close()
            served.close()
    return {
        way: {
            "rate": [sentences / wall for wall, _ in measured],
            "cpu": [cpu / sentences * 1e6 for _, cpu in measured],
            "ratio": [base / wall for (wall, _), (base, _) in zip(measured, found["list"], strict=True)],
        }
        for way, measured in found.items()
    }


def measured_apart(what: str) -> float:
    """Return what the function ``what`` of this file returns, in seconds, in a process of its own."""
    program = f"from benchmarks.spark_sources import {what}; print({what}())"
    root = Path(__file__).parents[1]
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env=environ, capture_output=True, text=True, check=True
    )
    return float(shown.stdout.split()[-1])


def first_tuple() -> float:
    """Return the seconds from an RDD to its first tuple in a topology, in a fresh session of ours."""
    with session("local[2]") as spark:
        return until_first_tuple(spark)


def first_tuple_cold() -> float:
    """Return the same for a session that Spark made, whose Python has not been started."""
    return until_first_tuple(own_session())


def first_job_cold() -> float:
    """Return the seconds that Spark takes for the smallest job that needs Python, in a session that Spark made."""
    sc = own_session().sparkContext
    begin = time.perf_counter()
    sc.parallelize([1, 2], 2).map(str).collect()
    return time.perf_counter() - begin


def own_session() -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()


def until_first_tuple(spark: SparkSession) -> float:
    rdd = spark.sparkContext.range(1_000_000, numSlices=PARTITIONS).map(sentence)
    begin = time.perf_counter()
    source = RDDSource(rdd)
    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(topology(PartitionSpout(source)))
        running.wait(until=lambda run: run.counters["sentences"].emitted, timeout=60)
        seconds = time.perf_counter() - begin
    source.close()
    return seconds


def spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_sources", description=__doc__.partition("\n")[0])
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    chosen = parser.parse_args()
    found = rates(chosen.sentences, chosen.rounds)
    print(f"word count of {chosen.sentences:,} sentences, acked, {chosen.rounds} rounds; median (least to greatest)\n")
    print("| source | sentences/s | of the list | CPU of this process, us each |\n| --- | --- | --- | --- |")
    for way, figures in found.items():
        print(f"| {way} | {spread(figures['rate'], 0)} | {spread(figures['ratio'], 2)} | {spread(figures['cpu'], 1)} |")
    waits: dict[str, list[float]] = {"first_tuple": [], "first_tuple_cold": [], "first_job_cold": []}
    for _ in range(3):
        for what, taken in waits.items():
            taken.append(measured_apart(what))
    seconds, cold, job = waits.values()
    print(f"\nfirst tuple after {spread(seconds, 2)} s")
    print(
        f"in a session of Spark's own making, before any other job: {spread(cold, 2)} s; "
        f"the smallest job that needs Python: {spread(job, 2)} s\n"
    )
    met = True
    for way, least in LEAST.items():
        ratio = statistics.median(found[way]["ratio"])
        met &= ratio >= least
        print(f"{'PASS' if ratio >= least else 'FAIL'}: {way} makes {ratio:.2f} of a list's rate; at least {least}")
    met &= statistics.median(seconds) < FIRST_TUPLE_SECS
    print(
        f"{'PASS' if statistics.median(seconds) < FIRST_TUPLE_SECS else 'FAIL'}: first tuple within {FIRST_TUPLE_SECS:g} s"
    )
    print(f"load average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if chosen.json:
        chosen.json.write_text(json.dumps({"rates": found, "waits": waits}, indent=1) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
