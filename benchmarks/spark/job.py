"""Word count on Spark, by hand and by run_topology.

`python job.py rates|growth ROUNDS SENTENCES...` prints a line of JSON for each run.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections import Counter
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster")]

import processes  # noqa: E402
import topologies  # noqa: E402
from sentences import sentence  # noqa: E402

from spark_bridge.job import run_topology  # noqa: E402
from spark_bridge.session import session  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable


def written(folder: str, sentences: int) -> str:
    path = os.path.join(folder, f"{sentences}.txt")
    with open(path, "w") as file:
        file.writelines(f"{sentence(n)}\n" for n in range(sentences))
    return path


class Works:
    """Ways to count the words of a file. Each returns the totals, or None if it gives none."""

    def __init__(self, spark: Any, path: str, sentences: int) -> None:
        self.spark = spark
        self.sc = spark.sparkContext
        self.path = path
        self.sentences = sentences

    def lines(self) -> Any:
        return self.sc.textFile(self.path, 2)

    def by_key(self) -> Any:
        words = self.lines().flatMap(lambda line: line.split(" ")).map(lambda word: (word, 1))
        return dict(words.reduceByKey(add).collect())

    def by_partition(self) -> Any:
        def count(lines: Any) -> Any:
            counts: Counter[str] = Counter()
            for line in lines:
                counts.update(line.split(" "))
            return counts.items()

        return dict(self.lines().mapPartitions(count).reduceByKey(add).collect())

    def totals(self) -> Any:
        return self._topology(topologies.totals, None)

    def running(self) -> Any:
        return self._topology(topologies.running, [])

    def kept(self) -> Any:
        return self._topology(topologies.running, ["count"])

    def _topology(self, topology: Any, outputs: Any) -> Any:
        with run_topology(topology, {"sentences": self.lines()}, self.spark, outputs=outputs) as result:
            assert (result.acked, result.lost) == (self.sentences, 0), result
            assert result.counters["count"].executed >= 10 * self.sentences, result
            return dict(result.rdd("count").collect()) if outputs is None else None


def timed(work: Callable[[], Any], due: Any) -> dict[str, Any]:
    cpu, begin = processes.cpu_seconds(), time.perf_counter()
    found = work()
    wall = time.perf_counter() - begin
    return {"wall": wall, "cpu": processes.cpu_seconds() - cpu, "right": found is None or found == due}


def rates(spark: Any, folder: str, rounds: int, sentences: int) -> None:
    works = Works(spark, written(folder, sentences), sentences)
    due = works.by_partition()
    names = ["by_key", "totals", "by_partition", "running", "kept"]
    for n in range(rounds + 1):
        for name in names if n % 2 else names[::-1]:
            said = {"work": name, "sentences": sentences, **timed(getattr(works, name), due)}
            if n:  # the first round warms up
                print(json.dumps(said), flush=True)


def growth(spark: Any, folder: str, rounds: int, sizes: list[int]) -> None:
    paths = {size: written(folder, size) for size in sizes}
    for n in range(rounds + 1):
        for size in sizes:
            works = Works(spark, paths[size], size)
            said = {"work": "totals", "sentences": size, **timed(works.totals, None)}
            gc.collect()
            spark._jvm.System.gc()
            runtime = spark._jvm.Runtime.getRuntime()
            said |= {
                "right": True,  # timed() had nothing to compare with, but the acks and executions are checked
                "driver_mib": processes.resident_mib(),
                "heap_mib": (runtime.totalMemory() - runtime.freeMemory()) / 2**20,
            }
            if n:
                print(json.dumps(said), flush=True)


def main() -> None:
    what, rounds, *sizes = sys.argv[1], *map(int, sys.argv[2:])
    with (
        tempfile.TemporaryDirectory(prefix="multilang-bench-spark-") as folder,
        session("local[2]", "benchmark", {"spark.local.dir": folder, "spark.driver.memory": "1g"}) as spark,
    ):
        if what == "rates":
            rates(spark, folder, rounds, sizes[0])
        else:
            growth(spark, folder, rounds, sizes)


if __name__ == "__main__":
    main()
