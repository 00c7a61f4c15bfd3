"""Components in Java between components in Python: Storm's own, one that a worker makes and two that are made at the submission."""

from __future__ import annotations

from typing import Any

from multilang import BasicBolt, Context, JavaBolt, JavaObject, JavaSpout, ReliableSpout, TopologyBuilder, Tuple

WORDS = 200


class Words(ReliableSpout):
    output_fields = ["word"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.left = WORDS

    def next_tuple(self) -> None:
        if self.left:
            self.left -= 1
            self.emit([f"word-{self.left}"])


class Told(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.path = conf["test.told"]

    def process(self, tup: Tuple) -> None:
        with open(self.path, "a") as file:
            file.write(f"{tup.component} {' '.join(map(str, tup.values))}\n")


class Some(BasicBolt):
    output_fields = ["word"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.left = 5

    def process(self, tup: Tuple) -> None:
        if self.left:
            self.left -= 1
            self.emit([tup["word"]])


builder = TopologyBuilder()
builder.set_spout("words", Words)
fields = JavaObject("org.apache.storm.tuple.Fields", "word")
identity = JavaObject("org.apache.storm.testing.IdentityBolt", fields)
same = JavaObject("org.apache.storm.topology.BasicBoltExecutor", identity)  # which makes a bolt of a basic one
builder.set_bolt("same", JavaBolt(same, output_fields=["word"])).shuffle_grouping("words")
builder.set_bolt(
    "number", JavaBolt("org.apache.storm.testing.TestGlobalCount", output_fields=["global-count"])
).global_grouping("same")
random = JavaSpout(JavaObject("org.apache.storm.testing.TestWordSpout", True), output_fields=["word"])
builder.set_spout("random", random, tasks=1)
builder.set_bolt("some", Some).shuffle_grouping("random")
told = builder.set_bolt("told", Told).shuffle_grouping("number")
told.shuffle_grouping("same").shuffle_grouping("some")
topology = builder.build("with-java")
