"""Bolts whose tuples cost a known time."""

from __future__ import annotations

import time

from multilang import BasicBolt, ReliableSpout, TopologyBuilder

NUMBERS = 400


class Numbers(ReliableSpout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.left = list(range(conf.get("test.numbers", NUMBERS)))

    def next_tuple(self):
        if self.left:
            n = self.left.pop()
            self.emit([n], tup_id=n)

    def exhausted(self):
        return not self.left


class Burns(BasicBolt):
    """Takes a millisecond of CPU for a tuple."""

    output_fields = ["n"]

    def process(self, tup):
        until = time.process_time() + 0.001
        while time.process_time() < until:
            pass
        self.emit([tup["n"]])
        self.emit([tup["n"]])


class Ends(BasicBolt):
    def process(self, tup):
        pass


class Dies(BasicBolt):
    def process(self, tup):
        raise SystemExit("no more")


def built(ends=Ends, grouping="shuffle", tasks=2):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("burns", Burns, 2).shuffle_grouping("numbers")
    getattr(builder.set_bolt("ends", ends, tasks), f"{grouping}_grouping")("burns")
    return builder.build("burning", conf={"topology.max.spout.pending": 20})


topology = built()
to_all = built(grouping="all")
to_one = built(grouping="global")
dies = built(ends=Dies)
unread = TopologyBuilder()
unread.set_spout("numbers", Numbers)
unread.set_bolt("burns", Burns).shuffle_grouping("numbers")
unread.set_bolt("never", Ends).shuffle_grouping("idle")
unread.set_bolt("idle", type("Idle", (Ends,), {"output_fields": ["n"]})).shuffle_grouping("burns")
unread = unread.build("unread", conf={"topology.max.spout.pending": 20})
