"""Components in the style of pystorm, with the names that such programs like to use."""

from __future__ import annotations

from multilang.compat.pystorm import BatchingBolt, Bolt, ReliableSpout
from multilang.compat.pystorm.running import adapted
from multilang.topology import TopologyBuilder

SENTENCES = ["the cow jumped over the moon", "an apple a day", "the end of the day"]
TOTAL = 60


class Sentences(ReliableSpout):
    max_fails = 1000

    def initialize(self, conf, context):
        self.metrics = {}
        self.conf = self.middleware = self.collector = self.clock = None
        self.n = 0

    def next_tuple(self):
        if self.n < TOTAL:
            self.emit([SENTENCES[self.n % 3]], tup_id=self.n)
            self.n += 1


class Split(Bolt):
    def initialize(self, conf, context):
        self.metrics = {"words": 0}
        self.timers = self.requires = self.wrapped = self.context_of = "mine"

    def process(self, tup):
        for word in tup.values.sentence.split():
            self.emit([word])


class Count(BatchingBolt):
    def initialize(self, conf, context):
        self.counts = {}

    def group_key(self, tup):
        return tup.values.word

    def process_batch(self, key, tups):
        self.counts[key] = self.counts.get(key, 0) + len(tups)
        self.emit([key, self.counts[key]])


builder = TopologyBuilder()
builder.set_spout("sentences", adapted(Sentences, ["sentence"]))
builder.set_bolt("split", adapted(Split, ["word"]), 2).shuffle_grouping("sentences")
builder.set_bolt(
    "count", adapted(Count, ["word", "count"]), 2, conf={"topology.tick.tuple.freq.secs": 0.05}
).fields_grouping("split", "word")
topology = builder.build("words")
