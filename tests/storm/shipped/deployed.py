"""A topology of which there are versions: it keeps a count, and tells which version counts."""

from __future__ import annotations

from typing import Any

from multilang import BasicBolt, Context, KeyValueState, ReliableSpout, StatefulBasicBolt, TopologyBuilder, Tuple


class Ticks(ReliableSpout):
    output_fields = ["n"]

    def next_tuple(self) -> None:
        self.emit([1])


class Checked(BasicBolt):
    output_fields = ["n"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.broken, self.first = conf["test.version"] == "broken", context.task_index == 0

    def process(self, tup: Tuple) -> None:
        if not self.broken:
            self.emit([tup["n"]])
        elif self.first:
            raise ValueError("this version takes no tuple")


class Count(StatefulBasicBolt):
    output_fields = ["count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.version, self.path = conf["test.version"], conf["test.told"]

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def process(self, tup: Tuple) -> None:
        count = self.state.get("count", 0) + 1
        self.state.put("count", count)
        with open(self.path, "a") as file:
            file.write(f"{self.version} {count}\n")


builder = TopologyBuilder()
builder.set_spout("ticks", Ticks)
builder.set_bolt("checked", Checked, parallelism=2, tasks=3).shuffle_grouping("ticks")
builder.set_bolt("count", Count).shuffle_grouping("checked")
topology = builder.build(
    "deployed",
    conf={
        "topology.max.spout.pending": 5,
        "topology.message.timeout.secs": 10,
        "topology.stats.sample.rate": 0.05,
        "topology.state.provider": "sqlite",
        "topology.state.checkpoint.interval.ms": 200,
    },
)
