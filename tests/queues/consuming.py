"""A topology that reads a Redis Stream, whose spout kills itself before the emits that it is told of."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from multilang import BasicBolt, FailedException, Topology, TopologyBuilder
from multilang.queues import RedisStreamSpout


class Dying(RedisStreamSpout):
    """``deaths``: numbers before whose emit it dies, each once in all."""

    def __init__(self, port: int, deaths: tuple[int, ...] = (), folder: str = "", **options) -> None:
        super().__init__("orders", ["number"], "shop", port=port, **options)
        self.deaths = deaths
        self.folder = folder

    def emit(self, values, tup_id=None, *more):
        if int(values[0]) in self.deaths:
            marker = Path(self.folder) / f"died-{values[0]}"
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().emit(values, tup_id, *more)


class Written(BasicBolt):
    """Appends each number to a file before it is acked; fails some the first time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.failed: set[str] = set()

    def process(self, tup):
        number = tup["number"]
        if int(number) % 10 == 7 and number not in self.failed:
            self.failed.add(number)
            raise FailedException("the first time")
        with open(self.path, "a") as file:
            file.write(f"{number}\n")


def orders(spout: RedisStreamSpout, written: str, tasks: int = 1) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("orders", spout, tasks)
    builder.set_bolt("written", Written(written), 2).shuffle_grouping("orders")
    return builder.build(name="orders", conf={"topology.max.spout.pending": 20})
