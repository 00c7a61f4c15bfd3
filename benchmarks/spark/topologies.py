"""The word count of cluster/word_count.py, as it is, and with the totals emitted once at the end."""

from __future__ import annotations

from typing import Any

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple


class Sentences(Spout):
    output_fields = ["sentence"]


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split(" "):
            self.emit([word])


class Count(BasicBolt):
    """Emits each count as it rises, as Storm's word count does."""

    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])


class Totals(BasicBolt):
    """Emits each count once, at the tick that ends the round."""

    output_fields = ["word", "count"]
    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1

    def process_tick(self, tup: Tuple) -> None:
        self.emit_many([[word, count] for word, count in self.counts.items()])


def _word_count(name: str, count: type[BasicBolt]) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", count, parallelism=2).fields_grouping("split", "word")
    return builder.build(name)


running = _word_count("running", Count)
totals = _word_count("totals", Totals)
