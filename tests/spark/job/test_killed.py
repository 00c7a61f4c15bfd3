"""Spark's Python workers are killed from outside, at random moments: every row is counted once all the same."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from multilang import TopologyBuilder
from spark_bridge.job import run_topology
from tests.soak import SOAK
from tests.spark.job.components import Count, Split, Sums, Words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 20 if SOAK else 2
KILLS = 3  # in one run: a task that failed four times is given up by Spark
SENTENCES = [f"word{n % 97} other{n % 13} the moon" for n in range(40_000)]


def children_of(parents: set[int]) -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) in parents and fields[0] != "Z":
                found.add(int(name))
    return found


class Killer(Thread):
    """Kills Python workers of one JVM, one after the other, after random pauses."""

    def __init__(self, jvm: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.jvm = jvm
        self.rng = random.Random(seed)
        self.over = Event()
        self.killed = 0

    def run(self) -> None:
        while self.killed < KILLS and not self.over.wait(self.rng.uniform(0.02, 0.6)):
            daemons = children_of({self.jvm})
            workers = sorted(children_of(daemons))
            if workers:
                try:
                    os.kill(self.rng.choice(workers), signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    pass


@pytest.mark.soak
def test_workers_killed_at_random_cost_nothing_but_time(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=3).fields_grouping("split", "word")
    builder.set_bolt("sums", Counted, parallelism=2).fields_grouping("count", "word")
    topology = builder.build("killed")
    rdd = spark.sparkContext.parallelize(SENTENCES, 4)
    due = Counter(word for sentence in SENTENCES for word in sentence.split())
    killed = 0
    for seed in range(RUNS):
        killer = Killer(spark.sparkContext._gateway.proc.pid, seed)
        killer.start()
        try:
            with run_topology(topology, {"sentences": rdd}, spark) as result:
                counted = {key: tuples for key, _, tuples in result.rdd("sums").collect()}
        finally:
            killer.over.set()
            killer.join()
        killed += killer.killed
        assert counted == due
        assert (result.acked, result.lost, result.rounds) == (len(SENTENCES), 0, 1)
        assert result.counters["count"].executed == due.total()
    assert killed


class Counted(Sums):
    def process(self, tup):
        sums = self.sums.setdefault(tup["word"], [0, 0])
        sums[0] += tup["count"]
        sums[1] += 1
