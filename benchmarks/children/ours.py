"""Our components, one per workload: `python ours.py split`. `-many` at the end of a name emits with one call."""

from __future__ import annotations

import sys

from multilang.component import BasicBolt, Bolt, Component, Spout
from multilang.protocol import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split(" "):
            self.emit([word])


class SplitMany(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        self.emit_many([[word] for word in tup.values[0].split(" ")])


class Count(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: object) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])


class Filter(BasicBolt):
    def process(self, tup: Tuple) -> None:
        if not tup.values[0]:
            self.emit([""])


class Echo(BasicBolt):
    output_fields = ["text"]

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values[0]])


class FullControlSplit(Bolt):
    """The same without BasicBolt, with explicit anchors and acks."""

    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split(" "):
            self.emit([word], anchors=[tup])
        self.ack(tup)


class Words(Spout):
    output_fields = ["word", "n"]
    per_next = 1

    def initialize(self, conf: dict[str, Any], context: object) -> None:
        self.n = 0

    def next_tuple(self) -> None:
        for _ in range(self.per_next):
            self.emit(["word", self.n], tup_id=str(self.n))
            self.n += 1


class HundredWords(Words):
    per_next = 100


class HundredWordsMany(Words):
    def next_tuple(self) -> None:
        serials = range(self.n, self.n + 100)
        self.n += 100
        self.emit_many([["word", n] for n in serials], tup_ids=[str(n) for n in serials])


COMPONENTS: dict[str, type[Component]] = {
    "split": Split,
    "split-many": SplitMany,
    "split-bolt": FullControlSplit,
    "count": Count,
    "filter": Filter,
    "echo": Echo,
    "spout1": Words,
    "spout100": HundredWords,
    "spout100-many": HundredWordsMany,
}

if __name__ == "__main__":
    COMPONENTS[sys.argv[1]]().run()
