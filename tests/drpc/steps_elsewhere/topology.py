"""Steps in Node and, by hand, a program between Python's."""

from __future__ import annotations

from multilang import BatchBolt, ShellBolt
from multilang.drpc import LinearDRPCTopologyBuilder


class Longest(BatchBolt):
    output_fields = ["id", "result"]

    def initialize(self, conf, context, collector, id):
        self.found = []

    def process(self, tup):
        self.found.append(tup[1:])

    def finish_batch(self):
        self.emit([self.id, sorted(word for word, _ in self.found)])


class Same(BatchBolt):
    output_fields = ["id", "word", "length"]

    def initialize(self, conf, context, collector, id):
        self.found = []

    def process(self, tup):
        self.found.append(tup.values)

    def finish_batch(self):
        for values in self.found:
            self.emit(values)


def words():
    return ShellBolt(["node", "words.js"], output_fields=["id", "word", "length"])


builder = LinearDRPCTopologyBuilder("words")
builder.add_bolt(words(), parallelism=2)
builder.add_bolt(Same, parallelism=2).fields_grouping("word")
builder.add_bolt(words(), parallelism=2).shuffle_grouping()  # of each word, one
builder.add_bolt(Longest, parallelism=2).fields_grouping("id")
topology = builder.build(conf={"topology.subprocess.timeout.secs": 60})
