"""Transactions on a real Storm, their state in its ZooKeeper: workers are killed, and every word counts once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import ROOT
from tests.soak import SOAK, soak_only
from tests.storm.conftest import give, wait_for, workers
from tests.transactional.history import assert_in_order
from tests.transactional.topologies import Database, counts_of

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

KILLS = 10 if SOAK else 1
TAKE = 50


@soak_only
@pytest.mark.timeout(600 + 150 * KILLS)
def test_words_are_counted_once_though_workers_are_killed(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    each = 2500 * (KILLS + 1)
    shutil.copy(ROOT / "tests" / "transactional" / "topologies.py", tmp_path / "transactions.py")
    (tmp_path / "on_storm.py").write_text("from transactions import many as topology\n")
    conf = {
        "test.database": str(tmp_path / "counts.sqlite"),
        "test.words": each,
        "test.take": TAKE,
        "topology.max.spout.pending": 3,
        "topology.message.timeout.secs": 5,
        "topology.workers": 2,
    }
    database = Database(conf)
    give(storm, tmp_path / "on_storm.py", "transactions", "--interpreter", sys.executable, **conf)

    def counted() -> int:
        return database.get("*")[0]

    for kill in range(KILLS):
        enough = 3 * each * (2 * kill + 1) // (2 * KILLS + 1)
        wait_for(lambda enough=enough: counted() > enough, "some words are counted")
        victim = random.choice(workers(storm))
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda victim=victim: len(set(workers(storm)) - {victim}) == 2, "there are two workers again")
        assert counted() < 3 * each, "it was killed in the middle"
    wait_for(lambda: counted() == 3 * each, "all words are counted")
    counts = database.counts()
    del counts["*"]
    assert counts == counts_of(each)
    assert_in_order(database.commits())
    database.close()
