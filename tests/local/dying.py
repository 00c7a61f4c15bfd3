"""A topology whose bolts end in every way that a process can, on tuples that are drawn from a seed."""

from __future__ import annotations

import os
import signal
import sys
import time
from random import Random

from multilang.component import Bolt, Spout
from multilang.topology import TopologyBuilder


def die(way):
    """End this process."""
    if way == "raise":
        raise ZeroDivisionError("nothing by naught")
    if way == "leave":
        sys.exit(3)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "orphan" and not os.fork():
        time.sleep(3)  # with the pipes of its parent, whose end therefore no pipe tells
    os._exit(4)


WAYS = ("raise", "leave", "exit", "kill", "orphan")


class Watched(Spout):
    """Emits (n, attempt) until each n was acked. Dies of an ack or fail of what is not under way."""

    output_fields = ["n", "attempt"]

    def initialize(self, conf, context):
        self.due = [(n, 0) for n in reversed(range(conf["test.numbers"]))]
        self.under_way = {}

    def next_tuple(self):
        if self.due:
            n, attempt = self.due.pop()
            assert n not in self.under_way
            self.under_way[n] = attempt
            self.emit([n, attempt], tup_id=n)

    def ack(self, tup_id):
        del self.under_way[tup_id]

    def fail(self, tup_id):
        self.due.append((tup_id, self.under_way.pop(tup_id) + 1))

    def exhausted(self):
        return not self.due


class Dies(Bolt):
    """Passes tuples on, and dies of those that its seed says."""

    output_fields = ["n", "attempt"]

    def initialize(self, conf, context):
        self.seed = f"{conf['test.seed']} {context.component}"
        self.ways = conf["test.ways"]
        self.share = conf["test.share"]
        self.attempts = conf["test.attempts"]  # the first ones with a number, of which it may die

    def process(self, tup):
        n, attempt = tup.values
        rng = Random(f"{self.seed} {n} {attempt}")
        if attempt < self.attempts and rng.random() < self.share:
            die(rng.choice(self.ways))
        self.emit([n, attempt], anchors=[tup])
        self.ack(tup)


builder = TopologyBuilder()
builder.set_spout("watched", Watched)
builder.set_bolt("first", Dies, parallelism=2).shuffle_grouping("watched")
builder.set_bolt("second", Dies).shuffle_grouping("first")
dying = builder.build("dying")

builder = TopologyBuilder()
builder.set_spout("watched", Watched)
builder.set_bolt("only", Dies).shuffle_grouping("watched")
poisoned = builder.build("poisoned")
