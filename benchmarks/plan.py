"""Checks what ``multilang plan`` says: the CPUs planned from a run with one task against those used with one, two and four.

    python -m benchmarks.plan [ROUNDS]

The word count runs on the embedded cluster with processes. Its costs are measured with one task of each bolt, in blocks of what comes of
one tuple and with tuples that travel alone, between which the plan lies; then the same sentences go through 1, 2 and 4 tasks of each, and the CPU time of all
components for a sentence is compared with the nearer end. The exit status is 1 if a median is off by more than a quarter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.exchange.word_count import Count, Sentences, Split
from multilang import TopologyBuilder
from multilang.local.sizing import measure

if TYPE_CHECKING:
    from multilang import Topology

TASKS = (1, 2, 4)
SENTENCES = 12_000
MOST = 0.25  # by which a plan may be off


def built(tasks: int) -> Topology:
    """Return the word count with so many tasks of each bolt."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, tasks).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, tasks).fields_grouping("split", "word")
    return builder.build("word-count", conf={"topology.max.spout.pending": 1000})


def cpus(tasks: int, way: str = "root") -> float:
    """Return the measured CPUs of so many tasks for 10,000 sentences a second, whose tuples travel in a way of multilang.exchange."""
    with tempfile.TemporaryDirectory() as folder:
        result = str(Path(folder, "result"))
        conf = {"bench.sentences": SENTENCES, "bench.rate": 0, "bench.result": result, "multilang.exchange": way}
        costs, _ = measure(built(tasks).with_conf(conf), 120)
    return sum(cost.cpus(10_000) for cost in costs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="runs with each number of tasks")
    rounds = parser.parse_args().rounds
    ratios: dict[int, list[float]] = {tasks: [] for tasks in TASKS}
    for number in range(rounds):
        least, most = cpus(1), cpus(1, "tuple")
        for tasks in TASKS if number % 2 == 0 else TASKS[::-1]:
            used = cpus(tasks)
            ratios[tasks].append(used / min(max(used, least), most))
            print(
                f"{tasks} tasks: planned {least:.3f} to {most:.3f} CPUs for 10,000 sentences/s, used {used:.3f}",
                flush=True,
            )
    wrong = False
    for tasks, found in ratios.items():
        middle = statistics.median(found)
        wrong = wrong or abs(middle - 1) > MOST
        print(f"{tasks} tasks: used {middle:.2f} of the nearest planned CPUs ({min(found):.2f} to {max(found):.2f})")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
