"""A spout that emits from timers alone, and a bolt that acks what it holds from one."""

from __future__ import annotations

from typing import Any

from multilang import Bolt, Context, Spout, TopologyBuilder, Tuple

NUMBERS = 10


class Numbers(Spout):
    output_fields = ["n"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.sent = 0
        self.timer = self.set_timer(0.05, self.send, every=0.05)

    def send(self) -> None:
        self.emit([self.sent], self.sent)
        self.sent += 1
        if self.sent == NUMBERS:
            self.timer.cancel()

    def next_tuple(self) -> None:
        pass


class Holds(Bolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.kept: list[Tuple] = []

    def process(self, tup: Tuple) -> None:
        if not self.kept:
            self.set_timer(0.2, self.flush)
        self.kept.append(tup)

    def flush(self) -> None:
        for tup in self.kept:
            self.ack(tup)
        self.kept.clear()


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("holds", Holds).shuffle_grouping("numbers")
topology = builder.build("timed")
