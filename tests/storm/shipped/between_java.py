"""Steps between which Storm's own coordinated bolts stand: the test puts them in the place of each ``Same``."""

from __future__ import annotations

from multilang import BasicBolt, BatchBolt
from multilang.drpc import LinearDRPCTopologyBuilder


class Same(BasicBolt):
    output_fields = ["id", "value"]

    def process(self, tup):
        assert not self.conf.get("test.steps.in.java"), "this is not Storm's"
        self.emit(tup.values)


class Spread(BasicBolt):
    output_fields = ["id", "value"]

    def process(self, tup):
        self.emit_many([[tup[0], value] for value in range(int(tup[1]))])


class Add(BatchBolt):
    output_fields = ["id", "value"]

    def initialize(self, conf, context, collector, id):
        self.total = 0

    def process(self, tup):
        self.total += tup[1]

    def finish_batch(self):
        self.emit([self.id, self.total])


builder = LinearDRPCTopologyBuilder("sum")
builder.add_bolt(Same)
builder.add_bolt(Spread, 2).shuffle_grouping()
builder.add_bolt(Same, 2).shuffle_grouping()
builder.add_bolt(Add, 2).shuffle_grouping()
builder.add_bolt(Add, 1).fields_grouping("id")
builder.add_bolt(Same).shuffle_grouping()
topology = builder.build()
