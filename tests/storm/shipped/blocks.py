"""Numbers that travel in blocks, by all groupings, and the sink's task for each."""

import json

from multilang import BasicBolt, ReliableSpout, Stream, TopologyBuilder

NUMBERS = 3000


class Numbers(ReliableSpout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = list(range(context.task_index, NUMBERS, len(context.tasks(context.component))))

    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop()])


class Part(BasicBolt):
    output_fields = ["n", "key"]
    output_streams = {"again": ["n"], "named": Stream(["n"], direct=True)}

    def initialize(self, conf, context):
        self.sinks = context.tasks("sink")
        assert context.targets["default"]["sink"] == {"type": "FIELDS", "fields": ["key"]}, context.targets

    def process(self, tup):
        n = tup["n"]
        tasks = self.emit([n, f"it's {n % 10}"], need_task_ids=True)
        assert len(tasks) == 2, tasks
        self.emit([n], stream="again")
        self.emit([n], stream="named", direct_task=self.sinks[n % len(self.sinks)])


class Sink(BasicBolt):
    def initialize(self, conf, context):
        self.file = open(f"{conf['test.file']}.{context.component}", "a")
        self.index = context.task_index
        self.block = 0

    def process(self, tup):
        self.file.write(json.dumps([tup.stream, self.index, *tup.values, ":" in tup.id]) + "\n")
        self.file.flush()


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers, parallelism=2)
builder.set_bolt("part", Part, parallelism=2).shuffle_grouping("numbers")
sink = builder.set_bolt("sink", Sink, parallelism=3).fields_grouping("part", "key")
sink.all_grouping("part", stream="again").direct_grouping("part", stream="named")
builder.set_bolt("one", Sink, parallelism=2).global_grouping("part")
topology = builder.build("blocks", conf={"topology.max.spout.pending": 500, "multilang.exchange": "block"})
