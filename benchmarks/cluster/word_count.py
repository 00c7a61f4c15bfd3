"""The same word count as a topology of ours.

Each counting task writes its counts to a file, so that the result is checked.
"""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))  # a child process loads this file by its path

from sentences import sentence

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Sentences(Spout):
    output_fields = ["sentence"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.n = 0
        self.end = conf["benchmark.sentences"]

    def next_tuple(self) -> None:
        if self.n < self.end:
            self.emit([sentence(self.n)], tup_id=str(self.n))
            self.n += 1

    def exhausted(self) -> bool:
        return self.n >= self.end


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split(" "):
            self.emit([word])


class Count(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}
        self.path = os.path.join(conf["benchmark.folder"], f"counts-{context.task}")

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])

    def close(self) -> None:
        with open(self.path, "w") as file:
            json.dump(self.counts, file)


builder = TopologyBuilder()
builder.set_spout("sentences", Sentences)
builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
topology = builder.build("word-count", conf={"topology.max.spout.pending": 500})
