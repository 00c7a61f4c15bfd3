"""A topology that makes five letters large, in a module that imports nothing that only a test needs."""

from __future__ import annotations

from multilang import BasicBolt, ReliableSpout, TopologyBuilder


class Letters(ReliableSpout):
    output_fields = ["letter"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.left = list("edcba")

    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop()])

    def exhausted(self):
        return not self.left


class Upper(BasicBolt):
    output_fields = ["letter"]

    def process(self, tup):
        self.emit([tup["letter"].upper()])


builder = TopologyBuilder()
builder.set_spout("letters", Letters)
builder.set_bolt("upper", Upper).shuffle_grouping("letters")
topology = builder.build("letters")
