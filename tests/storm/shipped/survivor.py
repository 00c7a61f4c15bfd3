"""Numbers that must all be acked in the end, whatever dies meanwhile: a spout that keeps a journal, and slow bolts."""

from __future__ import annotations

import os
import time
from typing import Any

from multilang import BasicBolt, Context, ReliableSpout, TopologyBuilder, Tuple

PAUSE = 0.002  # seconds for each number: something is under way whenever something dies


def tell(conf: dict[str, Any], context: Context) -> None:
    """Leave the numbers of this process and of its worker where the test finds them."""
    path = os.path.join(conf["test.folder"], f"{context.component}-{context.task_index}")
    with open(f"{path}.part", "w") as file:
        file.write(f"{os.getpid()} {os.getppid()}")
    os.replace(file.name, path)


class Numbers(ReliableSpout):
    """0, 1, 2 ... until a file ``stop`` is in the folder, then those that a spout before this one left open."""

    output_fields = ["n"]
    max_replays = None

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        tell(conf, context)
        self.stop = os.path.join(conf["test.folder"], "stop")
        self.journal = open(os.path.join(conf["test.folder"], "journal"), "a+", buffering=1)
        self.journal.seek(0)
        emitted: set[int] = set()
        acked: set[int] = set()
        for line in self.journal:
            kind, n = line.split()
            (emitted if kind == "emitted" else acked).add(int(n))
        self.again = sorted(emitted - acked)
        self.n = max(emitted, default=-1) + 1

    def next_tuple(self) -> None:
        if self.again:
            n = self.again.pop()
        elif os.path.exists(self.stop):
            return
        else:
            n, self.n = self.n, self.n + 1
            self.journal.write(f"emitted {n}\n")  # first: what is not known to be emitted is not asked for again
        time.sleep(PAUSE)
        self.emit([n], tup_id=n)

    def acked(self, tup_id: Any) -> None:
        self.journal.write(f"acked {tup_id}\n")


class Pass(BasicBolt):
    output_fields = ["n"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        tell(conf, context)

    def process(self, tup: Tuple) -> None:
        self.emit([tup["n"]])


class Sum(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        tell(conf, context)

    def process(self, tup: Tuple) -> None:
        time.sleep(PAUSE)


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("pass", Pass, parallelism=2).shuffle_grouping("numbers")
builder.set_bolt("sum", Sum, parallelism=2).fields_grouping("pass", "n")
topology = builder.build(
    "survivor",
    conf={"topology.workers": 2, "topology.max.spout.pending": 5000, "topology.message.timeout.secs": 5},
)
