"""The workloads on Storm's own storm.py, which is found on the path: `python stormpy_child.py split`."""

import sys

import storm


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


class Filter(storm.BasicBolt):
    def process(self, tup):
        if not tup.values[0]:
            storm.emit([""])


class Echo(storm.BasicBolt):
    def process(self, tup):
        storm.emit([tup.values[0]])


class Words(storm.Spout):
    per_next = 1

    def initialize(self, conf, context):
        self.n = 0

    def nextTuple(self):  # noqa: N802, storm.py's spelling
        for _ in range(self.per_next):
            storm.emit(["word", self.n], id=str(self.n))
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
