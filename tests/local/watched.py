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


def hold(conf, method):
    """Return when the file of conf test.until is there, in the method of conf test.held."""
    while conf["test.held"] == method and not os.path.exists(conf["test.until"]):
        time.sleep(0.01)


class HeldSpout(Numbers):
    def initialize(self, conf, context):
        super().initialize(conf, context)
        hold(conf, "initialize")

    def next_tuple(self):
        hold(self.conf, "next_tuple")
        super().next_tuple()

    def ack(self, tup_id):
        hold(self.conf, "ack")
        super().ack(tup_id)


class HeldBolt(BasicBolt):
    def process(self, tup):
        hold(self.conf, "process")
        self.set_timer(0, self.flush)

    def flush(self):
        hold(self.conf, "timer HeldBolt.flush")


def _count(self, tup):
    self.metrics.counter("tuples").inc()
    self.metrics.counter("sum").inc(tup["n"])
    self.metrics.gauge("last").set(tup["n"])
    self.metrics.timer("taken").record(0.5)


class Counting(BasicBolt):
    """Has metrics of its own."""

    output_fields = ["n"]

    def process(self, tup):
        _count(self, tup)
        self.emit([tup["n"]])


class CountingState(StatefulBasicBolt):
    """Has some, too, inside of what keeps its state."""

    def init_state(self, state):
        self.metrics.counter("begun").inc()

    def process(self, tup):
        _count(self, tup)


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
counting = _numbers(("counting", Counting), ("state", CountingState))


def _held():
    builder = TopologyBuilder()
    builder.set_spout("spout", HeldSpout)
    builder.set_bolt("bolt", HeldBolt).shuffle_grouping("spout")
    return builder.build("held", {"test.numbers": 1})


held = _held()
summed = _numbers(("sum", Sum), conf={"topology.state.checkpoint.interval.ms": 50})
faulty = _numbers(("faulty", Faulty), conf={"multilang.exchange": "tuple"})
FAULTS = TUPLES - 1
