"""The file of a topology goes away under it: that ends it with the file's name, and it can be started again in this process."""

from __future__ import annotations

import os
import shutil
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from multilang import BasicBolt, BatchBolt, LocalCluster, TopologyBuilder
from multilang.local import LocalClusterError
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from spark_bridge import ListSource, PartitionSpout
from tests.patience import patient
from tests.soak import combined, sampled
from tests.state.topologies import topology as stateful

if TYPE_CHECKING:
    from pathlib import Path

    from multilang import Topology

FILES = {
    "state": "state.sqlite",
    "transactions": "transactions.sqlite",
    "map": "map.sqlite",
    "watermarks": "watermarks.sqlite",
}
ENDLESS = 10**9


class Update(BatchBolt, Committer):
    """Has its map in the class, as the manual shows it: it lives as long as this process."""

    stored: TransactionalMap[int]

    def initialize(self, conf: Any, context: Any, collector: Any, id: Any) -> None:
        self.id = id

    def process(self, tup: Any) -> None:
        pass

    def finish_batch(self) -> None:
        self.stored.update(self.id, {"batches": 1})


class Sink(BasicBolt):
    def process(self, tup: Any) -> None:
        pass


def topology_of(what: str, folder: Path) -> Topology:
    if what == "state":
        return stateful
    if what == "watermarks":
        builder = TopologyBuilder()
        source = ListSource([list(range(200_000)), list(range(200_000))])
        builder.set_spout("rows", PartitionSpout(source, store=str(folder / FILES[what]), group="g"))
        builder.set_bolt("sink", Sink).shuffle_grouping("rows")
        return builder.build("watermarks")
    Update.stored = getattr(Update, "stored", None) or TransactionalMap(SqliteBacking(folder / FILES["map"], "m"))
    spout = MemoryTransactionalSpout({0: [[n] for n in range(100_000)]}, ["n"], batch_size=1)
    transactions = TransactionalTopologyBuilder("updates", "spout", spout)
    transactions.set_bolt("update", Update).global_grouping("spout")
    return transactions.build()


@pytest.mark.parametrize(
    ("what", "how"),
    [
        *combined(list(FILES), ["deleted", "replaced", "emptied"]),
        *sampled(product(["state", "transactions", "map"], ["without its log"]), 3),  # that of watermarks has none
    ],
)
def test_a_topology_whose_file_went_away_ends_and_is_started_again(what: str, how: str, tmp_path: Path) -> None:
    if "stored" in vars(Update):
        del Update.stored
    path = tmp_path / FILES[what]
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / FILES["state"])},
        "topology.state.checkpoint.interval.ms": 50,
        "multilang.transactional.store": f"sqlite://{tmp_path / FILES['transactions']}",
        "topology.max.spout.pending": 10,
        "test.sentences": ENDLESS,
    }
    for life in (1, 2):
        if life == 2 and what == "transactions":  # they begin anew, and the map has those of the first life
            with LocalCluster("inprocess", conf=conf) as cluster:
                run = cluster.submit(topology_of(what, tmp_path))
                with pytest.raises(
                    LocalClusterError, match=r"belongs to earlier transactions of 'updates', .* began anew"
                ):
                    run.wait(lambda run: False, timeout=patient(60))
            del Update.stored
            for each in (*tmp_path.glob("map.sqlite*"), *tmp_path.glob("transactions.sqlite*")):
                each.unlink()
        with LocalCluster("inprocess", conf=conf) as cluster:
            run = cluster.submit(topology_of(what, tmp_path))
            run.wait(lambda run: any(counters.acked > 100 for counters in run.counters.values()), timeout=60)
            if life == 2:
                break
            if how == "deleted":
                path.unlink()
            elif how == "without its log":
                (tmp_path / f"{FILES[what]}-wal").unlink()
            elif how == "replaced":
                shutil.copy(path, tmp_path / "copy")
                os.replace(tmp_path / "copy", path)
            else:
                path.write_bytes(b"")
            with pytest.raises(
                LocalClusterError, match=rf"{path}(-wal)? (was deleted, renamed, emptied or replaced|is damaged)"
            ):
                run.wait(lambda run: False, timeout=patient(60))
        if how != "deleted":
            for each in tmp_path.glob(f"{FILES[what]}*"):  # nothing that fits together is there any more
                each.unlink()
