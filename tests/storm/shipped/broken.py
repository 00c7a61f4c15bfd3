"""A topology with a bolt that fails where the conf ``test.fault`` has it, and whose tasks note that they were opened."""

from __future__ import annotations

from typing import Any

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple


def note(conf: dict[str, Any], what: str) -> None:
    if "test.opened" in conf:
        with open(conf["test.opened"], "a") as file:
            file.write(f"{what}\n")


class One(Spout):
    output_fields = ["n"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.sent = False
        note(conf, "one")

    def next_tuple(self) -> None:
        if not self.sent:
            self.emit([1], tup_id=1)
            self.sent = True


class Broken(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.fault = conf.get("test.fault")
        note(conf, "broken")
        if self.fault == "initialize":
            raise ValueError("no database at nowhere")

    def process(self, tup: Tuple) -> None:
        if self.fault == "process":
            raise KeyError("no such customer")


builder = TopologyBuilder()
builder.set_spout("one", One)
builder.set_bolt("broken", Broken).shuffle_grouping("one")
topology = builder.build("broken")
