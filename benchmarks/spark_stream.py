"""The cost of a topology as a streaming query: `python -m benchmarks.spark_stream`.

Word count over files of sentences, a file a batch, in one session on local[2]: by a stateful topology whose counts are
in SQLite, by Spark's own `applyInPandasWithState`, and by a topology without state, which is compared with
`run_topology` over the same rows. Rounds are interleaved in alternating order. The times of batches are compared,
without the first batch of each query. Every count is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from multilang import BasicBolt, Spout, StatefulBasicBolt, TopologyBuilder
from multilang.state.admin import StoredStates
from spark_bridge.job import run_topology
from spark_bridge.job.state import conf_of
from spark_bridge.session import session
from spark_bridge.stream import stream_topology

from .spark_sources import sentence, spread

LEAST = {"stateful": ("spark", 0.7), "plain": ("job", 0.8)}


class Sentences(Spout):
    output_fields = ["value"]


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Any) -> None:
        self.emit_many([[word] for word in tup.values[0].split()])


class Kept(StatefulBasicBolt):
    def init_state(self, state: Any) -> None:
        self.counts = state

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counts.put(word, self.counts.get(word, 0) + 1)


class Counted(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1


def topology(count: type) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", count, parallelism=2).fields_grouping("split", "word")
    return builder.build("words")


class Ways:
    """Ways to count. Each returns the seconds of its batches, without the first one."""

    def __init__(self, spark: Any, folder: Path, batches: int, rows: int) -> None:
        self.spark = spark
        self.folder = folder
        self.rows = rows
        self.due: Counter[str] = Counter()
        self.runs = 0
        for batch in range(batches):
            lines = [sentence(batch * rows + n) for n in range(rows)]
            for line in lines:
                self.due.update(line.split())
            frame = spark.createDataFrame([(line,) for line in lines], "value string")
            frame.repartition(2).write.mode("append").parquet(f"{folder}/batch={batch:03}")
        self.paths = sorted(str(path) for path in folder.glob("batch=*"))

    def fresh(self) -> str:
        self.runs += 1
        return str(self.folder / f"run-{self.runs}")

    def lines(self) -> Any:
        """Return the streaming DataFrame, of which a batch is the two files of one folder."""
        reader = self.spark.readStream.schema("value string").option("maxFilesPerTrigger", 2)
        return reader.parquet(f"{self.folder}/batch=*")

    def seconds(self, query: Any) -> list[float]:
        return [each["batchDuration"] / 1000 for each in query.recentProgress if each["numInputRows"]][1:]

    def stateful(self) -> list[float]:
        place = self.fresh()
        query = stream_topology(
            topology(Kept), {"sentences": self.lines()}, checkpoint=f"{place}/c", state=f"{place}/s", trigger=_ONCE
        )
        query.wait()
        states = StoredStates(topology(Kept), conf_of(f"{place}/s"))
        counts = {
            line["key"]: line["value"] for line in states.export() if line.get("namespace", "").startswith("count")
        }
        states.close()
        if counts != self.due:
            raise SystemExit("stateful: wrong counts")
        return self.seconds(query.query)

    def plain(self) -> list[float]:
        acked = []
        query = stream_topology(
            topology(Counted),
            {"sentences": self.lines()},
            checkpoint=f"{self.fresh()}/c",
            outputs=[],
            each_batch=lambda result, _: acked.append(result.acked),
            trigger=_ONCE,
        )
        query.wait()
        if acked != [self.rows] * len(self.paths):
            raise SystemExit(f"plain: {acked} rows acked")
        return self.seconds(query.query)

    def job(self) -> list[float]:
        found = []
        for path in self.paths:
            begin = time.perf_counter()
            rows = self.spark.read.schema("value string").parquet(path)
            with run_topology(topology(Counted), {"sentences": rows}, self.spark, outputs=[]) as result:
                if result.acked != self.rows:
                    raise SystemExit(f"job: {result.acked} rows acked")
            found.append(time.perf_counter() - begin)
        return found[1:]

    def spark_(self) -> list[float]:
        from pyspark.sql import functions as f

        def count(key: Any, frames: Any, state: Any) -> Any:
            import pandas

            total = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
            state.update((total,))
            yield pandas.DataFrame({"word": [key[0]], "count": [total]})

        counts: dict[str, int] = {}

        def keep(batch: Any, _: int) -> None:
            counts.update({row[0]: row[1] for row in batch.collect()})

        words = self.lines().select(f.explode(f.split("value", " ")).alias("word"))
        counted = words.groupBy("word").applyInPandasWithState(
            count, "word string, count long", "count long", "update", "NoTimeout"
        )
        writer = counted.writeStream.foreachBatch(keep).outputMode("update").trigger(**_ONCE)
        query = writer.option("checkpointLocation", f"{self.fresh()}/c").start()
        query.awaitTermination()
        if counts != self.due:
            raise SystemExit("spark: wrong counts")
        return self.seconds(query)


_ONCE = {"availableNow": True}


def rates(batches: int, rows: int, rounds: int) -> dict[str, list[float]]:
    """Return, per way and round, sentences per second."""
    found: dict[str, list[float]] = {}
    settings = {"spark.sql.shuffle.partitions": "2"}
    with tempfile.TemporaryDirectory() as folder, session("local[2]", "stream", settings) as spark:
        ways = Ways(spark, Path(folder), batches, rows)
        calls = {"stateful": ways.stateful, "spark": ways.spark_, "plain": ways.plain, "job": ways.job}
        for number in range(rounds):
            for way in list(calls)[:: 1 if number % 2 else -1]:
                found.setdefault(way, []).append(rows / statistics.median(calls[way]()))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_stream", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    chosen = parser.parse_args()
    found = rates(chosen.batches, chosen.rows, chosen.rounds)
    print(f"word count, {chosen.rows:,} sentences a batch, {chosen.rounds} rounds; median (least to greatest)\n")
    print("| way | sentences/s |\n| --- | --- |")
    for way, figures in found.items():
        print(f"| {way} | {spread(figures, 0)} |")
    met = True
    for way, (peer, least) in LEAST.items():
        ratios = [ours / theirs for ours, theirs in zip(found[way], found[peer], strict=True)]
        met &= statistics.median(ratios) >= least
        verdict = "PASS" if statistics.median(ratios) >= least else "FAIL"
        print(f"{verdict}: {way} makes {spread(ratios, 2)} of {peer}'s rate; at least {least}")
    print(f"load average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
