"""Components in the style of pystorm, each with something of its own."""

from pystorm import Bolt, Spout


class Count(Bolt):
    def initialize(self, conf, ctx):
        self.seen = {}

    def process(self, tup):
        word = tup.values.word
        if word == "bad":
            raise ValueError(word)
        self.seen[word] = self.seen.get(word, 0) + 1
        self.emit([word, self.seen[word]], stream="default")


class Numbers(Spout):
    def next_tuple(self):
        self.emit([1, 2], tup_id="a")


class Silent(Bolt):  # it stays as it is
    auto_fail = False
    exit_on_exception = False

    def process(self, tup):
        self.emit([tup.values.word, 1])


if __name__ == "__main__":
    Count().run()
