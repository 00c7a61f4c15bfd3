"""Topologies whose windows are counted exactly, at module level, where a task's process can import them."""

from __future__ import annotations

from multilang.state import ReplayableSpout
from multilang.topology import TopologyBuilder
from multilang.windowing import Count, Sliding, StatefulWindowedBolt, Sum, Tumbling, WindowedBolt, milliseconds, seconds
from tests.windowing import reference

KEYS = ["ant", "bee"]


class Events(ReplayableSpout):
    """``test.events`` events out of order by less than 50 ms, and a last one far behind them that closes all windows."""

    output_fields = ["n", "key", "ts"]
    max_replays = None

    def initialize(self, conf, context):
        self.n, self.step = context.task_index, len(context.tasks(context.component))
        self.total = conf.get("test.events", 300)
        self.last = False

    def next_tuple(self):
        if self.n < self.total:
            n, self.n = self.n, self.n + self.step
            self.emit(list(event(n)), n)
        elif not self.last:
            self.last = True
            self.emit([-1, "end", 10**9], "end")

    def exhausted(self):
        return self.last

    def position(self):
        return [self.n, self.last]

    def seek(self, position):
        self.n, self.last = position


def event(n):
    return n, KEYS[n % len(KEYS)], n * 10 + n * 7919 % 49


def wanted(total, length, slide):
    events = [reference.Event(n, 0, key, ts) for n, key, ts in map(event, range(total))]
    return {where: len(numbers) for where, numbers in reference.timed(events, length, slide, 10**9).items()}


class Counts(StatefulWindowedBolt):
    output_fields = ["key", "end", "count"]
    window = Sliding(milliseconds(200), milliseconds(100))
    key_by = "key"
    timestamp_field = "ts"
    lag = milliseconds(50)
    watermark_interval = milliseconds(100)
    aggregate = Count()

    def process_window(self, window):
        self.emit([window.key, window.end, window.result])


class Full(WindowedBolt):
    """Windows without state, with more open keys than it may have."""

    output_fields = Counts.output_fields
    window = Tumbling(seconds(10))
    key_by = "n"
    timestamp_field = "ts"
    aggregate = Count()
    memory_limit = 20

    def process_window(self, window):
        self.emit([window.key, window.end, window.result])


def topology(tasks=2, bolt=Counts, conf=None):
    builder = TopologyBuilder()
    builder.set_spout("events", Events, 2)
    builder.set_bolt("counts", bolt, tasks).fields_grouping("events", "key")
    builder.set_bolt("all", Totals).global_grouping("counts")
    return builder.build("windows", conf)


class Totals(StatefulWindowedBolt):
    """A window of windows: their counts by end."""

    output_fields = ["end", "total"]
    window = Tumbling(milliseconds(100))
    key_by = "key"
    timestamp_field = "end"
    aggregate = Sum("count")

    def process_window(self, window):
        self.emit([window.end, window.result])
