"""The state of transactions in each store, and the store that a conf names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from multilang.component.errors import ConfigError
from multilang.local import LocalCluster, TaskStartError
from multilang.settings import TRANSACTIONS
from multilang.state import StateError
from multilang.store import claims, open_store
from multilang.store.claims import OWNER
from multilang.transactional import PartitionedEmitter, PartitionedTransactionalSpout, TransactionalTopologyBuilder
from multilang.transactional.names import ID
from multilang.transactional.state import OutdatedError
from multilang.transactional.stores import check_state, open_state, store_of
from tests.patience import patient
from tests.transactional.kept import kept_conf
from tests.transactional.topologies import topology

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["memory", "sqlite", "redis", "zookeeper"])
def conf(request, tmp_path):
    if request.param == "memory":
        return kept_conf(str(tmp_path))
    if request.param == "sqlite":
        return {"multilang.store": f"sqlite://{tmp_path}/deep/shop.sqlite"}
    if request.param == "redis":
        return {"multilang.store": f"redis://127.0.0.1:{request.getfixturevalue('redis').port}/0"}
    return request.getfixturevalue("zookeeper").conf


@pytest.fixture
def opened(conf, tmp_path):
    states = []

    def make(id=f"words of {tmp_path.name}", claims=False, **more):
        states.append(open_state({**conf, ID: id, "storm.id": "run-1", "topology.name": "shop", **more}))
        if claims:
            states[-1].claim()
        return states[-1]

    yield make
    for each in states:
        each.close()


def test_what_is_set_is_found_by_another_task_and_what_is_missing_is_none(opened):
    state, another = opened(claims=True), opened()
    assert state.get_data("user/0/1") is None
    assert state.list("user") == []
    state.delete("user/0/1")
    for txid in (1, 2, 10):
        state.set_data(f"user/0/{txid}", {"to": txid})
    state.set_data("user/0/2", [2, None, "é"])
    state.set_data("user/10/2", None)
    assert another.get_data("user/0/2") == [2, None, "é"]
    assert another.get_data("user/0") is None
    assert sorted(another.list("user/0")) == ["1", "10", "2"]
    assert sorted(another.list("user")) == ["0", "10"]
    assert another.list("use") == another.list("user/1") == []
    assert another.below("user/10") == {"2": None}


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
    assert state.newest_of_each("user") == {"0": (10, "ten"), "12": (3, None)}
    assert state.last_of_each("user", 9) == {"0": "nine", "12": None}
    assert state.last_of_each("user", 2) == {}


def test_ids_are_apart(opened, tmp_path):
    one, other = opened("one", claims=True), opened("one%2Fmore", claims=True)
    one.set_data("coordinator/kind", str(tmp_path))
    assert other.get_data("coordinator/kind") != str(tmp_path)
    assert other.list("user") == []


def test_what_is_more_than_one_step_takes_is_written_in_several(opened, monkeypatch):
    state = opened(claims=True)
    monkeypatch.setattr(state._store, "portion_rows", 7)
    state.update({f"user/{partition}/1": "x" * partition for partition in range(20)})
    assert opened().last_of_each("user") == {str(partition): "x" * partition for partition in range(20)}
    state.update({}, [f"user/{partition}/1" for partition in range(19)])
    assert opened().list("user") == ["19"]


def test_one_value_that_is_too_large_keeps_all_of_its_step_back(opened, monkeypatch):
    state = opened(claims=True)
    monkeypatch.setattr(type(state._store), "largest", 100)
    with pytest.raises(StateError, match=r"user/1/1 has 202 bytes, more than 100.*keep the metadata of a batch small"):
        state.update({"user/0/1": 1, "user/1/1": "x" * 200})
    assert opened().list("user") == []


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


def test_entering_a_former_epoch_is_refused(opened):
    state = opened(claims=True)
    epoch = state.epoch
    opened(claims=True)
    with pytest.raises(OutdatedError, match=rf"was taken over by .*epoch {epoch + 1}; this one has {epoch}\)"):
        opened().enter(epoch, "0")


def test_what_was_removed_under_its_users_is_reported(opened):
    state, writer = opened(claims=True), opened()
    state.set_data("coordinator/currtx", 7)
    writer.enter(state.epoch, "0")
    state._store.compare_and_write(state._place, {}, {}, [OWNER, "coordinator", "writers"])
    for use in (
        lambda: state.set_data("coordinator/currtx", 8),
        lambda: writer.set_data("user/0/1", 1),
        lambda: writer.enter(state.epoch, "0"),
    ):
        with pytest.raises(StateError, match="was changed while it was in use: the record of its owner is missing"):
            use()
    assert opened().get_data("coordinator/currtx") is None


def test_a_fence_that_was_removed_alone_is_reported_and_not_waited_for(opened):
    state, writer = opened(claims=True), opened()
    state._store.compare_and_write(state._place, {}, {OWNER: dict.fromkeys(state._owner.fence[OWNER])})
    for use in (lambda: state.set_data("coordinator/currtx", 8), lambda: writer.enter(state.epoch, "0")):
        with pytest.raises(StateError, match="was changed while it was in use"):
            use()


# ---- which store a conf names ----

LOCAL = {"multilang.parent": "local", "topology.name": "words"}


@pytest.mark.parametrize(
    ("conf", "url"),
    [
        ({}, "zookeeper:"),
        (LOCAL, "sqlite:///home/words.sqlite"),
        ({**LOCAL, "multilang.parent": "spark"}, "sqlite:///home/words.sqlite"),
        ({**LOCAL, "multilang.state.name": "former"}, "sqlite:///home/former.sqlite"),
        ({**LOCAL, "multilang.transactional.store": "sqlite://here", "multilang.store": "memory:"}, "sqlite://here"),
        ({**LOCAL, "multilang.store": "memory:"}, "memory:"),
        ({"multilang.store": "redis://a:1/0"}, "redis://a:1/0"),
        ({"multilang.store": "redis://a:1/0", "multilang.transactional.store": "sqlite:///b"}, "sqlite:///b"),
        ({**LOCAL, "multilang.transactional.store": "zookeeper"}, "zookeeper:"),
        ({"multilang.transactional.store": "sqlite"}, "sqlite:///home/topology.sqlite"),
        ({**LOCAL, "multilang.transactional.store": "sqlite"}, "sqlite:///home/words.sqlite"),
        ({"multilang.transactional.store": "my.Store"}, "my.Store:"),
    ],
)
def test_a_conf_names_a_store(conf, url, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", "/home")
    assert store_of(conf)[0] == url


def test_a_store_that_is_no_text_is_named():
    with pytest.raises(ConfigError, match=r"multilang.transactional.store is 7; use text"):
        open_state({**LOCAL, ID: "words", TRANSACTIONS: 7})


@pytest.mark.parametrize("use", [open_state, check_state])
def test_a_store_that_each_task_has_for_itself_is_refused(use):
    with pytest.raises(ConfigError, match=r"several tasks, and multilang\.store names memory of this process"):
        use({**LOCAL, ID: "words", "multilang.store": "memory:"})


# ---- with processes and topologies ----

KILLED = """
import os, sys
from multilang.settings import TRANSACTIONS
from multilang.transactional.stores import open_state
state = open_state({TRANSACTIONS: f"sqlite://{sys.argv[1]}", "topology.transactional.id": "words"})
state.claim()
for txid in range(100):
    state.set_data("coordinator/currtx", txid)
    state.delete(f"coordinator/meta/{txid - 1}")
    state.set_data(f"coordinator/meta/{txid}", txid)
