"""The global count of Storm's page on transactional topologies: every word counts once, whatever dies or is replayed.

    multilang run examples/global_count.py --top sum:what:sum

A file has the count and the position in the words, so a second run counts nothing again.
"""

from __future__ import annotations

from typing import Any

from multilang import BatchBolt, Context, Tuple
from multilang.coordination import BatchCollector
from multilang.state import state_file
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)

WORDS = {
    0: [["cat"], ["dog"], ["chicken"], ["cat"], ["dog"], ["apple"]],
    1: [["cat"], ["dog"], ["apple"], ["banana"]],
    2: [["cat"], ["cat"], ["cat"], ["cat"], ["cat"], ["dog"], ["dog"], ["dog"], ["dog"]],
}


class BatchCount(BatchBolt):
    """Counts the tuples of the batch that come to this task."""

    output_fields = ["tx", "count"]

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.count = 0

    def process(self, tup: Tuple) -> None:
        self.count += 1

    def finish_batch(self) -> None:
        self.emit([self.id, self.count])


class UpdateGlobalCount(BatchBolt, Committer):
    """Adds up the parts. When it is the batch's turn to be committed, it adds the sum to the count, once."""

    output_fields = ["tx", "what", "sum"]

    def __init__(self, counts: TransactionalMap) -> None:
        self.counts = counts

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.sum = 0

    def process(self, tup: Tuple) -> None:
        self.sum += tup["count"]

    def finish_batch(self) -> None:
        count = self.counts.update(self.id, {"words": self.sum})["words"]
        self.emit([self.id, "words", count])


builder = TransactionalTopologyBuilder("global-count", "spout", MemoryTransactionalSpout(WORDS, ["word"], 3), 3)
builder.set_bolt("partial-count", BatchCount, 5).none_grouping("spout")
counts = TransactionalMap(SqliteBacking(state_file("global-count"), "counts"))
builder.set_bolt("sum", UpdateGlobalCount(counts)).global_grouping("partial-count")
topology = builder.build(conf={"topology.max.spout.pending": 3})
