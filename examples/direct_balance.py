"""Direct grouping: the sender chooses the task. Here it chooses the one that has been given the least work so far.

Shuffle grouping gives each task the same number of tuples. When one tuple is a hundred times the work of another, the
tasks still don't have the same work. The scheduler knows how long each text is, so it sends each to the task with the
fewest characters.

    multilang run examples/direct_balance.py --until-drained
"""

from __future__ import annotations

from typing import Any

from multilang import BasicBolt, Context, ReliableSpout, Stream, TopologyBuilder, Tuple


class Topics(ReliableSpout):
    """Emits Python's documentation topics as whole texts, from a hundred characters to fifty thousand."""

    output_fields = ["topic", "text"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        from pydoc_data.topics import topics

        super().initialize(conf, context)
        self.left = sorted(topics.items(), reverse=True)

    def next_tuple(self) -> None:
        if self.left:
            topic, text = self.left.pop()
            self.emit([topic, text], tup_id=topic)

    def exhausted(self) -> bool:
        return not self.left


class Balance(BasicBolt):
    """Sends each text to the least loaded task of the component that measures."""

    output_streams = {"work": Stream(["topic", "text"], direct=True)}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.load = dict.fromkeys(context.tasks("measure"), 0)

    def process(self, tup: Tuple) -> None:
        task = min(self.load, key=lambda task: self.load[task])
        self.load[task] += len(tup["text"])
        self.emit([tup["topic"], tup["text"]], stream="work", direct_task=task)


class Measure(BasicBolt):
    """Counts the texts and characters that this task has read so far."""

    output_fields = ["task", "texts", "characters"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.texts = self.characters = 0

    def process(self, tup: Tuple) -> None:
        self.texts += 1
        self.characters += len(tup["text"])
        self.emit([self.context.task, self.texts, self.characters])


builder = TopologyBuilder()
builder.set_spout("topics", Topics)
builder.set_bolt("balance", Balance).shuffle_grouping("topics")
builder.set_bolt("measure", Measure, parallelism=3).direct_grouping("balance", stream="work")
topology = builder.build("direct-balance")
