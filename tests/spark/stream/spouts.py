"""Spouts for Spark to read."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import ClassVar

from multilang import BasicBolt, ReliableSpout, Spout, TopologyBuilder
from multilang.state import ReplayableSpout


def die_once(conf, where):
    """kill -9, the first time that ``test.die`` names this place."""
    die = conf.get("test.die")
    if die and die[0] == where and not os.path.exists(die[1]):
        Path(die[1]).touch()
        os.kill(os.getpid(), signal.SIGKILL)


class Queue(ReliableSpout):
    """The files of ``test.queue``, each until it is acked: what a process has that was killed comes again."""

    output_fields = ["item"]

    def initialize(self, conf, context):
        self.conf = conf
        self.folder = Path(conf["test.queue"])
        self.seen = set()

    def next_tuple(self):
        items = sorted(each.name for each in self.folder.iterdir() if each.name not in self.seen)
        for item in items[:7]:
            if item == "00050":
                die_once(self.conf, "next_tuple")
            self.seen.add(item)
            self.emit([item], tup_id=item)

    def acked(self, tup_id):
        if tup_id == "00055":
            die_once(self.conf, "ack")
        (self.folder / tup_id).unlink()

    def exhausted(self):
        return not self.under_way and not any(self.folder.iterdir())


class Numbers(ReplayableSpout):
    """Up to ``test.numbers``, by position; each task has its share."""

    output_fields = ["n", "value"]

    def initialize(self, conf, context):
        self.end = conf.get("test.numbers", 5)
        self.n, self.step = context.task_index, len(context.tasks(context.component))

    def next_tuple(self):
        if self.n < self.end:
            n, self.n = self.n, self.n + self.step
            self.emit([n, [None, "text", {"a": 1}, 2.5, True][n % 5]], tup_id=n)

    def position(self):
        return self.n

    def seek(self, position):
        self.n = position

    def exhausted(self):
        return self.n >= self.end


class DiesBetween(Numbers):
    """The same; it dies behind 3 and behind 7, once each, with an emit that its position is beyond."""

    died: ClassVar[set[int]] = set()

    def next_tuple(self):
        n = self.n
        super().next_tuple()
        if n in {3, 7} - self.died:
            self.died.add(n)
            raise ConnectionError("the source is away")


class Plain(Spout):
    """Emits without ids, on two streams."""

    output_streams = {"default": ["n"], "odd": ["n", "half"]}

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < 20:
            self.emit([self.n])
            if self.n % 2:
                self.emit([self.n, self.n / 2], stream="odd")
            self.n += 1


class Late(Spout):
    """Emits first on another stream than the one that is read; it says when it is at its end, and would go on."""

    output_streams = {"default": ["n"], "other": ["n"]}

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        self.emit([self.n], stream="other" if self.n < 40 else None)
        self.n += 1

    def exhausted(self):
        return self.n >= 50


class Slow(Spout):
    """Up to ``test.numbers``, or without an end: a tuple whenever it is asked, which takes a while."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = conf.get("test.numbers", -1)

    def next_tuple(self):
        if self.left:
            time.sleep(0.01)
            self.emit([0])
            self.left -= 1

    def exhausted(self):
        return False


class Silent(Spout):
    def next_tuple(self):
        """It has no streams."""


class Waiting(Spout):
    """Has nothing yet, and is asked again; with ``test.blocks`` it waits for something itself."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.asked = Path(conf["test.asked"])
        self.blocks = conf.get("test.blocks", False)

    def next_tuple(self):
        self.asked.write_text(str(os.getpid()))
        while self.blocks:
            signal.pause()

    def exhausted(self):
        return False


class Broken(Spout):
    output_fields = ["n"]

    def next_tuple(self):
        raise ValueError("no more of this")


plain = Plain()

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers, parallelism=3)
topology = builder.build("numbers")


class Echo(BasicBolt):
    output_fields = ["n", "kind", "value"]

    def process(self, tup):
        self.emit([tup["n"], type(tup["value"]).__name__, tup["value"]])


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers, parallelism=2)
builder.set_bolt("echo", Echo).shuffle_grouping("numbers")
echo = builder.build("echo")
