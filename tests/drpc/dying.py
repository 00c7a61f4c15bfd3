"""A topology of which each step ends as the arguments of a request say."""

from __future__ import annotations

from multilang import BasicBolt, BatchBolt, Bolt
from multilang.drpc import LinearDRPCTopologyBuilder
from tests.local.dying import WAYS, die

PLACES = ("basic", "plain", "batch", "finish")


def work(place, text):
    """Die of ``WAY PLACE NUMBER``, where the way is not "good"."""
    way, where, _ = text.split()
    if where == place and way in WAYS:
        die(way)


class Basic(BasicBolt):
    output_fields = ["id", "text"]

    def process(self, tup):
        work("basic", tup[1])
        for _ in range(20):
            self.emit(tup.values)


class Plain(Bolt):
    output_fields = ["id", "text"]

    def process(self, tup):
        work("plain", tup[1])
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class Batch(BatchBolt):
    output_fields = ["id", "text"]

    def initialize(self, conf, context, collector, id):
        self.texts = []

    def process(self, tup):
        work("batch", tup[1])
        self.texts.append(tup[1])

    def finish_batch(self):
        work("finish", self.texts[0])
        self.emit([self.id, " ".join(self.texts)])


def answer(text):
    return " ".join([text] * 20)


builder = LinearDRPCTopologyBuilder("dying")
builder.add_bolt(Basic, 2)
builder.add_bolt(Plain).shuffle_grouping()
builder.add_bolt(Batch, 2).fields_grouping("id")
dying = builder.build()

builder = LinearDRPCTopologyBuilder("alone")
builder.add_bolt(Plain)
alone = builder.build()
