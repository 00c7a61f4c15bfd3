"""Transactions in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from multilang.component.errors import ConfigError
from multilang.local import LocalCluster, TaskStartError
from multilang.state import StateError, StoreGoneError, owner, sqlite_file
from multilang.transactional import (
    PartitionedEmitter,
    PartitionedTransactionalSpout,
    TransactionalState,
    TransactionalTopologyBuilder,
)
from multilang.transactional.stores import open_state, sqlite
from multilang.transactional.stores.sqlite import SqliteTransactionalState
from tests.patience import patient
from tests.transactional.topologies import topology

ROOT = Path(__file__).parents[3]


@pytest.fixture
def conf(tmp_path):
    return {sqlite.PATH: str(tmp_path / "deep" / "transactions.sqlite"), "multilang.parent": "local"}


@pytest.fixture
def opened(conf):
    states = []

    def make(id="words", claims=False):
        states.append(open_state({**conf, "topology.transactional.id": id, "storm.id": "run-1"}))
        if claims:
            states[-1].claim()
        return states[-1]

    yield make
    for each in states:
        each.close()


def test_what_is_set_is_found_by_another_task_and_what_is_missing_is_none(opened):
    state, another = opened(claims=True), opened()
    assert isinstance(state, SqliteTransactionalState)
    assert state.get_data("user/0/1") is None
    assert state.list("user") == []
    state.delete("user/0/1")
    for txid in (1, 2, 10):
        state.set_data(f"user/0/{txid}", {"to": txid})
    state.set_data("user/0/2", [2, None, "é"])
    state.set_data("user/10/2", None)
    assert another.get_data("user/0/2") == [2, None, "é"]
    assert sorted(another.list("user/0")) == ["1", "10", "2"]
    assert sorted(another.list("user")) == ["0", "10"]
    assert another.list("use") == []


def test_what_is_deleted_is_gone_and_what_belongs_together_is_written_together(opened):
    state, another = opened(claims=True), opened()
    state.update({"user/0/1": 1, "user/0/2": 2, "user/1/2": {"to": 2}})
    state.delete("user/0/1")
    assert another.list("user/0") == ["2"]
    state.update({"user/0/3": 3}, ["user/0/2", "user/7/7"])
    assert another.list("user/0") == ["3"]


def test_the_last_of_each_is_that_of_the_highest_number(opened):
    state = opened(claims=True)
    assert state.last_of_each("user") == {}
    state.update({"user/0/9": "nine", "user/0/10": "ten", "user/12/3": None, "userland/5/5": 5})
    expected = {"0": "ten", "12": None}
    assert state.last_of_each("user") == expected
    assert TransactionalState.last_of_each(state, "user") == expected
    assert (
        state.last_of_each("user", 9) == TransactionalState.last_of_each(state, "user", 9) == {"0": "nine", "12": None}
    )
    assert state.last_of_each("user", 2) == TransactionalState.last_of_each(state, "user", 2) == {}


def test_ids_are_apart_in_one_file(opened):
    one, other = opened("one", claims=True), opened("one more", claims=True)
    one.set_data("coordinator/currtx", 7)
    assert other.get_data("coordinator/currtx") is None
    assert other.list("coordinator") == []


KILLED = """
import os, sys
from multilang.transactional.stores.sqlite import PATH, SqliteTransactionalState
state = SqliteTransactionalState({PATH: sys.argv[1]}, "words")
state.claim()
for txid in range(100):
    state.set_data("coordinator/currtx", txid)
    state.delete(f"coordinator/meta/{txid - 1}")
    state.set_data(f"coordinator/meta/{txid}", txid)
