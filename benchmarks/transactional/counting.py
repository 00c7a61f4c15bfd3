"""One word count on the embedded cluster: `python counting.py MODE WORDS [BATCH PENDING]` prints seconds as JSON.

With BATCH (words) and PENDING it is transactional, with its transactions in an SQLite file. Without them, each sentence
is a tuple that is acked. Both count in the tasks' memory, so that only the transactions make a difference.
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
from word_count import Split

from multilang import BasicBolt, BatchBolt, TopologyBuilder, Tuple
from multilang.transactional import Coordinator, Emitter, TransactionalSpout, TransactionalTopologyBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang import Context

PER_SENTENCE = 10


class Batches(TransactionalSpout):
    output_fields = ["tx", "sentence"]

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> Any:
        return BatchCoordinator(conf["benchmark.sentences"], conf["benchmark.batch"])

    def get_emitter(self, conf: dict[str, Any], context: Context) -> Any:
        return BatchEmitter()


class BatchCoordinator(Coordinator):
    def __init__(self, sentences: int, batch: int) -> None:
        self.sentences = sentences
        self.batch = batch
        self.end = 0

    def is_ready(self) -> bool:
        return self.end < self.sentences

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        start, self.end = self.end, min(self.end + self.batch, self.sentences)
        return [start, self.end]

    def exhausted(self, metadata: Any) -> bool:
        return self.end >= self.sentences


class BatchEmitter(Emitter):
    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        for n in range(*metadata):
            collector.emit([attempt, sentence(n)])


class SplitInBatch(BasicBolt):
    output_fields = ["tx", "word"]

    def process(self, tup: Tuple) -> None:
        attempt, text = tup.values
        for word in text.split(" "):
            self.emit([attempt, word])


class Count(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: Counter[str] = Counter()
        self.path = os.path.join(conf["benchmark.folder"], f"counts-{context.task}")

    def process(self, tup: Tuple) -> None:
        self.counts[tup.values[0]] += 1

    def close(self) -> None:
        with open(self.path, "w") as file:
            json.dump(self.counts, file)


counts: dict[str, Counter[str]] = {}  # by the file that they are written to, as tasks may share this process


class CountInBatch(BatchBolt):
    def initialize(self, conf: dict[str, Any], context: Context, collector: Any, id: Any) -> None:
        self.words: Counter[str] = Counter()
        self.path = os.path.join(conf["benchmark.folder"], f"counts-{context.task}")
        self.is_last = id.txid * conf["benchmark.batch"] >= conf["benchmark.sentences"]

    def process(self, tup: Tuple) -> None:
        self.words[tup.values[1]] += 1

    def finish_batch(self) -> None:
        mine = counts.setdefault(self.path, Counter())
        mine.update(self.words)
        if self.is_last:
            with open(self.path, "w") as file:
                json.dump(mine, file)


def build_plain() -> Any:
    from word_count import Sentences

    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
    return builder.build("word-count", {"topology.max.spout.pending": 500})


def build_transactional() -> Any:
    builder = TransactionalTopologyBuilder("word-count", "sentences", Batches)
    builder.set_bolt("split", SplitInBatch, parallelism=2).shuffle_grouping("sentences")
    builder.set_committer_bolt("count", CountInBatch, parallelism=2).fields_grouping("split", "word")
    return builder.build()


plain = build_plain()
transactional = build_transactional()


def main() -> None:
    from embedded import cpu_seconds

    from multilang.loading.topologies import load_topology
    from multilang.local import LocalCluster

    mode, words, *more = sys.argv[1:]
    sentences = int(words) // PER_SENTENCE
    topology = load_topology(f"{os.path.abspath(__file__)}:{'transactional' if more else 'plain'}")
    with tempfile.TemporaryDirectory(prefix="multilang-bench-tx-") as folder:
        conf: dict[str, object] = {"benchmark.sentences": sentences, "benchmark.folder": folder}
        if more:
            conf["benchmark.batch"] = int(more[0]) // PER_SENTENCE
            conf["topology.max.spout.pending"] = int(more[1])
            conf["multilang.transactional.store"] = f"sqlite://{folder}/transactions.sqlite"
        cpu = cpu_seconds()
        with LocalCluster(mode=mode) as cluster:
            begin = time.perf_counter()
            running = cluster.submit(topology, conf=conf)
            running.wait(timeout=600)
            wall = time.perf_counter() - begin
            running.kill()
        cpu = cpu_seconds() - cpu
        counted: Counter[str] = Counter()
        for name in os.listdir(folder):
            if name.startswith("counts-"):
                with open(os.path.join(folder, name)) as file:
                    counted.update(json.load(file))
    due = Counter(word for n in range(sentences) for word in sentence(n).split(" "))
    print(json.dumps({"wall": wall, "cpu": cpu, "right": counted == due}))


if __name__ == "__main__":
    main()
