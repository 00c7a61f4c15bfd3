"""Components in the style of storm.py."""

from __future__ import annotations

from multilang.compat import storm
from multilang.compat.storm.running import adapted
from multilang.topology import TopologyBuilder

SENTENCES = ["the cow jumped over the moon", "an apple a day", "the end of the day"]
TOTAL = 60


class Sentences(storm.Spout):
    def initialize(self, conf, context):
        self.n = 0

    def nextTuple(self):
        if self.n < TOTAL:
            storm.emit([SENTENCES[self.n % 3]], id=self.n)
            self.n += 1


class Split(storm.BasicBolt):
    def process(self, tup):
        for word in tup.values[0].split():
            assert len(storm.emit([word])) == 1


class Count(storm.Bolt):
    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        storm.emit([word, self.counts[word]], anchors=[tup])
        storm.ack(tup)


builder = TopologyBuilder()
builder.set_spout("sentences", adapted(Sentences, ["sentence"]))
builder.set_bolt("split", adapted(Split, ["word"]), 2).shuffle_grouping("sentences")
builder.set_bolt("count", adapted(Count, ["word", "count"]), 2).fields_grouping("split", "word")
topology = builder.build("words")
