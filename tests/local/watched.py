"""Topologies whose status is looked at, at module level, where a task's process can import them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from multilang import BasicBolt, StatefulBasicBolt, TopologyBuilder
from multilang.topology import ShellBolt
from tests.local.topologies import Count, Numbers, Sentences, Split

PAUSE = 0.02  # seconds that the slow bolt takes for a tuple, and its spout's tuples in all
TUPLES = 30


class Sleeps(BasicBolt):
    """Takes its time, and hands on what came."""

    output_fields = ["n"]

    def process(self, tup):
        time.sleep(PAUSE)
        self.emit([tup["n"]])


class Stuck(BasicBolt):
    """Works on its first tuple until the file of conf test.until is there."""

    def process(self, tup):
        while not os.path.exists(self.conf["test.until"]):
            time.sleep(0.01)

    def initialize(self, conf, context):
        self.conf = conf


class Drop(BasicBolt):
    def process(self, tup):
        pass


class Sum(StatefulBasicBolt):
    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put("sum", (self.state.get("sum") or 0) + tup["n"])


class Faulty(BasicBolt):
    """Raises one kind of exception for the first number, and another one for each of the others, once each."""

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        if tup["n"] in self.seen:
            return
        self.seen.add(tup["n"])
        if tup["n"] == 0:
            raise ZeroDivisionError("none")
        raise KeyError(tup["n"])


def _numbers(*bolts, conf=None):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    before = "numbers"
    for id, bolt in bolts:
        builder.set_bolt(id, bolt).shuffle_grouping(before)
        before = id
    return builder.build("watched", {"test.numbers": TUPLES, **(conf or {})})


def _words():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, 2).fields_grouping("split", "word")
    return builder.build("words")


words = _words()
slow = _numbers(("sleeps", Sleeps), ("drop", Drop))
stuck = _numbers(("stuck", Stuck), conf={"test.numbers": 1})
foreign = _numbers(
    ("foreign", ShellBolt([sys.executable, str(Path(__file__).parent / "plain_bolt.py")], output_fields=["n", "task"]))
)
summed = _numbers(("sum", Sum), conf={"topology.state.checkpoint.interval.ms": 50})
faulty = _numbers(("faulty", Faulty), conf={"multilang.exchange": "tuple"})
FAULTS = TUPLES - 1
