"""Transactions under seeded faults: tasks, ackers and the coordinator die at any event, messages are late, user code fails.

Every word is counted once all the same. hypothesis draws the seeds, how much goes wrong, and how many transactions are under
way; a failing run is printed, and replays. 100 runs, 5000 with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import FailedException
from multilang.coordination import COORD_STREAM
from multilang.coordination.coordinated import TICK_SECS
from multilang.local import LocalCluster
from multilang.local.faults import Faults
from multilang.transactional import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from multilang.transactional.names import COMMIT_STREAM
from tests.soak import SOAK
from tests.transactional.history import assert_in_order
from tests.transactional.kept import kept_conf
from tests.transactional.topologies import (
    COUNTS,
    PARTITIONS,
    Database,
    OpaqueTotal,
    OpaqueUpdateCounts,
    PartialCount,
    Total,
    UpdateCounts,
    build,
    opaque,
    topology,
)

TASKS = 2  # of a component, at the most
RUNS = 5000 if SOAK else 60
INCARNATION = re.compile("words/[0-9a-f]{16}")  # a name that no seed may repeat: two topologies could have the same

chances = st.sampled_from([0.0, 0.0005, 0.002, 0.01])
schedules = st.fixed_dictionaries(
    {
        "crash": chances,
        "acker_crash": chances,
        "late": chances,
        "limit": st.integers(1, 25),
    }
)


_id = id


class Failing:
    """Mixed into batch bolts. Fails with the chance ``test.fails`` before and after each step, and sees the order of attempts."""

    newest = {}  # by what a task emits with, of each start another, and txid
    older = []  # attempts that came to a task after a newer one of the same transaction

    def may_fail(self):
        if random.random() < self.conf.get("test.fails", 0):  # drawn from the run's seed
            raise FailedException("not this time")

    def initialize(self, conf, context, collector, id):
        start = (_id(collector), id.txid)
        newest, _ = self.newest.get(start, (id, collector))
        if id.attempt < newest.attempt:
            self.older.append((newest, id))
        self.newest[start] = (id, collector)
        super().initialize(conf, context, collector, id)

    def process(self, tup):
        self.may_fail()
        super().process(tup)

    def finish_batch(self):
        self.may_fail()
        super().finish_batch()
        self.may_fail()


def failing(topology, spout, update, total):
    """The same, of bolts that fail."""
    parts = [type(f"Failing{bolt.__name__}", (Failing, bolt), {}) for bolt in (update, total, PartialCount)]
    return build(spout(PARTITIONS, ["word"], 10), *parts[:2], f"failing {topology.name}", partial=parts[2])


FAILING = {
    "transactional": failing(topology, MemoryTransactionalSpout, UpdateCounts, Total),
    "opaque": failing(opaque, OpaqueMemoryTransactionalSpout, OpaqueUpdateCounts, OpaqueTotal),
}


def run(topology, database, seed, pending, faults, fails=0.0):
    conf = kept_conf(database)
    conf |= {"test.fails": fails} | {"topology.max.spout.pending": pending, "topology.message.timeout.secs": 5}
    with LocalCluster(mode="simulated", conf=conf, seed=seed, faults=faults) as cluster:
        running = cluster.submit(topology)
        running.wait(timeout=24 * 3600)
    return running


def assert_phases(log):
    """No commit phase of an attempt begins by what was heard of another attempt, and each batch is finished once by a task."""
    processed = set()
    reports = Counter()
    for event in log:
        if event.what == "ack":
            processed.add(event.detail)
        elif event.what == "process" and event.detail[1] == COMMIT_STREAM:
            assert str(event.detail[2][0]) in processed, event
        elif event.what == "process" and event.detail[1] == COORD_STREAM:
            reports[event.task, event.detail[0], str(event.detail[2][0])] += 1
    assert max(reports.values()) <= TASKS, "a task reported the end of a batch twice"


@pytest.mark.timeout(300 + 2 * RUNS)
@pytest.mark.parametrize("which", ["transactional", "opaque"])
def test_every_word_is_counted_once_and_transactions_are_committed_in_order(which, tmp_path):
    databases = (str(tmp_path / f"{n}.sqlite") for n in range(10**9))

    @settings(max_examples=RUNS // 2)
    @given(seed=st.integers(0, 2**32 - 1), pending=st.integers(1, 4), faults=schedules, fails=chances)
    def check(seed, pending, faults, fails):
        path = next(databases)
        Failing.newest.clear()
        Failing.older.clear()
        done = run(FAILING[which], path, seed, pending, Faults(spouts=True, **faults), fails)
        assert_phases(done.log)
        assert Failing.older == []
        found = Database({"test.database": path})
        counts, commits = found.counts(), found.commits()
        found.close()
        os.unlink(path)
        total = counts.pop("*")
        assert counts == COUNTS
        assert total == sum(COUNTS.values())
        assert_in_order(commits)

    check()


@pytest.mark.parametrize("which", [topology, opaque], ids=["transactional", "opaque"])
def test_nothing_is_replayed_where_nothing_goes_wrong(which, tmp_path):
    """Whatever comes first: the commit phase begins when all of the processing phase is over."""
    for seed in range(20):
        path = str(tmp_path / f"{seed}.sqlite")
        done = run(which, path, seed, 3, None)
        assert sum(counters.failed for counters in done.stats.values()) == 0, seed
        found = Database({"test.database": path})
        commits = [(task, txid) for task, txid, _ in found.commits()]
        found.close()
        assert len(commits) == len(set(commits)), seed


class FailsOnce(UpdateCounts):
    """The commit of every second transaction fails in one of two tasks, at its first attempt."""

    attempts = {}

    def finish_batch(self):
        first = self.attempts.setdefault((self.database, self.id.txid), self.id)
        if self.id.txid % 2 == 0 and self.id == first and self.context.task_index == 0:
            raise FailedException("not this time")
        super().finish_batch()


fails_once = build(MemoryTransactionalSpout(PARTITIONS, ["word"], 10), FailsOnce, Total)


def test_what_a_failed_attempt_left_is_let_go_when_the_next_one_comes(tmp_path):
    """Not when it expires, 45 seconds later: until then the topology would not be drained."""
    done = run(fails_once, str(tmp_path / "counts.sqlite"), 7, 3, None)
    assert len([event for event in done.log if event.what == "fail"]) >= 4
    assert done.virtual.now() < TICK_SECS


def test_the_same_seed_gives_the_same_run(tmp_path):
    faults = Faults(crash=0.005, acker_crash=0.001, late=0.002, spouts=True)
    runs = [run(topology, str(tmp_path / name), 7, 3, faults) for name in ("one", "other")]
    logs = [[INCARNATION.sub("words/...", str(event)) for event in each.log] for each in runs]
    assert logs[0] == logs[1]
    assert runs[0].faults_so_far > 5
