"""A component in another language: the bolt that splits sentences is a program for Node (node_split.js).

Any program that speaks Storm's multi-lang protocol can be a component; it is named by its command line, and its
output fields are declared here. Node must be on the PATH.

    multilang run examples/node_split.py --until-drained --top count:word:count
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from multilang import BasicBolt, Context, ReliableSpout, ShellBolt, TopologyBuilder, Tuple


class Zen(ReliableSpout):
    """The lines of "The Zen of Python", ten times over."""

    output_fields = ["sentence"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.left = list(enumerate(ZEN.strip().splitlines() * 10))

    def next_tuple(self) -> None:
        if self.left:
            number, line = self.left.pop()
            self.emit([line], tup_id=number)

    def exhausted(self) -> bool:
        return not self.left


class WordCount(BasicBolt):
    """Counts words; see word_count.py."""

    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup["word"]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])


ZEN = """
Beautiful is better than ugly.
Explicit is better than implicit.
Simple is better than complex.
Complex is better than complicated.
Flat is better than nested.
Sparse is better than dense.
Readability counts.
Special cases aren't special enough to break the rules.
Although practicality beats purity.
Errors should never pass silently.
Unless explicitly silenced.
In the face of ambiguity, refuse the temptation to guess.
There should be one-- and preferably only one --obvious way to do it.
Although that way may not be obvious at first unless you're Dutch.
Now is better than never.
Although never is often better than *right* now.
If the implementation is hard to explain, it's a bad idea.
If the implementation is easy to explain, it may be a good idea.
Namespaces are one honking great idea -- let's do more of those!
"""

builder = TopologyBuilder()
builder.set_spout("zen", Zen)
builder.set_bolt(
    "split",
    ShellBolt(["node", str(Path(__file__).with_suffix(".js"))], output_fields=["word"]),
    parallelism=2,
).shuffle_grouping("zen")
builder.set_bolt("count", WordCount, parallelism=2).fields_grouping("split", "word")
topology = builder.build("node-split")
