"""Bolts behind one another, which one process runs on Storm, too, where the conf says so."""

import json
import os

from multilang import BasicBolt, Bolt, ReliableSpout, TopologyBuilder

NUMBERS = 600


class Numbers(ReliableSpout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = list(range(context.task_index, NUMBERS, len(context.tasks(context.component))))

    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop()])


class Three(BasicBolt):
    """Makes three of each number, and tells at each tick who it is."""

    output_fields = ["n", "source"]
    output_streams = {"ticks": ["of"]}

    def initialize(self, conf, context):
        assert context.targets["default"].keys() == {"asks"}, context.targets
        self.log("three was started")
        self.told = False

    def process(self, tup):
        if tup["n"] == 5:
            self.report_error("five")
        for _ in range(3):
            self.emit([tup["n"], tup.component])

    def process_tick(self, tup):
        self.emit([self.context.component], stream="ticks")


class Asks(Bolt):
    """Keeps its tuples until a timer, in which it asks who gets what it makes of them."""

    output_fields = ["n", "source"]

    def initialize(self, conf, context):
        self.kept = []
        self.others = {*context.tasks("plus"), *context.tasks("sink")}
        self.set_timer(0.05, self.give, every=0.05)

    def process(self, tup):
        assert tup.component == "three"
        self.kept.append(tup)

    def give(self):
        mine, self.kept = self.kept, []
        for tup in mine:
            tasks = self.emit(tup.values, anchors=[tup], need_task_ids=True)
            assert len(tasks) == 2, tasks
            assert self.others.issuperset(tasks), tasks
            self.ack(tup)


class Plus(BasicBolt):
    output_fields = ["n", "source"]

    def process(self, tup):
        self.emit([tup["n"] + NUMBERS, tup.component])


class Sink(BasicBolt):
    def initialize(self, conf, context):
        self.file = open(f"{conf['test.file']}.{context.task_index}", "a")
        self.tasks = {task: id for id in ("three", "asks", "plus") for task in context.tasks(id)}

    def process(self, tup):
        row = [tup.component, self.tasks[tup.task], tup.stream, *tup.values]
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


class Pids(BasicBolt):
    def initialize(self, conf, context):
        self.file = open(f"{conf['test.file']}.pids", "a")
        self.file.write(f"{context.component} {os.getpid()}\n")
        self.file.flush()

    def process(self, tup):
        pass


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers, parallelism=2)
builder.set_bolt("three", Three, 2, conf={"topology.tick.tuple.freq.secs": 1}).shuffle_grouping("numbers")
builder.set_bolt("asks", Asks, 2).local_or_shuffle_grouping("three")
builder.set_bolt("plus", Plus, 2).local_or_shuffle_grouping("asks")
builder.set_bolt("pids", Pids, 2).local_or_shuffle_grouping("plus")
sink = builder.set_bolt("sink", Sink, parallelism=2).fields_grouping("plus", "n").fields_grouping("asks", "n")
sink.all_grouping("three", stream="ticks")
topology = builder.build("chained", conf={"topology.max.spout.pending": 100, "multilang.chaining": "local"})
