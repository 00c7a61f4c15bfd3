"""Topologies through which the rows of a source go here, also in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Context, FailedException, TopologyBuilder, Tuple
from spark_bridge import ListSource

if TYPE_CHECKING:
    from multilang import Spout, Topology


class Asked(ListSource):
    """Stands somewhere else, as far as who declares its spout knows."""

    asks = True


class Echo(BasicBolt):
    """Says each row it has processed."""

    output_fields = ["row"]

    def process(self, tup: Tuple) -> None:
        self.emit([list(tup.values)])


class FailsFirst(Echo):
    """Fails every third row the first time, every ninth twice."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.seen: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        key = str(tup.values)
        times = self.seen[key] = self.seen.get(key, 0) + 1
        number = len(self.seen)
        if (times == 1 and not number % 3) or (times == 2 and not number % 9):
            raise FailedException
        super().process(tup)


class FailsAlways(Echo):
    """Fails the row "poison"."""

    def process(self, tup: Tuple) -> None:
        if tup[0] == "poison":
            raise FailedException
        super().process(tup)


class TooMuch(Echo):
    """Dies of nothing, but takes its time: what is under way stays so for a while."""

    def process(self, tup: Tuple) -> None:
        import time

        time.sleep(0.0003)
        super().process(tup)


class SlowAtFirst(Echo):
    """Takes its time with the first rows of its process."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.slow = 200

    def process(self, tup: Tuple) -> None:
        import time

        if self.slow:
            self.slow -= 1
            time.sleep(0.02)
        super().process(tup)


def through(spout: Spout, bolt: type[Echo] = Echo, tasks: int = 1, **conf: Any) -> Topology:
    """rows -> bolt; more of the conf with underscores for dots."""
    builder = TopologyBuilder()
    builder.set_spout("rows", spout, parallelism=tasks)
    builder.set_bolt("echo", bolt).shuffle_grouping("rows")
    settings = {"topology.max.spout.pending": 200, "topology.message.timeout.secs": 120}
    return builder.build("rows", conf={**settings, **{key.replace("_", "."): value for key, value in conf.items()}})
