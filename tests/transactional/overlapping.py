"""A topology that counts into a map, in a process of its own: ``python -m tests.transactional.overlapping NAME CONF``."""

from __future__ import annotations

import json
import sys
from collections import Counter

from multilang import BatchBolt
from multilang.local import LocalCluster
from multilang.transactional import (
    Committer,
    OpaqueMap,
    OpaquePartitionedTransactionalSpout,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from tests.patience import patient
from tests.transactional.topologies import Words, WordsCoordinator, WordsEmitter


class CountInMap(BatchBolt, Committer):
    """``test.maps``: the path of a map."""

    kind = TransactionalMap
    maps = {}

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()
        path = conf["test.maps"]
        if path not in self.maps:
            self.maps[path] = self.kind(SqliteBacking(path, self.kind.__name__))
        self.map = self.maps[path]

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def finish_batch(self):
        self.map.update(self.id, self.counts)


class CountInOpaqueMap(CountInMap):
    kind = OpaqueMap
    maps = {}


class OpaqueEmitterOfWords(WordsEmitter):
    def num_partitions(self):
        return 3

    def emit_partition_batch(self, attempt, collector, partition, last_metadata):
        start = last_metadata[1] if last_metadata else 0
        end = min(start + self.take, self.words)
        super().emit_partition_batch(attempt, collector, partition, [start, end])
        return [start, end]


class OpaqueWords(OpaquePartitionedTransactionalSpout):
    output_fields = ["tx", "word"]

    def get_coordinator(self, conf, context):
        return WordsCoordinator(conf["test.words"])

    def get_emitter(self, conf, context):
        return OpaqueEmitterOfWords(conf["test.words"], conf["test.take"])


def build(spout, update):
    builder = TransactionalTopologyBuilder("words", "spout", spout, parallelism=2)
    builder.set_bolt("update", update).global_grouping("spout")
    return builder.build()


transactional = build(Words, CountInMap)
opaque = build(OpaqueWords, CountInOpaqueMap)


def main():
    topology, conf = globals()[sys.argv[1]], json.loads(sys.argv[2])
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(topology).wait(timeout=patient(300))


if __name__ == "__main__":
    main()
