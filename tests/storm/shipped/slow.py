"""User code that takes longer than Storm waits for a sign of life, in the spout and in the bolt."""

from __future__ import annotations

import time
from typing import Any

from multilang import BasicBolt, Context, ReliableSpout, TopologyBuilder, Tuple

LIMIT = 2  # seconds; with Storm's least, 1, it ends even a process that answers each heartbeat at once: it asks once a second
SLOW = 2 * LIMIT


def wait() -> None:
    time.sleep(SLOW)


def work() -> None:
    """The same without ever letting go of the processor."""
    until = time.monotonic() + SLOW
    while time.monotonic() < until:
        sum(range(1000))


class Slow(ReliableSpout):
    output_fields = ["how"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.left = ["work", "wait"]

    def next_tuple(self) -> None:
        if self.left:
            how = self.left[-1]
            {"wait": wait, "work": work}[how]()
            self.emit([how], tup_id=self.left.pop())


class Slower(BasicBolt):
    def process(self, tup: Tuple) -> None:
        {"wait": wait, "work": work}[tup["how"]]()


builder = TopologyBuilder()
builder.set_spout("slow", Slow)
builder.set_bolt("slower", Slower).shuffle_grouping("slow")
topology = builder.build("slow", conf={"topology.subprocess.timeout.secs": LIMIT})
