"""Transactions that were cut off in the middle go on in a topology of another shape: all is counted once, or it is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from multilang import BatchBolt
from multilang.component.errors import UnrecoverableError
from multilang.local import LocalCluster
from multilang.transactional import (
    Committer,
    Coordinator,
    Emitter,
    MemoryTransactionalSpout,
    OpaqueMap,
    OpaqueMemoryTransactionalSpout,
    SqliteBacking,
    TransactionalSpout,
    TransactionalTopologyBuilder,
)
from tests.patience import patient
from tests.soak import chosen

WORDS = ["the", "cow", "jumped", "over", "moon"]
ROWS = 24
PARTITIONS = {p: [[WORDS[(3 * p + n) % len(WORDS)]] for n in range(ROWS)] for p in range(3)}
COUNTS = Counter(row[0] for rows in PARTITIONS.values() for row in rows)


class Whole(TransactionalSpout):
    """Reads the same rows without partitions: what it has read is the metadata of its transactions."""

    output_fields = ["tx", "word"]
    rows = [row for rows in PARTITIONS.values() for row in rows]

    def get_coordinator(self, conf, context):
        return WholeCoordinator()

    def get_emitter(self, conf, context):
        return WholeEmitter(context.task_index, len(context.tasks(context.component)))


class WholeCoordinator(Coordinator):
    def initialize_transaction(self, txid, previous):
        start = previous[1] if previous else 0
        return [start, start + 12]

    def exhausted(self, metadata):
        return metadata is not None and metadata[1] >= len(Whole.rows)


class WholeEmitter(Emitter):
    def __init__(self, task, tasks):
        self.task, self.tasks = task, tasks

    def emit_batch(self, attempt, metadata, collector):
        for row in Whole.rows[slice(*metadata)][self.task :: self.tasks]:
            collector.emit([attempt, *row])


class CutOff(UnrecoverableError):
    """The topology ends here, in the middle of a commit."""


class Update(BatchBolt, Committer):
    """Counts in a map. At the ``ends``-th batch the topology ends before or behind the update, which is not committed then."""

    left = [0]
    before = [False]

    def __init__(self, counts):
        self.counts = counts

    def initialize(self, conf, context, collector, id):
        self.batch = Counter()

    def process(self, tup):
        self.batch[tup["word"]] += 1

    def finish_batch(self):
        self.left[0] -= 1
        if not self.left[0] and self.before[0]:
            raise CutOff("here")
        self.counts.update(self.id, self.batch)
        if not self.left[0]:
            raise CutOff("here")


SPOUTS = {
    "same": lambda take: MemoryTransactionalSpout(PARTITIONS, ["word"], take),
    "opaque": lambda take: OpaqueMemoryTransactionalSpout(PARTITIONS, ["word"], take),
    "whole": lambda _: Whole(),
}
BASE = {"kind": "same", "spout": "spout", "tasks": 2, "take": 4, "update": "update", "pending": 3}


def run(folder, shape, ends=0, before=False):
    Update.left[0], Update.before[0] = ends, before
    counts = OpaqueMap(SqliteBacking(str(folder / "counts.sqlite")))
    builder = TransactionalTopologyBuilder(
        "words", shape["spout"], SPOUTS[shape["kind"]](shape["take"]), shape["tasks"]
    )
    builder.set_bolt(shape["update"], Update(counts)).global_grouping(shape["spout"])
    conf = {
        "multilang.transactional.store": f"sqlite://{folder}/transactions.sqlite",
        "topology.max.spout.pending": shape["pending"],
    }
    try:
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(builder.build("words")).wait(timeout=patient(60))
        return counts.multi_get(WORDS)
    finally:
        counts.close()


CHANGES = {
    "spout renamed": {"spout": "source"},
    "fewer tasks": {"tasks": 1},
    "more tasks": {"tasks": 3},
    "other batches": {"take": 3},
    "fewer at once": {"pending": 1},
    "bolt renamed": {"update": "count"},
    "same to opaque": {"kind": "opaque"},
    "opaque to same": {"kind": "same"},
    "all": {"spout": "source", "tasks": 3, "take": 5, "update": "count", "kind": "opaque", "pending": 1},
}


@pytest.mark.parametrize("name", chosen(CHANGES, "opaque to same", "all", "fewer tasks"))
@pytest.mark.parametrize("ends", chosen([1, 2, 3], 2))
def test_transactions_that_were_cut_off_go_on_in_another_shape(tmp_path, name, ends):
    before = {**BASE, "kind": "opaque"} if name == "opaque to same" else BASE
    with pytest.raises(Exception, match="CutOff"):
        run(tmp_path, before, ends)
    assert run(tmp_path, {**before, **CHANGES[name]}) == COUNTS


BATCHES = ROWS // BASE["take"]


@pytest.mark.parametrize("ends", chosen(range(1, BATCHES + 1), BATCHES))
@pytest.mark.parametrize(("before", "after"), chosen([("opaque", "same"), ("same", "opaque")], ("opaque", "same")))
def test_a_batch_that_was_read_and_not_counted_is_counted_by_the_other_form(tmp_path, before, after, ends):
    with pytest.raises(Exception, match="CutOff"):
        run(tmp_path, {**BASE, "kind": before}, ends, before=True)
    assert run(tmp_path, {**BASE, "kind": after}) == COUNTS


@pytest.mark.parametrize(
    ("before", "after"), [("whole", "same"), ("whole", "opaque"), ("same", "whole"), ("opaque", "whole")]
)
def test_a_spout_of_another_kind_that_would_begin_at_the_beginning_is_refused(tmp_path, before, after):
    with pytest.raises(Exception, match="CutOff"):
        run(tmp_path, {**BASE, "kind": before}, 2)
    with pytest.raises(Exception, match=r"were begun by a \w+, and \w+ is a \w+, .*all would be counted again"):
        run(tmp_path, {**BASE, "kind": after})
    assert run(tmp_path, {**BASE, "kind": before}) == COUNTS
