"""Transactions in a real ZooKeeper: where Storm had them, while it is killed, and never for two topologies at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from multilang.component.errors import ConfigError
from multilang.state import StateError
from multilang.transactional.stores import zookeeper as module
from multilang.transactional.stores.zookeeper import ZooKeeperTransactionalState
from tests.servers import ZooKeeperServer, free_port, wait_for

KILLS = 20 if os.environ.get("MULTILANG_SOAK") == "full" else 3


@pytest.fixture
def opened(zookeeper, request):
    """Makes states, which are closed at the end; ``id`` is the test's."""
    states = []

    def make(id=request.node.name, **conf):
        states.append(ZooKeeperTransactionalState({**zookeeper.conf, "storm.id": "run-1", **conf}, id))
        return states[-1]

    yield make
    for each in states:
        each.close()


@pytest.fixture
def client(zookeeper):
    from kazoo.client import KazooClient

    found = KazooClient(f"127.0.0.1:{zookeeper.port}")
    found.start()
    yield found
    found.stop()
    found.close()


def test_values_are_nodes_in_the_places_where_storm_had_them(opened, client):
    state = opened("global-count")
    state.set_data("coordinator/currtx", 7)
    state.set_data("coordinator/meta/6", {"é": [1, None, "a"]})
    state.set_data("user/0/6", None)
    assert client.get("/transactional/global-count/coordinator/currtx")[0] == b"7"
    assert json.loads(client.get("/transactional/global-count/coordinator/meta/6")[0]) == {"é": [1, None, "a"]}
    assert sorted(client.get_children("/transactional/global-count")) == ["coordinator", "user"]


def test_what_is_set_is_found_by_another_task_and_what_is_missing_is_none(opened):
    state, another = opened(), opened()
    assert state.get_data("user/0/1") is None
    assert list(state.list("user")) == []
    state.delete("user/0/1")
    for txid in (1, 2, 10):
        state.set_data(f"user/0/{txid}", {"to": txid})
    state.set_data("user/0/2", [2])
    state.delete("user/0/1")
    assert another.get_data("user/0/2") == [2]
    assert another.get_data("user/0/1") is None
    assert another.get_data("user/0") is None
    assert sorted(another.list("user/0")) == ["10", "2"]
    assert list(another.list("user")) == ["0"]


def test_ids_and_roots_are_apart(opened, client):
    opened("a/b c").set_data("x", 1)
    opened("a").set_data("x", 2)
    opened("a", **{"transactional.zookeeper.root": "/elsewhere/"}).set_data("x", 3)
    assert client.get("/transactional/a%2Fb%20c/x")[0] == b"1"
    assert client.get("/transactional/a/x")[0] == b"2"
    assert client.get("/elsewhere/a/x")[0] == b"3"


def test_a_zookeeper_that_is_killed_and_started_again_loses_nothing_and_is_waited_for(tmp_path, zookeeper):
    server = ZooKeeperServer(tmp_path)
    server.start()
    state = ZooKeeperTransactionalState({**server.conf, "storm.id": "run-1"}, "killed")
    state.claim()
    done = 0

    def killer():
        for kill in range(KILLS):
            wait_for(lambda enough=50 * (kill + 1): done > enough, "it goes on")
            server.kill()
            time.sleep(0.2 if kill else 3)  # once longer than a session
            server.start()

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        while thread.is_alive():
            done += 1
            state.set_data("coordinator/currtx", done)
            state.set_data(f"user/0/{done}", {"to": done})
            if done > 3:
                state.delete(f"user/0/{done - 3}")
        assert state.get_data("coordinator/currtx") == done
        assert sorted(map(int, state.list("user/0"))) == [done - 2, done - 1, done]
        assert done > 50 * KILLS
    finally:
        thread.join()
        state.close()
        server.kill()