os.kill(os.getpid(), 9)
"""


def test_what_was_set_is_there_after_a_kill(conf, opened):
    killed = subprocess.run([sys.executable, "-c", KILLED, conf[sqlite.PATH]], cwd=ROOT)
    assert killed.returncode == -9
    state = opened()
    assert state.get_data("coordinator/currtx") == 99
    assert state.list("coordinator/meta") == ["99"]


CLAIMS = """
import sys
from multilang.transactional.stores.sqlite import PATH, SqliteTransactionalState
SqliteTransactionalState({PATH: sys.argv[1]}, "words").claim()
"""


def test_a_second_topology_of_the_same_file_is_refused_and_one_that_is_started_again_is_not(conf, opened, monkeypatch):
    state = opened()
    state.claim()
    other = subprocess.run([sys.executable, "-c", CLAIMS, conf[sqlite.PATH]], cwd=ROOT, capture_output=True, text=True)
    assert "InUseError: the file of transactions" in other.stderr
    assert f"is in use by topology 'topology' (process {os.getpid()} on " in other.stderr
    opened().claim()  # the coordinator's task was started again in this process


def test_a_second_topology_in_the_same_process_is_refused_until_the_first_one_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "CLAIM_SECS", 0.5)
    conf = {sqlite.PATH: str(tmp_path / "transactions.sqlite"), "test.database": str(tmp_path / "counts.sqlite")}
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(topology).wait(timeout=patient(60))
        with pytest.raises(
            TaskStartError, match=r"is in use by topology 'words' \(process \d+ on .*, since 20.*end that one first"
        ):
            cluster.submit(topology, name="second")
        cluster.kill("words")
        cluster.submit(topology, name="third").wait(timeout=patient(60))
    broken = TransactionalTopologyBuilder("words", "spout", Unfinished).build
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        with pytest.raises(TaskStartError, match="has no exhausted, no num_partitions method"):
            cluster.submit(broken("broken"))
        cluster.submit(topology).wait(timeout=patient(60))


class Unfinished(PartitionedTransactionalSpout):
    output_fields = ["tx"]

    def get_coordinator(self, conf, context):
        return DuckCoordinator()

    def get_emitter(self, conf, context):
        return PartitionedEmitter()


class DuckCoordinator:
    def is_ready(self):
        return True

    def initialize_transaction(self, txid, previous):
        return None

    def close(self):
        pass


def test_a_file_of_an_earlier_version_goes_on_with_the_epochs_that_its_starts_were(conf, opened):
    path = Path(conf[sqlite.PATH])
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE nodes (path TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID; "
            "INSERT INTO nodes VALUES ('words/coordinator/starts', '7'), ('words/coordinator/currtx', '20'), "
            "('a.b/coordinator/starts', '3'), ('words/user/0/19', '[1]'); "
            f"PRAGMA application_id = {0x4D4C5458}; PRAGMA user_version = 1;"
        )
    words, other = opened("words"), opened("a.b")
    assert (words.claim(), other.claim(), opened("new", claims=True).epoch) == (8, 4, 1)
    assert (words.get_data("coordinator/currtx"), words.list("coordinator")) == (20, ["currtx"])
    assert words.last_of_each("user") == {"0": [1]}


def test_who_is_stopped_in_the_midst_of_a_write_is_waited_for_and_told(conf, opened, monkeypatch):
    monkeypatch.setattr(sqlite_file, "WAIT_SECS", 0.3)
    state = opened(claims=True)
    with closing(sqlite3.connect(conf[sqlite.PATH], isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StateError, match=r"database is locked: another process has been writing.*let it go on, or end it"
        ):
            state.set_data("coordinator/currtx", 1)
    state.set_data("coordinator/currtx", 1)


def test_the_default_is_a_file_of_the_ids_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    state = open_state({"multilang.parent": "local", "topology.transactional.id": "words"})
    state.close()
    assert Path(state.path) == tmp_path / "transactional" / "words.sqlite"


def test_a_file_of_something_else_is_refused_and_a_wrong_path_is_named(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE nodes (path, value)")
    connection.close()
    with pytest.raises(StateError, match="no file of transactions"):
        SqliteTransactionalState({sqlite.PATH: str(path)}, "words")
    with pytest.raises(ConfigError, match="name a file"):
        SqliteTransactionalState({sqlite.PATH: 7}, "words")


def test_an_older_copy_is_noticed_at_the_next_write_and_nothing_is_written_to_it(opened):
    state = opened(claims=True)
    state.set_data("user/0/1", [1])
    with closing(sqlite3.connect(state.path)) as live, closing(sqlite3.connect(":memory:")) as copy:
        live.backup(copy)
        state.set_data("user/0/2", [2])
        copy.backup(live)
        for change in (lambda: state.set_data("user/0/3", [3]), lambda: state.delete("user/0/2"), state.verify):
            with pytest.raises(
                StoreGoneError, match=r"'words' in the .* was put back to an older copy while it was in use"
            ):
                change()
        assert state.list("user/0") == ["1"]


def test_who_claims_again_after_another_has_written_goes_on_from_that(opened):
    first, second = opened(claims=True), opened()
    first.set_data("coordinator/currtx", 20)
    second.claim()
    second.set_data("coordinator/currtx", 40)
    second.close()
    first.claim(again=True)
    first.set_data("coordinator/currtx", 41)
    one, other = opened(), opened()
    for task, value in ((one, 1), (other, 2), (one, 3)):
        task.enter(first.epoch, "0")
        task.set_data("user/0/1", value)
    assert first.get_data("user/0/1") == 3
