"""Sliding sums and their averages, as in storm-starter's SlidingWindowTopology.

    multilang run examples/sliding_sums.py --for 10 --top averages:average

Every 10 numbers the sum of the last 30 is emitted; it is changed by what came and what left, not added up again. Every
3 sums their average is emitted. It runs until it is stopped, since the last 20 numbers wait for more in a window.
"""

from __future__ import annotations

from typing import Any

from multilang import Context, Spout, TopologyBuilder
from multilang.windowing import Sliding, Tumbling, Window, WindowedBolt

NUMBERS = 900


class Numbers(Spout):
    output_fields = ["value"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.next = 0

    def next_tuple(self) -> None:
        if self.next < NUMBERS:
            # Without a message id: the last 20 are in a window for ever, and would be replayed.
            self.emit([self.next * 37 % 1000])
            self.next += 1

    def exhausted(self) -> bool:
        return self.next == NUMBERS


class SlidingSum(WindowedBolt):
    output_fields = ["sum"]
    window = Sliding(30, 10)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.sum = 0

    def process_window(self, window: Window) -> None:
        self.sum += sum(tup["value"] for tup in window.new) - sum(tup["value"] for tup in window.expired)
        self.emit([self.sum])


class TumblingAverage(WindowedBolt):
    output_fields = ["average"]
    window = Tumbling(3)

    def process_window(self, window: Window) -> None:
        self.emit([sum(tup["sum"] for tup in window.tuples) / window.count])


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("sums", SlidingSum).shuffle_grouping("numbers")
builder.set_bolt("averages", TumblingAverage).shuffle_grouping("sums")
topology = builder.build("sliding-sums")
