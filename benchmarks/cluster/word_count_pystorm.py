"""Word count on pystorm, run by a real Storm: `python word_count_pystorm.py sentences|split|count`."""

import sys
import time

from pystorm import Bolt, Spout
from sentences import sentence


class Sentences(Spout):
    def initialize(self, conf, context):
        self.n = self.acked = 0
        self.progress = open(conf["benchmark.progress"], "a", buffering=1)  # noqa: SIM115, open as long as the process

    def next_tuple(self):
        self.emit([sentence(self.n)], tup_id=str(self.n))
        self.n += 1

    def ack(self, tup_id):
        self.acked += 1
        if self.acked % 100 == 0:
            self.progress.write(f"{time.monotonic()} {self.acked}\n")

    def fail(self, tup_id):
        self.progress.write("failed\n")


class Split(Bolt):
    def process(self, tup):
        for word in tup.values[0].split(" "):
            self.emit([word])


class Count(Bolt):
    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values[0]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])


if __name__ == "__main__":
    {"sentences": Sentences, "split": Split, "count": Count}[sys.argv[1]]().run()
