"""Counts the words of real text: the topology that every Storm user has seen first.

    multilang run examples/word_count.py --until-drained --top count:word:count
    multilang run examples/word_count.py --until-drained --input book.txt --input notes.txt

Without ``--input`` the text is Python's own documentation topics, which every machine with Python has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Context, ReliableSpout, TopologyBuilder, Tuple

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


class Sentences(ReliableSpout):
    """Emits each line that has text, and emits it again when it fails, until it is acked."""

    output_fields = ["sentence"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.done = False
        # Several tasks of this spout share the work: the task of index i takes the lines i, i + n, i + 2n ...
        self.index, self.tasks = context.task_index, len(context.tasks(context.component))
        self.numbered = enumerate(lines_of(conf.get("multilang.input.files") or []))

    def next_tuple(self) -> None:
        for number, line in self.numbered:
            sentence = line.strip()
            if sentence and number % self.tasks == self.index:
                self.emit([sentence], tup_id=number)
                return
        self.done = True

    def exhausted(self) -> bool:
        return self.done


class SplitSentence(BasicBolt):
    """Emits one tuple per word, in lower case and without punctuation around it."""

    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        words = (word.strip(".,:;!?\"'`()[]{}<>*=-_|") for word in tup["sentence"].lower().split())
        self.emit_many([[word] for word in words if word])


class WordCount(BasicBolt):
    """Counts words. The fields grouping sends the same word to the same task, so each task counts its own words."""

    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup["word"]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])


builder = TopologyBuilder()
builder.set_spout("sentences", Sentences)
builder.set_bolt("split", SplitSentence, parallelism=2).shuffle_grouping("sentences")
builder.set_bolt("count", WordCount, parallelism=2).fields_grouping("split", "word")
topology = builder.build("word-count", conf={"topology.max.spout.pending": 500})