def test_a_zookeeper_that_does_not_answer_is_named_with_the_keys_that_say_where_it_is(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECS", 0.5)
    port = free_port()
    conf = {"transactional.zookeeper.servers": ["127.0.0.1"], "transactional.zookeeper.port": port}
    with pytest.raises(
        StateError, match=rf"ZooKeeper 127\.0\.0\.1:{port} does not answer.*transactional.zookeeper.port"
    ):
        ZooKeeperTransactionalState(conf, "x")


def test_a_second_topology_of_the_same_id_is_refused(opened):
    opened("shared").claim()
    second = opened("shared", **{"storm.id": "run-2", "storm.zookeeper.session.timeout": 1000})
    start = time.monotonic()
    with pytest.raises(StateError, match=r"in use by another topology \(storm.id run-1, host .*give .* another id"):
        second.claim()
    assert time.monotonic() - start < 60


def test_a_coordinator_that_is_started_again_takes_over_from_what_is_left_of_it(opened):
    opened("again").claim()
    successor = opened("again")
    successor.claim()
    successor.set_data("coordinator/currtx", 3)


CLAIMS = """
import sys
import ujson
from multilang.state import StateError
from multilang.transactional.stores.zookeeper import ZooKeeperTransactionalState

state = ZooKeeperTransactionalState(ujson.loads(sys.argv[1]), sys.argv[2])
state.claim()
print("claimed", flush=True)
sys.stdin.readline()
try:
    state.set_data("coordinator/currtx", 3)
except StateError as problem:
    print(problem, flush=True)
state.close()
"""


@pytest.fixture
def another(zookeeper, request):
    """A process that has claimed the id which is the test's name, and sets something at each line that it is given."""
    conf = json.dumps({**zookeeper.conf, "storm.id": "run-2", "storm.zookeeper.session.timeout": 1000})
    command = [sys.executable, "-c", CLAIMS, conf, request.node.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "claimed\n"
        yield process
        process.kill()


def test_a_topology_that_was_killed_gives_its_id_up(another, opened):
    another.send_signal(signal.SIGKILL)
    opened().claim()


def test_a_coordinator_that_slept_while_another_topology_took_over_changes_nothing(another, opened):
    another.send_signal(signal.SIGSTOP)
    state = opened()
    state.claim()
    another.send_signal(signal.SIGCONT)
    said, _ = another.communicate("go\n", timeout=90)
    assert "in use by another topology (storm.id run-1" in said
    assert state.get_data("coordinator/currtx") is None


def test_a_coordinator_that_slept_and_was_not_replaced_goes_on(another, opened, client, request):
    owner = f"/transactional/{request.node.name}/owner"
    another.send_signal(signal.SIGSTOP)
    wait_for(lambda: client.exists(owner) is None, "its session ends")
    another.send_signal(signal.SIGCONT)
    said, _ = another.communicate("go\n", timeout=90)
    assert said == ""
    assert opened().get_data("coordinator/currtx") == 3


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"transactional.zookeeper.servers": "zoo"}, r"transactional.zookeeper.servers is 'zoo'; use a list of hosts"),
        ({"storm.zookeeper.servers": []}, r"storm.zookeeper.servers is \[\]; use a list of hosts"),
        ({"transactional.zookeeper.port": "2181"}, r"transactional.zookeeper.port is '2181'; use a port's number"),
        ({"transactional.zookeeper.root": "here"}, r"transactional.zookeeper.root is 'here'; use a path"),
    ],
)
def test_a_setting_that_can_not_work_is_named(conf, message):
    with pytest.raises(ConfigError, match=message):
        ZooKeeperTransactionalState(conf, "x")


def test_metadata_that_is_too_large_for_a_node_is_told(opened):
    with pytest.raises(StateError, match=r"user/0/1: 2000002 bytes are more than ZooKeeper takes"):
        opened().set_data("user/0/1", "x" * 2_000_000)


def test_a_java_topologys_state_is_told(opened, client):
    client.create("/transactional/of-java/coordinator/currtx", b"\x02\x07", makepath=True)
    with pytest.raises(StateError, match="is no JSON: a Java topology uses the same transactional id"):
        opened("of-java").get_data("coordinator/currtx")
