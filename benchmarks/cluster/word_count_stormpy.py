"""Word count on Storm's own storm.py, run by a real Storm: `python word_count_stormpy.py sentences|split|count`."""

import sys
import time

import storm
from sentences import sentence


class Sentences(storm.Spout):
    def initialize(self, conf, context):
        self.n = self.acked = 0
        self.progress = open(conf["benchmark.progress"], "a", buffering=1)  # noqa: SIM115, open as long as the process

    def nextTuple(self):  # noqa: N802, storm.py's spelling
        storm.emit([sentence(self.n)], id=str(self.n))
        self.n += 1

    def ack(self, id):
        self.acked += 1
        if self.acked % 100 == 0:
            self.progress.write(f"{time.monotonic()} {self.acked}\n")

    def fail(self, id):
        self.progress.write("failed\n")


class Split(storm.BasicBolt):
    def process(self, tup):
        for word in tup.values[0].split(" "):
            storm.emit([word])


class Count(storm.BasicBolt):
    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values[0]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        storm.emit([word, count])


if __name__ == "__main__":
    {"sentences": Sentences, "split": Split, "count": Count}[sys.argv[1]]().run()
