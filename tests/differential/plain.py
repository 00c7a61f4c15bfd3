"""Pipelines whose answer plain Python knows. This module imports nothing of the tests: it also goes to Storm's workers.

Every component fills the same dict again for each tuple, and changes what it got and what it emitted afterwards. Steps may
fail a tuple the first time, and may emit without anchors; so may the spout.
"""

from __future__ import annotations

import json
import os
from collections import Counter

from multilang import Bolt, ReliableSpout, Spout, StatefulBasicBolt, TopologyBuilder

KEYS = 3
RECORD = "test.record"


class _Rows:
    output_fields = ["key", "n", "row"]

    def __init__(self, rows):
        self.rows = rows

    def initialize(self, conf, context):
        self.left = list(numbers(self.rows, context.task_index))
        self.row = {}

    def next_tuple(self):
        if self.left:
            n = self.left.pop()
            self.row.clear()
            self.row.update(n=n, by=[])
            self.emit([n % KEYS, n, self.row])
            self.row["by"].append("the spout, later")

    def exhausted(self):
        return not self.left


class Reliable(_Rows, ReliableSpout):
    replay_delay_secs = 0.01


class Plain(_Rows, Spout):
    """Emits without message ids."""


class Step(Bolt):
    """Adds its name to a row."""

    output_fields = ["key", "n", "row"]

    def __init__(self, name, anchored, fails):
        self.name, self.anchored, self.fails = name, anchored, fails

    def initialize(self, conf, context):
        self.seen, self.row = set(), {}

    def process(self, tup):
        key, n, row = tup.values
        if self.fails and is_failed(n) and n not in self.seen:
            self.seen.add(n)
            self.fail(tup)
            return
        self.row.clear()
        self.row.update(row, by=[*row["by"], self.name])
        self.emit([key, n, self.row], anchors=[tup] if self.anchored else [])
        self.row["by"].append("a step, later")
        row["by"].append("who got it")
        self.ack(tup)


class Counts(StatefulBasicBolt):
    """Writes down each row, and how many of its key there were."""

    output_fields = []

    def initialize(self, conf, context):
        self.record = conf[RECORD]

    def init_state(self, state):
        self.state = state

    def process(self, tup):
        key, _, row = tup.values
        self.state.put(key, self.state.get(key, 0) + 1)
        # Opened each time: on Spark the object goes on in another process with each round.
        with open(self.record, "a") as record:
            record.write(json.dumps([row["n"], row["by"], key, self.state.get(key)]) + "\n")


def numbers(rows, task):
    return range(1000 * task, 1000 * task + rows)


def is_failed(n):
    return n % 5 == 1


def built(shape, record):
    """Return the topology of a description, which writes down what comes out of it."""
    builder = TopologyBuilder()
    spout = (Reliable if shape["reliable"] else Plain)(shape["rows"])
    builder.set_spout("rows", spout, parallelism=shape["tasks"])
    before = "rows"
    for n, (tasks, anchored, fails) in enumerate(shape["steps"]):
        name = f"step{n}"
        builder.set_bolt(name, Step(name, anchored, fails), parallelism=tasks).shuffle_grouping(before)
        before = name
    for name in ("counts", "others"):
        builder.set_bolt(name, Counts, parallelism=2, conf={RECORD: f"{record}.{name}"}).fields_grouping(before, "key")
    conf = {"topology.state.provider": "memory", "topology.state.checkpoint.interval.ms": 100}
    return builder.build("plain", {**conf, "multilang.exchange": "root"})  # what fails takes no other with it


def worked_out(shape):
    """Return what each of both bolts at the end writes down: which rows, and which counts."""
    rows = [n for task in range(shape["tasks"]) for n in numbers(shape["rows"], task)]
    is_replayed = shape["reliable"]
    for _, anchored, fails in shape["steps"]:
        rows = [n for n in rows if is_replayed or not fails or not is_failed(n)]
        is_replayed = is_replayed and anchored
    by = [f"step{n}" for n in range(len(shape["steps"]))]
    return Counter(str([n, by]) for n in rows), Counter(
        str([key, count]) for key in range(KEYS) for count in range(1, sum(n % KEYS == key for n in rows) + 1)
    )


def written(record):
    """Return what each of them has written, as ``worked_out`` does."""
    found = []
    for name in ("counts", "others"):
        lines = []
        if os.path.exists(f"{record}.{name}"):
            with open(f"{record}.{name}") as file:
                lines = [json.loads(line) for line in file]
        found.append((Counter(str(line[:2]) for line in lines), Counter(str(line[2:]) for line in lines)))
    return found


REBOUND_SCRIPT = """
from multilang import BasicBolt, LocalCluster, TopologyBuilder
from tests.differential.plain import Plain, numbers

FACTOR = 1

class Times(BasicBolt):
    output_fields = ["n"]
    plus = 1
    def __init__(self, by):
        self.by = by
    def process(self, tup):
        self.emit([FACTOR * self.by * tup["n"] + self.plus])

def build(by):
    builder = TopologyBuilder()
    builder.set_spout("rows", Plain(3))
    builder.set_bolt("times", Times(by)).shuffle_grouping("rows")
    return builder.build("times")

topology = build(2)
if __name__ == "__main__":
    by = 2
    {then}
    wanted = [FACTOR * by * n + Times.plus for n in numbers(3, 0)]
    for mode in ("simulated", "inprocess", "process"):
        try:
            with LocalCluster(mode) as cluster:
                run = cluster.submit(topology, capture=["times"])
                run.wait(timeout=300)
                print("right" if sorted(tup["n"] for tup in run.captured("times")) == wanted else "wrong")
        except Exception as error:
            print(str(error).replace("\\n", " "))
"""
