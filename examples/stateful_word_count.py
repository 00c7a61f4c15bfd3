"""The word count of Storm's page on state: the counts survive crashes, and the next run resumes from them.

    multilang run examples/stateful_word_count.py --until-drained --top count:word:count
    multilang state ls examples/stateful_word_count.py
    multilang state get examples/stateful_word_count.py count class

With ``exactly_once`` in the place of ``topology`` each word counts once, whatever dies, and a second run
finds that all lines are counted already:

    multilang run examples/stateful_word_count.py:exactly_once --until-drained
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Context, KeyValueState, StatefulBolt, Topology, TopologyBuilder, Tuple
from multilang.state import ReplayableSpout

if TYPE_CHECKING:
    from collections.abc import Iterator


def lines_of(files: list[str]) -> Iterator[str]:
    """Return the lines of the files, or of Python's documentation topics if there are no files."""
    if not files:
        from pydoc_data.topics import topics

        for topic in sorted(topics):
            yield from topics[topic].splitlines()
    for path in files:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file


class Lines(ReplayableSpout):
    """Emits each line that has text. Its position is the number of lines that it has read."""

    output_fields = ["sentence"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.files = conf.get("multilang.input.files") or []
        self.done = False
        self.seek(0)

    def next_tuple(self) -> None:
        for line in self.lines:
            self.read += 1
            if line.strip():
                self.emit([line.strip()])
                return
        self.done = True

    def exhausted(self) -> bool:
        return self.done

    def position(self) -> int:
        return self.read

    def seek(self, position: int) -> None:
        self.read = position
        self.lines = islice(lines_of(self.files), position, None)


class SplitSentence(BasicBolt):
    """Emits one tuple per word, in lower case and without punctuation around it."""

    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        words = (word.strip(".,:;!?\"'`()[]{}<>*=-_|") for word in tup["sentence"].lower().split())
        self.emit_many([[word] for word in words if word])


class WordCount(StatefulBolt):
    """Counts words as on the page: an emit is anchored to the word, whose ack counts once the state is committed."""

    output_fields = ["word", "count"]

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.counts = state

    def process(self, tup: Tuple) -> None:
        word = tup["word"]
        count = self.counts.get(word, 0) + 1
        self.counts.put(word, count)
        self.emit([word, count], anchors=[tup])
        self.ack(tup)


def build(name: str, alignment: str) -> Topology:
    """Return the topology for one of the two guarantees."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Lines)
    builder.set_bolt("split", SplitSentence, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", WordCount, parallelism=2).fields_grouping("split", "word")
    conf = {
        "multilang.state.alignment": alignment,
        "topology.max.spout.pending": 5000,  # tuples between two checkpoints are acked at the second one
    }
    return builder.build(name, conf=conf)


topology = build("stateful-word-count", "at-least-once")
exactly_once = build("stateful-word-count-exact", "exact")
