"""A topology that is stopped while another run of it takes over, finishes, and then wakes up: everything counts once.

At every named step of the protocol this is done in tests/handover; here the moment is drawn. Once in
CI, 25 times for each store and kind with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from multilang.local import LocalCluster, LocalClusterError
from multilang.settings import TRANSACTIONS
from multilang.store import open_store
from multilang.store.claims import stored_owner
from multilang.transactional import OpaqueMap, SqliteBacking, TransactionalMap
from multilang.transactional.names import CURRENT, ID
from multilang.transactional.stores import open_state
from tests.patience import patient
from tests.servers import wait_for
from tests.soak import SOAK
from tests.transactional.overlapping import transactional
from tests.transactional.topologies import counts_of

ROOT = Path(__file__).parents[2]
SEEDS = 25 if SOAK else 1
EACH, TAKE = 600, 10
CASES = [("zookeeper", "transactional")]
if SOAK:
    CASES += [("sqlite", "opaque"), ("sqlite", "transactional"), ("zookeeper", "opaque")]
KINDS = {"transactional": TransactionalMap, "opaque": OpaqueMap}


def started(kind, conf):
    command = [sys.executable, "-m", "tests.transactional.overlapping", kind, json.dumps(conf)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(120 + 90 * SEEDS)
@pytest.mark.parametrize(("store", "kind"), CASES)
def test_a_topology_that_wakes_up_after_its_successor_changes_nothing(store, kind, tmp_path, request):
    for number in range(SEEDS):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        conf = {
            "topology.max.spout.pending": 3,
            "test.words": EACH,
            "test.take": TAKE,
            "test.maps": str(tmp_path / f"{number} counts.sqlite"),
        }
        if store == "sqlite":
            own = {"multilang.transactional.store": f"sqlite://{tmp_path}/{number} transactions.sqlite"}
        else:
            root = {"transactional.zookeeper.root": f"/overlap-{kind}-{number}"}
            own = {**request.getfixturevalue("zookeeper").conf, **root}
        overlap(kind, {**conf, **own}, random.Random(seed))


def stop(process, files):
    """Not in the midst of a write to a file: SQLite's lock is the process's then, and others wait until that is gone."""
    while True:
        process.send_signal(signal.SIGSTOP)
        if not any(is_locked(path) for path in files):
            return
        process.send_signal(signal.SIGCONT)


def is_locked(path):
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
    return False


def overlap(kind, conf, chance):
    found = KINDS[kind](SqliteBacking(conf["test.maps"], KINDS[kind].__name__))
    words = counts_of(EACH)

    def counted():
        return sum(found.multi_get(words).values())

    scheme, _, path = conf.get(TRANSACTIONS, "").partition("://")
    files = [conf["test.maps"], *([path] if scheme == "sqlite" else [])]
    old = started(kind, conf)
    try:
        enough = chance.randrange(3 * EACH // 2)
        wait_for(lambda: counted() > enough, "the first one counts")
        stop(old, [path for path in files if path])
        assert counted() < 3 * EACH, "it was stopped too late"
        new = started(kind, conf)
        _, said = new.communicate(timeout=patient(90))
        assert new.returncode == 0, said
        assert found.multi_get(words) == words
        old.send_signal(signal.SIGCONT)
        _, said = old.communicate(timeout=patient(90))
    finally:
        old.kill()
        old.wait()
    assert found.multi_get(words) == words
    assert old.returncode not in (0, None)
    last = said.strip().splitlines()[-1]
    assert "was taken over by topology 'words'" in last
    assert "nothing more is written" in last


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_a_topology_whose_transactions_are_taken_over_ends_with_one_line_and_is_not_started_again(mode, tmp_path):
    conf = {
        "multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite",
        "test.words": 50_000,
        "test.take": TAKE,
        "test.maps": str(tmp_path / "counts.sqlite"),
    }
    with LocalCluster(mode=mode, conf=conf) as cluster:
        run = cluster.submit(transactional)
        with closing(open_state({**conf, ID: "words"})) as looks:
            run.wait(until=lambda _: looks.get_data(CURRENT), timeout=patient(60))
        with closing(open_store(conf[TRANSACTIONS])) as store:
            run_of_it = stored_owner(store, "transactions/words").run
        another = {**conf, ID: "words", "storm.id": run_of_it}
        with closing(open_state(another)) as taker:
            taker.claim()
            with pytest.raises(
                LocalClusterError, match=r"OutdatedError in component 'spout/coordinator'.*taken over by"
            ):
                run.wait(timeout=patient(60))
            assert taker.get_data(CURRENT) > 1
        assert [task.restarts for task in run.tasks if task.component == "spout/coordinator"] == [0]
        assert sum("taken over by" in each.message for each in run.errors) == 1
