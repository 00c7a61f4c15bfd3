"""The example's word count, telling a folder how often each of its tasks has seen each word."""

from __future__ import annotations

import json
import os
from typing import Any

import word_count  # examples/word_count.py, which the test puts beside this file

from multilang import Context, TopologyBuilder, Tuple


class ToldWordCount(word_count.WordCount):
    """Writes its counts at each tick, if there is something new."""

    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.file = os.path.join(conf["test.folder"], f"count-{context.task_index}.json")
        self.told = 0

    def process_tick(self, tup: Tuple) -> None:
        total = sum(self.counts.values())
        if total != self.told:
            with open(f"{self.file}.part", "w") as file:
                json.dump(self.counts, file)
            os.replace(f"{self.file}.part", self.file)
            self.told = total


builder = TopologyBuilder()
builder.set_spout("sentences", word_count.Sentences)
builder.set_bolt("split", word_count.SplitSentence, parallelism=2).shuffle_grouping("sentences")
builder.set_bolt("count", ToldWordCount, parallelism=3).fields_grouping("split", "word")
topology = builder.build(
    "counting", conf={"topology.max.spout.pending": 500, "topology.message.timeout.secs": 120, "topology.workers": 2}
)
