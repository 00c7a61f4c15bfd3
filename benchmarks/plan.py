"""Checks what ``multilang plan`` says: the CPUs planned from a run with one task against those used with one, two and four.

    python -m benchmarks.plan [ROUNDS]

The word count runs on the embedded cluster with processes. Its costs are measured with one task of each bolt, in blocks and with
tuples that travel alone, between which the plan lies; then the same sentences go through 1, 2 and 4 tasks of each, and the CPU time of all
components for a sentence is compared with the nearer end. The exit status is 1 if a median is off by more than a quarter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.exchange.word_count import Count, Sentences, Split
from multilang import TopologyBuilder
from multilang.local.measured import measure
from multilang.runtime.sizing import size

if TYPE_CHECKING:
    from multilang import Topology
    from multilang.runtime.sizing import Costs

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


def measured(tasks: int) -> Costs:
    """Return the costs with so many tasks."""
    with tempfile.TemporaryDirectory() as folder:
        conf = {"bench.sentences": SENTENCES, "bench.rate": 0, "bench.result": str(Path(folder, "result"))}
        return measure(built(tasks), 120, conf)


def cpus(costs: Costs) -> float:
    """Return the CPUs for 10,000 sentences a second, as they were measured."""
    return size(replace(costs, alone=None), 10_000).cpus


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="runs with each number of tasks")
    rounds = parser.parse_args().rounds
    ratios: dict[int, list[float]] = {tasks: [] for tasks in TASKS}
    for number in range(rounds):
        planned = measured(1)
        least = cpus(planned)
        # In blocks of many tuples, more tasks change little, so that nothing is measured alone.
        most = least if planned.alone is None else cpus(planned.alone)
        for tasks in TASKS if number % 2 == 0 else TASKS[::-1]:
            used = cpus(measured(tasks))
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