os.kill(os.getpid(), 9)
"""


def test_what_was_set_is_there_after_a_kill(tmp_path):
    path = str(tmp_path / "transactions.sqlite")
    killed = subprocess.run([sys.executable, "-c", KILLED, path], cwd=ROOT)
    assert killed.returncode == -9
    state = open_state({**LOCAL, TRANSACTIONS: f"sqlite://{path}", ID: "words"})
    assert state.get_data("coordinator/currtx") == 99
    assert state.list("coordinator/meta") == ["99"]
    state.close()


CLAIMS = """
import sys
from multilang.settings import TRANSACTIONS
from multilang.transactional.stores import open_state
open_state({TRANSACTIONS: f"sqlite://{sys.argv[1]}", "topology.transactional.id": "words"}).claim()
"""


def test_a_second_topology_of_the_same_file_is_refused_and_one_that_is_started_again_is_not(tmp_path):
    path = str(tmp_path / "transactions.sqlite")
    states = [
        open_state({**LOCAL, TRANSACTIONS: f"sqlite://{path}", ID: "words", "storm.id": "run-1"}) for _ in range(2)
    ]
    states[0].claim()
    other = subprocess.run([sys.executable, "-c", CLAIMS, path], cwd=ROOT, capture_output=True, text=True)
    assert "InUseError: the transactional id 'words' in the SQLite file" in other.stderr
    assert f"is in use by topology 'words' (process {os.getpid()} on " in other.stderr
    states[1].claim()  # the coordinator's task was started again in this process
    for each in states:
        each.close()


def test_a_second_topology_in_the_same_process_is_refused_until_the_first_one_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.5)
    conf = {"multilang.store": f"sqlite:{tmp_path}/shop.sqlite", "test.database": str(tmp_path / "counts.sqlite")}
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
    store = open_store(conf["multilang.store"])
    assert store.places("") == ["transactions/words"]
    store.close()


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
