"""Transactions under seeded faults: tasks, ackers and the coordinator die at any event, messages are late.

Every word is counted once all the same. hypothesis draws the seeds, how much goes wrong, and how many transactions are under
way; a failing run is printed, and replays. 500 runs, ten times as many with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import os
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.local import LocalCluster
from multilang.local.faults import Faults
from multilang.transactional import TransactionalState
from tests.transactional.topologies import COUNTS, Database, opaque, topology

RUNS = 5000 if os.environ.get("MULTILANG_SOAK") == "full" else 500

chances = st.sampled_from([0.0, 0.0005, 0.002, 0.01])
schedules = st.fixed_dictionaries(
    {
        "crash": chances,
        "acker_crash": chances,
        "late": chances,
        "limit": st.integers(1, 25),
    }
)


class Kept(TransactionalState):
    """In memory, where a task that is started again finds it: when something is stored matters here, and not where."""

    trees: ClassVar[dict] = {}

    def __init__(self, conf, id):
        super().__init__(conf, id)
        self.tree = self.trees.setdefault(conf["test.database"], {})

    def get_data(self, path):
        return self.tree.get(path)

    def set_data(self, path, value):
        self.tree[path] = value

    def delete(self, path):
        self.tree.pop(path, None)

    def list(self, path):
        below = f"{path}/"
        return list({key[len(below) :].partition("/")[0] for key in self.tree if key.startswith(below)})

    def close(self):
        pass


def run(topology, database, seed, pending, faults):
    Kept.trees.clear()
    conf = {
        "multilang.transactional.store": f"{__name__}.Kept",
        "test.database": database,
        "topology.max.spout.pending": pending,
        "topology.message.timeout.secs": 5,
    }
    with LocalCluster(mode="simulated", conf=conf, seed=seed, faults=faults) as cluster:
        running = cluster.submit(topology)
        running.wait(timeout=24 * 3600)
    return running


@pytest.mark.parametrize("which", ["transactional", "opaque"])
def test_every_word_is_counted_once_and_transactions_are_committed_in_order(which, tmp_path):
    databases = (str(tmp_path / f"{n}.sqlite") for n in range(10**9))

    @settings(max_examples=RUNS // 2)
    @given(seed=st.integers(0, 2**32 - 1), pending=st.integers(1, 4), faults=schedules)
    def check(seed, pending, faults):
        path = next(databases)
        run(opaque if which == "opaque" else topology, path, seed, pending, Faults(spouts=True, **faults))
        found = Database({"test.database": path})
        counts, commits = found.counts(), found.commits()
        found.close()
        os.unlink(path)
        total = counts.pop("*")
        assert counts == COUNTS
        assert total == sum(COUNTS.values())
        assert_in_order(commits)

    check()


def assert_in_order(commits):
    """Of each task: no transaction is left out, and none comes after a later one; a repeated one is another attempt."""
    for task in {task for task, *_ in commits}:
        mine = [(txid, attempt) for each, txid, attempt in commits if each == task]
        txids = [txid for txid, _ in mine]
        assert txids == sorted(txids), mine
        assert set(txids) == set(range(1, txids[-1] + 1)), mine
        assert len(set(mine)) == len(mine), mine


def test_the_same_seed_gives_the_same_run(tmp_path):
    faults = Faults(crash=0.005, acker_crash=0.001, late=0.002, spouts=True)
    runs = [run(topology, str(tmp_path / name), 7, 3, faults) for name in ("one", "other")]
    assert [str(event) for event in runs[0].log] == [str(event) for event in runs[1].log]
    assert runs[0].faults_so_far > 5
