"""Windows whose rows a bolt writes down: every kind by event time, and one whose late tuples come surely late."""

from __future__ import annotations

import json
from typing import Any

from multilang import BasicBolt, Context, ReliableSpout, Topology, TopologyBuilder, Tuple
from multilang.windowing import StatefulWindowedBolt, Tumbling, Window, WindowedBolt, milliseconds, seconds
from tests.windowing import every


def write(conf: dict[str, Any], component: str, stream: str, values: list[Any]) -> None:
    """Add a line of JSON to the file ``test.rows``."""
    with open(conf["test.rows"], "a") as file:
        file.write(json.dumps([component, stream, values]) + "\n")


class Recorder(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.conf = conf

    def process(self, tup: Tuple) -> None:
        write(self.conf, tup.component, tup.stream, tup.values)


def with_recorder(builder: TopologyBuilder, streams: list[tuple[str, str]], name: str, **conf: Any) -> Topology:
    recorder = builder.set_bolt("recorder", Recorder)
    for component, stream in streams:
        recorder.global_grouping(component, stream)
    return builder.build(name, {"topology.message.timeout.secs": 1000, **conf})


class Late(ReliableSpout):
    """Emits a tuple of a window that is over: it waits until the window's tuples are acked, which is after its end."""

    output_fields = ["n", "ts"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.left = [[1, 5], [2, 15], [3, 25], [4, 1_000_000]]
        self.waits_for = {1, 2, 3}
        self.conf = conf

    def next_tuple(self) -> None:
        if self.left:
            values = self.left.pop(0)
            self.emit(values, tup_id=values[0])

    def ack(self, tup_id: Any) -> None:
        super().ack(tup_id)
        write(self.conf, "late", "acks", [tup_id])
        if tup_id in self.waits_for:
            self.waits_for.remove(tup_id)
            if not self.waits_for:
                self.left = [[5, 9], [6, 999_999], [7, 1_000_000], [8, 2_000_000]]


class Shows(WindowedBolt):
    output_fields = ["end", "numbers"]
    window = Tumbling(milliseconds(10))
    timestamp_field = "ts"
    watermark_interval = milliseconds(100)
    late_stream = "late"

    def process_window(self, window: Window) -> None:
        self.emit([window.end, [tup["n"] for tup in window.tuples]])


class Early(WindowedBolt):
    """Windows by the clock, each of which has all that came: what they count together is the number of tuples."""

    output_fields = ["count"]
    window = Tumbling(seconds(0.2))

    def process_window(self, window: Window) -> None:
        self.emit([len(window.tuples)])


builder = TopologyBuilder()
builder.set_spout("late", Late)
builder.set_bolt("shows", Shows).global_grouping("late")
builder.set_bolt("clock", Early).global_grouping("late")
late = with_recorder(builder, [("shows", "default"), ("shows", "late"), ("clock", "default")], "late")

names = [(name, "default") for name in every.BOLTS[WindowedBolt]]
plain = with_recorder(every.builder(WindowedBolt), names, "plain")
exact = {"multilang.state.alignment": "exact"}
stateful = with_recorder(every.builder(StatefulWindowedBolt, tasks=1), names, "stateful", **exact)
