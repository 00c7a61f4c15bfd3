"""Topologies whose spout keeps its position, and kills itself at chosen places."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from multilang import BasicBolt, LocalCluster, Topology, TopologyBuilder
from multilang.state import PositionSpout


class Numbers(PositionSpout):
    """``count`` numbers, ``each`` in one turn; dies before the emits that ``deaths`` names, each once."""

    output_fields = ["number"]
    save_secs = 0.0

    def __init__(self, count: int, each: int = 1, deaths: tuple[int, ...] = (), folder: str = "") -> None:
        self.count = count
        self.each = each
        self.deaths = deaths
        self.folder = folder

    def initialize(self, conf, context):
        self.at = context.task_index
        self.step = len(context.tasks(context.component))
        self.emits = 0

    def position(self):
        return {"at": self.at}

    def seek(self, position):
        self.at = position["at"]

    def next_tuple(self):
        for _ in range(self.each):
            if self.at >= self.count:
                return
            self._die()
            number, self.at = self.at, self.at + self.step
            self.emit([number], tup_id=number)

    def exhausted(self):
        return self.at >= self.count

    def _die(self) -> None:
        if self.at in self.deaths:
            try:
                os.close(os.open(Path(self.folder) / f"died-{self.at}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)


class Written(BasicBolt):
    """Appends each number to a file before it is acked."""

    def __init__(self, path: str, fails: int = 0) -> None:
        self.path = path
        self.fails = fails

    def process(self, tup):
        if self.fails and tup["number"] % self.fails == 0 and not os.path.exists(f"{self.path}-{tup['number']}"):
            Path(f"{self.path}-{tup['number']}").touch()
            raise RuntimeError("the first time")
        with open(self.path, "a") as file:
            file.write(f"{tup['number']}\n")


def numbers(spout: Numbers, written: str, tasks: int = 1, fails: int = 0) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout, tasks)
    builder.set_bolt("written", Written(written, fails), 2).shuffle_grouping("numbers")
    return builder.build(name="numbers", conf={"topology.max.spout.pending": 20})


def main() -> None:
    """``python -m tests.state.positioned COUNT WRITTEN POSITIONS DEATH``: one run, in this process alone."""
    import sys

    count, written, positions, death = sys.argv[1:]
    spout = Numbers(int(count), 7, (int(death),), os.path.dirname(written))
    with LocalCluster(mode="inprocess") as cluster:
        cluster.submit(numbers(spout, written), conf={"multilang.positions": positions}).wait(timeout=60)


if __name__ == "__main__":
    main()
