"""Transactions that count words in maps. $HANDOVER_MAPS: the SQLite file of the maps."""

from __future__ import annotations

import os
from collections import Counter

from multilang import BatchBolt
from multilang.transactional import (
    Committer,
    OpaqueMap,
    OpaquePartitionedTransactionalSpout,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from tests.transactional.topologies import Words, WordsCoordinator, WordsEmitter

_FILE = os.environ.get("HANDOVER_MAPS", os.devnull)


class Update(BatchBolt, Committer):
    """Adds the words of a batch to ``map``, which is the class's, so that its steps are traced."""

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def finish_batch(self):
        self.map.update(self.id, self.counts)


def updating(kind, path):
    """The bolt, with a map of this kind."""
    return type("UpdateMap", (Update,), {"map": kind(SqliteBacking(path))})


class OpaqueWordsEmitter(WordsEmitter):
    """Takes as many words of each partition as it draws: a batch that comes again is another."""

    def num_partitions(self):
        return 3

    def emit_partition_batch(self, attempt, collector, partition, last_metadata):
        start = last_metadata[1] if last_metadata else 0
        end = min(start + self.take + attempt.attempt % 3, self.words)
        super().emit_partition_batch(attempt, collector, partition, [start, end])
        return [start, end]


class OpaqueWords(OpaquePartitionedTransactionalSpout):
    output_fields = ["tx", "word"]

    def get_coordinator(self, conf, context):
        return WordsCoordinator(conf["test.words"])

    def get_emitter(self, conf, context):
        return OpaqueWordsEmitter(conf["test.words"], conf["test.take"])


def build(name, spout, update, tasks):
    builder = TransactionalTopologyBuilder(name, "spout", spout, parallelism=2)
    bolt = builder.set_bolt("update", update, tasks)
    if tasks == 1:
        bolt.global_grouping("spout")
    else:
        bolt.fields_grouping("spout", "word")
    return builder.build()


transactional = build("transactional", Words, updating(TransactionalMap, _FILE), 2)
opaque = build("opaque", OpaqueWords, updating(OpaqueMap, _FILE), 1)
