"""Words of a source's rows, each counted once: on Storm, and from the same state on Spark, and back."""

from __future__ import annotations

import time

from multilang import BasicBolt, StatefulBasicBolt, TopologyBuilder
from spark_bridge import ListSource, ReplayablePartitionSpout

ROWS = 6000
SENTENCES = ["the cow jumped over the moon", "an apple a day keeps the doctor away", "four score and seven years ago"]
SOURCE = ListSource([[SENTENCES[n % 3] for n in range(part, ROWS, 4)] for part in range(4)], ["sentence"])


class Split(BasicBolt):
    output_fields = ["word"]

    def initialize(self, conf, context):
        self.pause = conf.get("test.pause", 0)

    def process(self, tup):
        time.sleep(self.pause)  # so that a kill comes in the middle of the count
        for word in tup["sentence"].split():
            self.emit([word])


class Count(StatefulBasicBolt):
    def init_state(self, state):
        self.counts = state

    def process(self, tup):
        self.counts.put(tup["word"], self.counts.get(tup["word"], 0) + 1)


builder = TopologyBuilder()
builder.set_spout("sentences", ReplayablePartitionSpout(SOURCE), parallelism=2)
builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
topology = builder.build(
    "handover",
    conf={
        "multilang.state.alignment": "exact",
        "topology.state.checkpoint.interval.ms": 200,
        "topology.message.timeout.secs": 30,
    },
)
