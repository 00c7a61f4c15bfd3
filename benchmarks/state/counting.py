"""The word count with state and without, on the embedded cluster.

`python counting.py MODE STORE SENTENCES [REDIS PORT]` prints seconds as JSON; STORE: none, memory, sqlite, redis.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cluster"))

from sentences import sentence
from word_count import Sentences, Split

from multilang import BasicBolt, KeyValueState, StatefulBasicBolt, TopologyBuilder, Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang import Context


class Count(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        count = self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, count])


class StatefulCount(StatefulBasicBolt):
    output_fields = ["word", "count"]

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.counts = state

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        count = self.counts.get(word, 0) + 1
        self.counts.put(word, count)
        self.emit([word, count])


class Total(BasicBolt):
    """Keeps the counts to check: the greatest count of each word is its last."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}
        self.path = os.path.join(conf["benchmark.folder"], "counts")

    def process(self, tup: Tuple) -> None:
        word, count = tup.values
        self.counts[word] = max(count, self.counts.get(word, 0))

    def close(self) -> None:
        with open(self.path, "w") as file:
            json.dump(self.counts, file)


def build(counter: type[BasicBolt], name: str):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", counter, parallelism=2).fields_grouping("split", "word")
    builder.set_bolt("total", Total).global_grouping("count")
    # The same number in flight in both. With state, the tuples of two intervals wait for their commit.
    return builder.build(name, conf={"topology.max.spout.pending": 200_000, "topology.message.timeout.secs": 120})


stateless = build(Count, "word-count")
stateful = build(StatefulCount, "word-count")


def provider(store: str, folder: str, port: str) -> dict[str, object]:
    config: dict[str, object] = {}
    if store == "sqlite":
        config = {"path": os.path.join(folder, "state.sqlite")}
    elif store == "redis":
        config = {"jedisPoolConfig": {"host": "127.0.0.1", "port": int(port)}}
    return {"topology.state.provider": store, "topology.state.provider.config": config}


def main() -> None:
    from embedded import cpu_seconds

    from multilang.loading.topologies import load_topology
    from multilang.local import LocalCluster

    mode, store, sentences = sys.argv[1], sys.argv[2], int(sys.argv[3])
    topology = load_topology(f"{os.path.abspath(__file__)}:{'stateless' if store == 'none' else 'stateful'}")
    with tempfile.TemporaryDirectory(prefix="multilang-bench-state-") as folder:
        conf: dict[str, object] = {"benchmark.sentences": sentences, "benchmark.folder": folder}
        if store != "none":
            conf |= provider(store, folder, sys.argv[4])
        cpu = cpu_seconds()
        with LocalCluster(mode=mode) as cluster:
            begin = time.perf_counter()
            running = cluster.submit(topology, conf=conf)
            running.wait(until="drained", timeout=600)
            wall = time.perf_counter() - begin
            running.kill()
        cpu = cpu_seconds() - cpu
        with open(os.path.join(folder, "counts")) as file:
            counted = Counter(json.load(file))
    due = Counter(word for n in range(sentences) for word in sentence(n).split(" "))
    print(
        json.dumps({"wall": wall, "cpu": cpu, "right": counted == due, "counted": counted.total(), "due": due.total()})
    )


if __name__ == "__main__":
    main()
