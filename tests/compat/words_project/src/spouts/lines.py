from streamparse import Spout


class LineSpout(Spout):
    outputs = ["line"]

    def initialize(self, stormconf, context):
        with open("sentences.txt") as lines:
            self.lines = list(enumerate(lines.read().splitlines() * 4))

    def next_tuple(self):
        if self.lines:
            number, line = self.lines.pop()
            self.emit([line], tup_id=number)
