from collections import Counter

from helpers import words
from streamparse import Bolt


class SplitBolt(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in words(tup.values.line):
            self.emit([word])


class CountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values.word
        self.counts[word] += 1
        self.logger.info("%s: %d", word, self.counts[word])
        self.emit([word, self.counts[word]])
