"""Checkpoints that take longer than the interval between them leave time for the rest, and the topology is drained."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from multilang import LocalCluster
from multilang.store.sqlite import SqliteStore
from tests.patience import patient
from tests.state.conftest import conf_of
from tests.state.test_shape import BASE, HALF, build, counted

if TYPE_CHECKING:
    from pathlib import Path

DISK_SECS = 0.02  # for one commit; a checkpoint has dozens


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "at least once"])
def test_a_topology_on_a_slow_disk_is_drained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:
    write = SqliteStore.compare_and_write

    def slowly(store: SqliteStore, *arguments: Any) -> bool:
        time.sleep(DISK_SECS)
        return write(store, *arguments)

    monkeypatch.setattr(SqliteStore, "compare_and_write", slowly)
    conf = {
        **conf_of("sqlite", None, tmp_path),  # a checkpoint every 0.1 s
        "topology.name": "shaped",
        "multilang.positions": str(tmp_path / "positions.sqlite"),
        "test.rows": HALF,
    }
    with LocalCluster(mode="inprocess") as cluster:
        cluster.submit(build({**BASE, "exact": exact}, conf)).wait(timeout=patient(60))
    found = counted(conf)
    assert {letter: found[letter] for letter in "abcde"} == dict.fromkeys("abcde", 2)
