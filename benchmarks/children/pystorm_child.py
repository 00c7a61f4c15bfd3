"""The workloads on pystorm: `python pystorm_child.py split`."""

import sys

from pystorm import Bolt, Spout


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


class Filter(Bolt):
    def process(self, tup):
        if not tup.values[0]:
            self.emit([""])


class Echo(Bolt):
    def process(self, tup):
        self.emit([tup.values[0]])


class Words(Spout):
    per_next = 1

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        for _ in range(self.per_next):
            self.emit(["word", self.n], tup_id=str(self.n))
            self.n += 1


class HundredWords(Words):
    per_next = 100


COMPONENTS = {
    "split": Split,
    "count": Count,
    "filter": Filter,
    "echo": Echo,
    "spout1": Words,
    "spout100": HundredWords,
}

if __name__ == "__main__":
    COMPONENTS[sys.argv[1]]().run()
