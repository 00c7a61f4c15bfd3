"""The cost of coordination for each tuple: `python -m benchmarks.drpc.overhead [TUPLES] [ROUNDS]`.

Two topologies of the same bolts, of which one is coordinated, run in turn on the embedded cluster. One bolt spreads a
request into many tuples, and two tasks receive them. CPU seconds are those of all processes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from statistics import median
from typing import Any

from multilang import BasicBolt, LocalCluster, ReliableSpout, TopologyBuilder
from multilang.coordination import COORD_STREAM, SINGLE, CoordinatedBolt

PER_REQUEST = 500


class Requests(ReliableSpout):
    output_fields = ["id", "n"]

    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.left = conf["benchmark.requests"]

    def next_tuple(self) -> None:
        if self.left:
            self.left -= 1
            self.emit([self.left, PER_REQUEST], tup_id=self.left)

    def exhausted(self) -> bool:
        return not self.left


class Spread(BasicBolt):
    output_fields = ["id", "value"]

    def process(self, tup: Any) -> None:
        for value in range(tup[1]):
            self.emit([tup[0], value])


class Take(BasicBolt):
    output_fields = ["id", "value"]

    def process(self, tup: Any) -> None:
        self.emit([tup[0], tup[1] + 1])


class Sink(BasicBolt):
    def process(self, tup: Any) -> None:
        pass


def build(coordinated: bool, name: str) -> Any:
    def around(bolt: Any, *sources: str) -> Any:
        return CoordinatedBolt(bolt, dict.fromkeys(sources, SINGLE)) if coordinated else bolt

    builder = TopologyBuilder()
    builder.set_spout("requests", Requests)
    builder.set_bolt("spread", around(Spread())).shuffle_grouping("requests")
    take = builder.set_bolt("take", around(Take(), "spread"), 2).fields_grouping("spread", "value")
    sink = builder.set_bolt("sink", Sink, 2).shuffle_grouping("take")
    if coordinated:
        take.direct_grouping("spread", stream=COORD_STREAM)
        sink.direct_grouping("take", stream=COORD_STREAM)
    return builder.build(name, {"topology.max.spout.pending": 8, "topology.message.timeout.secs": 600})


plain = build(False, "plain")
coordinated = build(True, "coordinated")


def cpu_secs() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure(topology: Any, mode: Any, requests: int) -> tuple[float, float]:
    before = cpu_secs()
    with LocalCluster(mode) as cluster:
        began = time.perf_counter()
        run = cluster.submit(topology, conf={"benchmark.requests": requests})
        run.wait(timeout=600)
        wall = time.perf_counter() - began
        assert run.counters["requests"].acked == requests
    return wall, cpu_secs() - before


def main() -> None:
    requests = (int(sys.argv[1]) if len(sys.argv) > 1 else 50_000) // PER_REQUEST
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for mode in ("process", "inprocess"):
        pairs = [(measure(plain, mode, requests), measure(coordinated, mode, requests)) for _ in range(rounds)]
        ratios = sorted(with_it[1] / without[1] for without, with_it in pairs)
        tuples = requests * PER_REQUEST
        print(
            json.dumps(
                {
                    "mode": mode,
                    "tuples": tuples,
                    "CPU ratio": round(median(ratios), 2),
                    "least": round(ratios[0], 2),
                    "greatest": round(ratios[-1], 2),
                    "plain us/tuple": round(1e6 * median(pair[0][1] for pair in pairs) / tuples, 1),
                }
            )
        )


if __name__ == "__main__":
    main()
