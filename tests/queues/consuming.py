"""A topology that reads a queue, whose spout kills itself before the emits that it is told of."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from multilang import BasicBolt, FailedException, Topology, TopologyBuilder
from multilang.component.reliable import ReliableSpout
from multilang.queues import KafkaSpout, RedisStreamSpout


class Dies(ReliableSpout):
    """Before its emit of each number of ``deaths``, once in all; ``folder`` has a file for each death."""

    deaths: tuple[int, ...] = ()
    folder = ""

    def emit(self, values, tup_id=None, *more):
        if int(values[0]) in self.deaths:
            marker = Path(self.folder) / f"died-{values[0]}"
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().emit(values, tup_id, *more)


class DyingRedis(Dies, RedisStreamSpout):
    def __init__(self, port: int, deaths: tuple[int, ...] = (), folder: str = "", **options) -> None:
        super().__init__("orders", ["number"], "shop", port=port, **options)
        self.deaths = deaths
        self.folder = folder


class DyingKafka(Dies, KafkaSpout):
    def __init__(self, servers: str, topic: str, deaths: tuple[int, ...] = (), folder: str = "", **options) -> None:
        super().__init__(servers, topic, "shop", **options)
        self.deaths = deaths
        self.folder = folder


class Written(BasicBolt):
    """Appends each number to a file before it is acked; fails some the first time. Before ``deaths``, it dies."""

    def __init__(self, path: str, deaths: tuple[int, ...] = ()) -> None:
        self.path = path
        self.deaths = deaths
        self.failed: set[str] = set()

    def process(self, tup):
        number = tup[0]
        marker = Path(f"{self.path}-died-{number}")
        if int(number) in self.deaths and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if int(number) % 10 == 7 and number not in self.failed:
            self.failed.add(number)
            raise FailedException("the first time")
        with open(self.path, "a") as file:
            file.write(f"{number}\n")


def orders(spout: ReliableSpout, written: str, tasks: int = 1, deaths: tuple[int, ...] = ()) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("orders", spout, tasks)
    builder.set_bolt("written", Written(written, deaths), 2).shuffle_grouping("orders")
    return builder.build(name="orders", conf={"topology.max.spout.pending": 20})
