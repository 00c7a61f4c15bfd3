"""A topology in the style of streamparse: it imports the name, and declares everything in classes."""

from streamparse import BatchingBolt, Bolt, Grouping, ReliableSpout, Stream, Topology

SENTENCES = ["the cow jumped over the moon", "an apple a day", "the end of the day"]
TOTAL = 60


class Sentences(ReliableSpout):
    outputs = ["sentence"]

    def initialize(self, stormconf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < TOTAL:
            self.emit([SENTENCES[self.n % 3]], tup_id=self.n)
            self.n += 1


class Split(Bolt):
    outputs = [Stream(fields=["word"]), Stream(fields=["letter"], name="letters")]

    def process(self, tup):
        for word in tup.values.sentence.split():
            self.emit([word])
            self.emit([word[0]], stream="letters")


class Count(BatchingBolt):
    outputs = ["word", "count"]
    config = {"topology.tick.tuple.freq.secs": 0.05}
    ticks_between_batches = 1

    def initialize(self, conf, ctx):
        self.counts = {}

    def group_key(self, tup):
        return tup.values[0]

    def process_batch(self, key, tups):
        self.counts[key] = self.counts.get(key, 0) + len(tups)
        self.emit([key, self.counts[key]])


class Words(Topology):
    config = {"topology.message.timeout.secs": 60}
    sentences = Sentences.spec()
    split = Split.spec(inputs=[sentences], par=2)
    count = Count.spec(inputs={split: Grouping.fields("word")}, par={"prod": 8, "beta": 2})
    letters = Count.spec(inputs={split["letters"]: Grouping.GLOBAL}, config={"topology.tick.tuple.freq.secs": 0.1})
