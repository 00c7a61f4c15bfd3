"""A word count over any source, whose transactions fail now and then: what is replayed is counted once."""

from __future__ import annotations

import zlib
from collections import Counter

from multilang import BatchBolt
from multilang.component.errors import FailedException
from multilang.transactional import Committer, TransactionalTopologyBuilder


def fails(attempt, component):
    """One attempt of eight, by chance of its own: another attempt may succeed."""
    return zlib.crc32(f"{component} {attempt}".encode()) % 8 == 0


class PartialCount(BatchBolt):
    output_fields = ["tx", "word", "count"]

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup.values[-1]] += 1

    def finish_batch(self):
        if fails(self.id, "partial"):
            raise FailedException("by chance")
        self.emit_many([self.id, word, count] for word, count in self.counts.items())


class Update(BatchBolt, Committer):
    """Counts in ``map``, and fails before or after that."""

    def __init__(self, map):
        self.map = map

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += tup["count"]

    def finish_batch(self):
        if fails(self.id, "before"):
            raise FailedException("by chance")
        self.map.update(self.id, self.counts)
        if fails(self.id, "after"):
            raise FailedException("by chance")


def word_count(spout, map):
    builder = TransactionalTopologyBuilder("words", "spout", spout, parallelism=2)
    builder.set_bolt("partial", PartialCount, 2).shuffle_grouping("spout")
    builder.set_bolt("update", Update(map), 2).fields_grouping("partial", "word")
    return builder.build(conf={"topology.max.spout.pending": 3, "topology.message.timeout.secs": 20})
