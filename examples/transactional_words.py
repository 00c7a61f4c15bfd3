"""Storm's transactional words: how often each word came, and how many words came how often, both exact at any time.

    multilang run examples/transactional_words.py --top buckets:bucket:words

Two maps change in one transaction. A word that comes for the tenth time leaves the bucket 0-9 and enters 10-19.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from multilang import BasicBolt, BatchBolt, Context, Tuple
from multilang.coordination import BatchCollector
from multilang.state import state_file
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)

BUCKET = 10
TAKE = 3
SENTENCES = [
    "the cow jumped over the moon and the man went to the store and bought some candy",
    "four score and seven years ago the man bought the moon",
    "how many apples can the cow eat and how many can the man",
]
WORDS = {partition: [[word] for word in sentence.split()] * 4 for partition, sentence in enumerate(SENTENCES)}


class KeyedCountUpdater(BatchBolt, Committer):
    """Counts words, and emits how often each word of the batch had come before and has come now."""

    output_fields = ["tx", "word", "count", "before"]

    def __init__(self, counts: TransactionalMap) -> None:
        self.counts = counts

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.words: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        self.words[tup["word"]] += 1

    def finish_batch(self) -> None:
        # The count before comes from the count now, so that a batch that was counted already gives the same tuples.
        for word, count in self.counts.update(self.id, self.words).items():
            self.emit([self.id, word, count, count - self.words[word]])


class Bucketize(BasicBolt):
    """Turns counts into buckets: one that a word has left, and one that it has entered."""

    output_fields = ["tx", "bucket", "change"]

    def process(self, tup: Tuple) -> None:
        attempt, _, count, before = tup.values
        if before == 0:
            self.emit([attempt, count // BUCKET, 1])
        elif count // BUCKET != before // BUCKET:
            self.emit([attempt, count // BUCKET, 1])
            self.emit([attempt, before // BUCKET, -1])


class BucketCountUpdater(BatchBolt, Committer):
    """Counts the words in each bucket."""

    output_fields = ["tx", "bucket", "words"]

    def __init__(self, buckets: TransactionalMap) -> None:
        self.buckets = buckets

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.changes: Counter[int] = Counter()

    def process(self, tup: Tuple) -> None:
        self.changes[tup["bucket"]] += tup["change"]

    def finish_batch(self) -> None:
        for bucket, words in self.buckets.update(self.id, self.changes).items():
            self.emit([self.id, f"{bucket * BUCKET}-{bucket * BUCKET + BUCKET - 1}", words])


def stored(name: str) -> TransactionalMap:
    """Return a map in the topology's file."""
    return TransactionalMap(SqliteBacking(state_file("transactional-words"), name))


spout = MemoryTransactionalSpout(WORDS, ["word"], TAKE)
builder = TransactionalTopologyBuilder("transactional-words", "spout", spout, parallelism=2)
builder.set_bolt("count", KeyedCountUpdater(stored("counts")), 2).fields_grouping("spout", "word")
builder.set_bolt("bucketize", Bucketize, 2).none_grouping("count")
builder.set_bolt("buckets", BucketCountUpdater(stored("buckets")), 2).fields_grouping("bucketize", "bucket")
topology = builder.build(conf={"topology.max.spout.pending": 2})
