"""A spout that is switched off and on, and a bolt that logs, reports and counts, under a cluster's eyes."""

from __future__ import annotations

import os
from typing import Any

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple


class Pulse(Spout):
    """A number whenever the one before was acked; writes down what it is told, in the order in which it is."""

    output_fields = ["n"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.file = open(os.path.join(conf["test.folder"], "spout"), "a", buffering=1)
        self.n = self.acked = 0

    def activate(self) -> None:
        self.file.write("activate\n")

    def deactivate(self) -> None:
        self.file.write("deactivate\n")

    def next_tuple(self) -> None:
        self.file.write("next\n")
        if self.n == self.acked:
            self.n += 1
            self.emit([self.n], tup_id=self.n)

    def ack(self, tup_id: Any) -> None:
        self.acked += 1


class Watched(BasicBolt):
    """Counts, and at its ticks says something at every level."""

    component_conf = {
        "topology.tick.tuple.freq.secs": 1,
        "multilang.metrics.interval.secs": 1,
        "multilang.metrics.registered": ["my-custom-shell-metric"],
        "multilang.log.level": "trace",
    }

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.folder = conf["test.folder"]
        self.seen = self.ticks = 0

    def process(self, tup: Tuple) -> None:
        self.seen += 1
        self.metrics.counter("my-custom-shell-metric").inc()

    def process_tick(self, tup: Tuple) -> None:
        self.ticks += 1
        if self.ticks == 1:
            for level in ("trace", "debug", "info", "warn", "error"):
                self.log(f"this is {level}", level=level)
            self.logger.warning("from a logger")
            print("printed")
            self.report_error("nothing serious\nbut for two lines")
        with open(os.path.join(self.folder, "bolt.part"), "w") as file:
            file.write(f"{tup.component} {tup.stream} {self.ticks} {self.seen}")
        os.replace(file.name, os.path.join(self.folder, "bolt"))


builder = TopologyBuilder()
builder.set_spout("pulse", Pulse)
builder.set_bolt("watched", Watched).shuffle_grouping("pulse")
topology = builder.build("observed")
