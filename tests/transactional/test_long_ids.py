"""A transactional id or a topology's name of any length works, though it is part of the names of files."""

from __future__ import annotations

import pytest

from multilang.local import LocalCluster
from multilang.store.settings import state_file
from multilang.transactional import (
    MemoryTransactionalSpout,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from tests.patience import patient
from tests.transactional.spouts.topologies import PartialCount, Update


@pytest.mark.parametrize("id", ["a" * 120, "a" * 238, "é" * 300])
@pytest.mark.parametrize("own_file", [True, False])
def test_a_long_id_names_files_that_can_be_made(id, own_file, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    found = TransactionalMap(SqliteBacking(tmp_path / "counts.sqlite"))
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"} if own_file else {}
    for rows in (10, 15):
        builder = TransactionalTopologyBuilder(
            id, "rows", MemoryTransactionalSpout({0: [["moon"]] * rows}, ["word"], 4)
        )
        builder.set_bolt("partial", PartialCount).shuffle_grouping("rows")
        builder.set_bolt("update", Update(found)).global_grouping("partial")
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(builder.build("long")).wait(timeout=patient(60))
        assert found.get("moon") == rows
    found.close()


def test_long_names_have_files_of_their_own_and_short_ones_keep_theirs():
    names = ["a" * 240, "a" * 241, "a" * 300, "a" * 299 + "b", "é" * 300, "shop"]
    assert len({state_file(name) for name in names}) == len(names)
    assert all(len(state_file(name).rpartition("/")[2].encode()) <= 247 for name in names)
    assert state_file("shop").endswith("/shop.sqlite")
    assert state_file("a" * 240).endswith("/" + "a" * 240 + ".sqlite")
