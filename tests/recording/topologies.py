"""Topologies that are recorded."""

from __future__ import annotations

from multilang import BasicBolt, Bolt, ReliableSpout, Spout, StatefulBasicBolt, Stream, TopologyBuilder
from multilang.state import ReplayableSpout


class Mixed(ReliableSpout):
    """Reliable and unreliable tuples, on two streams, with values of all kinds; two tasks."""

    output_streams = {"default": Stream(["task", "n", "value"]), "odd": Stream(["n"])}

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.n = 0

    def next_tuple(self):
        if self.exhausted():
            return
        self.n += 1
        value = [None, 1.5, "ä\u2028", {"a": [1]}, True, 2**62][self.n % 6]
        self.emit([self.context.task_index, self.n, value], tup_id=f"id {self.n}")
        if self.n % 2:
            self.emit([self.n], stream="odd")

    def exhausted(self):
        return self.n >= 25


class Targeted(Spout):
    """Unreliable tuples for the task that it names."""

    output_streams = {"default": Stream(["n"], direct=True)}

    def initialize(self, conf, context):
        self.left = list(range(12))
        self.targets = context.tasks("sink")

    def next_tuple(self):
        if self.left:
            n = self.left.pop()
            self.emit([n], direct_task=self.targets[n % 2])

    def exhausted(self):
        return not self.left


class Sink(BasicBolt):
    output_fields = ["task", "values"]

    def process(self, tup):
        self.emit([self.context.task_index, tup.values])


class FailsFirst(Bolt):
    """Fails every third tuple the first time."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.failed = set()

    def process(self, tup):
        n = tup["n"]
        if n % 3 == 0 and n not in self.failed:
            self.failed.add(n)
            self.fail(tup)
        else:
            self.emit([n], anchors=[tup])
            self.ack(tup)


def mixed():
    builder = TopologyBuilder()
    builder.set_spout("mixed", Mixed, parallelism=2)
    builder.set_spout("targeted", Targeted)
    sink = builder.set_bolt("sink", Sink, parallelism=2)
    sink.fields_grouping("mixed", "n").shuffle_grouping("mixed", stream="odd").direct_grouping("targeted")
    return builder.build("mixed")


class Numbers(ReplayableSpout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.n = 0

    def next_tuple(self):
        if self.n < 40:
            self.n += 1
            self.emit([self.n])

    def exhausted(self):
        return self.n >= 40

    def position(self):
        return self.n

    def seek(self, position):
        self.n = position


class Sum(StatefulBasicBolt):
    output_fields = ["sum"]

    def init_state(self, state):
        self.state = state

    def process(self, tup):
        total = self.state.get("sum", 0) + tup["n"]
        self.state.put("sum", total)
        self.emit([total])


def failing():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("fails", FailsFirst).shuffle_grouping("numbers")
    return builder.build("failing")


def exact():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("sum", Sum).shuffle_grouping("numbers")
    return builder.build("exact", conf={"multilang.state.alignment": "exact", "topology.message.timeout.secs": 5})
