"""Writes down, of each emit, what the spout was told of its id before the emit returned."""

from __future__ import annotations

import json
from typing import Any

from multilang import BasicBolt, Context, FailedException, Spout, TopologyBuilder, Tuple

WAYS: list[dict[str, Any]] = [{}, {"need_task_ids": True}, {"stream": "other"}]
IDS = [1, "a", 2.5, "\u00e9", 2**40, "last"]


class Prompt(Spout):
    output_fields = ["n"]
    output_streams = {"other": ["n"]}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.path = conf["test.file"]
        self.left = [(tup_id, way) for way in WAYS for tup_id in IDS]
        self.told: list[Any] = []

    def next_tuple(self) -> None:
        if self.left:
            tup_id, way = self.left.pop(0)
            self.told = []
            self.emit([1], tup_id, **way)
            with open(self.path, "a") as file:
                file.write(json.dumps([tup_id, self.told]) + "\n")

    def ack(self, tup_id: Any) -> None:
        self.told.append(["ack", tup_id])

    def fail(self, tup_id: Any) -> None:
        self.told.append(["fail", tup_id])


class Fails(BasicBolt):
    def process(self, tup: Tuple) -> None:
        raise FailedException("which nobody hears of")


builder = TopologyBuilder()
builder.set_spout("prompt", Prompt)
builder.set_bolt("fails", Fails).shuffle_grouping("prompt").shuffle_grouping("prompt", "other")
topology = builder.build("prompt", conf={"topology.acker.executors": 0})
