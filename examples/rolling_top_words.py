"""The most frequent words of the last few seconds, driven by ticks, with one update per word and second.

A BatchingBolt groups the words that came since the last tick, so that a word that came a hundred times costs one emit;
it acks them after that. Each tick moves the window, and each tick emits the ranking, too.

    multilang run examples/rolling_top_words.py --for 15 --top rank:word:count
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from multilang import BasicBolt, BatchingBolt, Context, ReliableSpout, TopologyBuilder, Tuple

WINDOW_TICKS = 5
RANKS = 10


class Words(ReliableSpout):
    """Emits the words of Python's documentation, a hundred per call, one tuple each."""

    output_fields = ["word"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        from pydoc_data.topics import topics

        text = " ".join(topics[topic] for topic in sorted(topics)).lower()
        self.words = [word for word in text.split() if word.isalpha()]
        self.position = 0

    def next_tuple(self) -> None:
        batch = self.words[self.position : self.position + 100]
        self.emit_many([[word] for word in batch])
        self.position += len(batch)

    def exhausted(self) -> bool:
        return self.position >= len(self.words)


class RollingCount(BatchingBolt):
    """Counts how often each word came within the window."""

    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.total: Counter[str] = Counter()
        self.window: deque[Counter[str]] = deque([Counter()])

    def group_key(self, tup: Tuple) -> str:
        return str(tup["word"])

    def process_batch(self, key: str, tups: list[Tuple]) -> None:
        self.window[-1][key] += len(tups)
        self.total[key] += len(tups)
        self.emit([key, self.total[key]])

    def process_tick(self, tup: Tuple) -> None:
        super().process_tick(tup)  # hands over the batches
        self.window.append(Counter())
        if len(self.window) > WINDOW_TICKS:
            for word, count in self.window.popleft().items():
                self.total[word] -= count
                # Not anchored: a count that falls because time passes comes from no input.
                self.emit([word, self.total[word]], anchors=[])
                if not self.total[word]:
                    del self.total[word]


class Rank(BasicBolt):
    """Emits the ten greatest at each tick."""

    output_fields = ["rank", "word", "count"]
    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        if tup["count"]:
            self.counts[tup["word"]] = tup["count"]
        else:
            self.counts.pop(tup["word"], None)

    def process_tick(self, tup: Tuple) -> None:
        greatest = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:RANKS]
        self.emit_many([[rank, word, count] for rank, (word, count) in enumerate(greatest, 1)], anchors=[])


builder = TopologyBuilder()
builder.set_spout("words", Words)
builder.set_bolt("count", RollingCount, parallelism=2).fields_grouping("words", "word")
builder.set_bolt("rank", Rank).global_grouping("count")
topology = builder.build("rolling-top-words", conf={"topology.max.spout.pending": 10_000})
