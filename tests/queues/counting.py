"""Counts a topic's messages by a state, in one process; the trace kills it at the step that $KILL_AT says, by its number."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

from multilang import LocalCluster, StatefulBasicBolt, Topology, TopologyBuilder
from multilang.queues import KafkaSpout
from tests.patience import paced, patient

_steps = count(1)


def at_step(_namespace: str, _step: str, _txid: int) -> None:
    if next(_steps) == int(os.environ.get("KILL_AT", "0")):
        os.kill(os.getpid(), signal.SIGKILL)


class Tally(StatefulBasicBolt):
    """Counts how often each message came."""

    def init_state(self, state):
        self.seen = state

    def process(self, tup):
        self.seen.put(tup[0], self.seen.get(tup[0], 0) + 1)


def counting(spout: KafkaSpout, tasks: int = 1) -> Topology:
    spout.commit_secs = 0.0
    builder = TopologyBuilder()
    builder.set_spout("orders", spout, tasks)
    builder.set_bolt("tally", Tally).global_grouping("orders")
    return builder.build("counting")


def conf_in(folder: str) -> dict[str, object]:
    return {
        "topology.name": "counting",
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": f"{folder}/state/state.sqlite"},
        "topology.state.checkpoint.interval.ms": 10,
        "topology.max.spout.pending": 5,
        "multilang.positions": f"{folder}/positions.sqlite",
    }


def main(servers: str, topic: str, folder: str) -> None:
    conf = {**conf_in(folder), "multilang.trace": "tests.queues.counting.at_step"}
    with LocalCluster("inprocess", conf=conf) as cluster:
        cluster.submit(counting(KafkaSpout(servers, topic, "shop", session_secs=paced(0.5)))).wait(timeout=patient(60))


if __name__ == "__main__":
    main(*sys.argv[1:])
