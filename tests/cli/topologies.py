"""Small topologies that end well, and badly, for the command to run."""

from __future__ import annotations

import os
import sys
import time

from multilang import BasicBolt, Bolt, ReliableSpout, Spout, TopologyBuilder
from multilang.component import FailedException


class Numbers(ReliableSpout):
    output_fields = ["number"]
    count = 40
    replay_delay_secs = 0.0

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.left = list(range(self.count))

    def next_tuple(self):
        if self.left:
            number = self.left.pop(0)
            self.emit([number], tup_id=number)

    def exhausted(self):
        return not self.left


class Unreplayed(Spout):
    output_fields = ["number"]

    def initialize(self, conf, context):
        self.left = list(range(10))

    def next_tuple(self):
        if self.left:
            number = self.left.pop()
            self.emit([number], tup_id=number)

    def exhausted(self):
        return not self.left


class Endless(Spout):
    output_fields = ["number"]
    number = 0

    def next_tuple(self):
        self.number += 1
        self.emit([self.number], tup_id=self.number)

    def exhausted(self):
        return False


class Unreliable(Unreplayed):
    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop()])


class Remainder(BasicBolt):
    output_fields = ["remainder", "number"]

    def process(self, tup):
        self.emit([tup["number"] % 4, tup["number"]])


class FailsOnce(Remainder):
    """Fails each third number at its first coming."""

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        number = tup["number"]
        if number % 3 == 0 and number not in self.seen:
            self.seen.add(number)
            raise FailedException
        super().process(tup)


class FailsOdd(Remainder):
    def process(self, tup):
        if tup["number"] % 2:
            raise FailedException
        super().process(tup)


class Forgets(Bolt):
    """Fails two numbers, and forgets three."""

    def process(self, tup):
        if tup["number"] < 2:
            self.fail(tup)
        elif tup["number"] >= 5:
            self.ack(tup)


class Logs(Remainder):
    def process(self, tup):
        self.logger.warning("number %d", tup["number"])
        self.logger.info("in detail %d", tup["number"])
        print("printed")
        super().process(tup)


class DiesAtTheStart(Remainder):
    def initialize(self, conf, context):
        sys.stderr.write("no such database\n")
        raise RuntimeError("the database is not there")


class Slow(Remainder):
    def process(self, tup):
        time.sleep(0.05)
        super().process(tup)


class WritesItsPid(Remainder):
    """Writes its process's id to a file, so that a test can see whether it runs."""

    def initialize(self, conf, context):
        with open(os.path.join(conf["test.folder"], str(os.getpid())), "w"):
            pass


PENDING = {"topology.max.spout.pending": 20}


def of(spout, bolt, **conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("remainder", bolt).shuffle_grouping("numbers")
    return builder.build("small", conf=conf)


def small():
    return of(Numbers, Remainder)


def replayed():
    return of(Numbers, FailsOnce)


def lossy():
    return of(Unreplayed, FailsOdd)


def forgetful():
    return of(Unreplayed, Forgets, **{"topology.message.timeout.secs": 3})


def unreliable():
    return of(Unreliable, Remainder)


def logs():
    return of(Numbers, Logs)


def dies():
    return of(Numbers, DiesAtTheStart)


def endless():
    return of(Endless, WritesItsPid, **PENDING)


def slow():
    return of(Endless, Slow, **PENDING)
