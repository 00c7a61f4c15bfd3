"""Transactions in a real ZooKeeper: where Storm had them, while it is killed, and never for two topologies at once."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from multilang.component.errors import ConfigError
from multilang.state.errors import InUseError, StateError, StoreGoneError
from multilang.store import zookeeper_bounds, zookeeper_client
from multilang.transactional.stores.zookeeper import ROOT, ZooKeeperTransactionalState
from tests.patience import paced, patient
from tests.servers import LIMIT, Wire, ZooKeeperServer, free_port, wait_for
from tests.soak import SOAK

KILLS = 20 if SOAK else 2  # one of them is longer than a session
SHORT = {"storm.zookeeper.session.timeout": patient(1000)}  # the shortest that the server takes


@pytest.fixture
def opened(zookeeper, request):
    """Makes states, which are closed at the end; ``id`` is the test's."""
    states = []

    def make(id=request.node.name, claims=False, **conf):
        own = {"storm.id": "run-1", "topology.name": "counts"}
        states.append(ZooKeeperTransactionalState({**zookeeper.conf, **own, **conf}, id))
        if claims:
            states[-1].claim()
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
    state = opened("global-count", claims=True)
    state.set_data("coordinator/currtx", 7)
    state.set_data("coordinator/meta/6", {"é": [1, None, "a"]})
    state.set_data("user/0/6", None)
    assert client.get("/transactional/global-count/coordinator/currtx")[0] == b"7"
    assert json.loads(client.get("/transactional/global-count/coordinator/meta/6")[0]) == {"é": [1, None, "a"]}
    assert sorted(client.get_children("/transactional/global-count")) == ["coordinator", "owner", "user"]


def test_what_is_set_is_found_by_another_task_and_what_is_missing_is_none(opened):
    state, another = opened(claims=True), opened()
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
    opened("a/b c", claims=True).set_data("x", 1)
    opened("a", claims=True).set_data("x", 2)
    opened("a", claims=True, **{"transactional.zookeeper.root": "/elsewhere/"}).set_data("x", 3)
    assert client.get("/transactional/a%2Fb%20c/x")[0] == b"1"
    assert client.get("/transactional/a/x")[0] == b"2"
    assert client.get("/elsewhere/a/x")[0] == b"3"


def test_a_client_that_is_started_again_may_end_its_session_again(zookeeper):
    from kazoo.client import KazooClient

    refused = []
    client = zookeeper_bounds.bounded(KazooClient(f"127.0.0.1:{zookeeper.port}", timeout=patient(2)), refused.append)
    for _ in range(2):
        client.start(timeout=LIMIT)
        assert client.exists("/") is not None
        client._connection._stops_by *= 0.001  # as if the end before was long ago
        client.stop()
    client.close()
    assert refused == []


def test_a_zookeeper_that_is_killed_and_started_again_loses_nothing_and_is_waited_for(tmp_path, zookeeper, monkeypatch):
    monkeypatch.setattr(zookeeper_client, "PATIENCE_SECS", patient(120))  # a busy machine takes long to start a server
    server = ZooKeeperServer(tmp_path)
    server.start()
    state = ZooKeeperTransactionalState({**server.conf, "storm.id": "run-1"}, "killed")
    state.claim()
    done = 0

    def killer():
        for kill in range(KILLS):
            wait_for(lambda enough=50 * (kill + 1): done > enough, "it goes on")
            server.kill()
            time.sleep(0.2 if kill else paced(3))  # once longer than a session
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
    monkeypatch.setattr(zookeeper_client, "PATIENCE_SECS", 0.5)
    port = free_port()
    conf = {"transactional.zookeeper.servers": ["127.0.0.1"], "transactional.zookeeper.port": port}
    with pytest.raises(
        StateError, match=rf"ZooKeeper 127\.0\.0\.1:{port} does not answer.*transactional.zookeeper.port"
    ):
        ZooKeeperTransactionalState(conf, "x")


def test_a_second_topology_of_the_same_id_is_refused(opened):
    opened("shared").claim()
    second = opened("shared", **{"storm.id": "run-2", **SHORT})
    start = time.monotonic()
    with pytest.raises(
        StateError, match=r"in use by topology 'counts' \(process \d+ on .*, since 20.*give .* another id"
    ):
        second.claim()
    assert time.monotonic() - start < patient(60)


@pytest.mark.parametrize(
    "name",
    [
        {"transactional.zookeeper.servers": ["localhost"]},
        {"transactional.zookeeper.root": "/transactional/"},
        {
            "transactional.zookeeper.servers": ["localhost", "127.0.0.1"],
            "transactional.zookeeper.root": "//transactional",
        },
    ],
    ids=["host", "slash", "hosts and slash"],
)
def test_a_second_topology_of_the_same_id_is_refused_also_under_another_name_of_the_place(opened, name):
    opened(claims=True).set_data("coordinator/currtx", 3)
    second = opened(**name, **{"storm.id": "run-2", **SHORT})
    assert second.get_data("coordinator/currtx") == 3
    with pytest.raises(InUseError, match="in use by topology 'counts'"):
        second.claim(waits=False)


def test_a_coordinator_that_is_started_again_takes_over_from_what_is_left_of_it(opened):
    opened("again").claim()
    successor = opened("again")
    successor.claim()
    successor.set_data("coordinator/currtx", 3)


CLAIMS = """
import sys
import ujson
from multilang.state.errors import FencedError, StateError
from multilang.transactional.stores.zookeeper import ROOT, ZooKeeperTransactionalState

state = ZooKeeperTransactionalState(ujson.loads(sys.argv[1]), sys.argv[2])
state.claim()
print("claimed", flush=True)
sys.stdin.readline()
try:
    state.set_data("coordinator/currtx", 3)
except StateError as problem:
    print("FencedError:" if isinstance(problem, FencedError) else "", problem, flush=True)
state.close()
"""


@pytest.fixture
def another(zookeeper, request):
    """A process that has claimed the id which is the test's name, and sets something at each line that it is given."""
    conf = json.dumps({**zookeeper.conf, "storm.id": "run-2", **SHORT})
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
    said, _ = another.communicate("go\n", timeout=patient(90))
    assert re.search(
        r"FencedError: .* was taken over by topology 'counts' \(process \d+ .*\(epoch 2; this one has 1\)", said
    )
    assert state.get_data("coordinator/currtx") is None


def test_a_coordinator_that_slept_and_was_not_replaced_goes_on(another, opened, client, request):
    owner = f"/transactional/{request.node.name}/owner"
    another.send_signal(signal.SIGSTOP)
    wait_for(lambda: client.exists(owner) is None, "its session ends")
    another.send_signal(signal.SIGCONT)
    said, _ = another.communicate("go\n", timeout=patient(90))
    assert said == ""
    assert opened().get_data("coordinator/currtx") == 3


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"transactional.zookeeper.servers": "zoo"}, r"transactional.zookeeper.servers is 'zoo'; use a list of hosts"),
        ({"storm.zookeeper.servers": []}, r"storm.zookeeper.servers is \[\]; use a list of hosts"),
        (
            {"transactional.zookeeper.servers": ["zoo/storm"]},
            r"servers has 'zoo/storm'; .* \(chroot\) is the beginning of tr.*root",
        ),
        (
            {"transactional.zookeeper.servers": ["zoo:2182"]},
            r"servers has 'zoo:2182'; use a host alone: its port is tr.*port",
        ),
        ({"storm.zookeeper.servers": ["zoo1,zoo2"]}, r"storm.zookeeper.servers has 'zoo1,zoo2'; use a host alone"),
        ({"transactional.zookeeper.port": "2181"}, r"transactional.zookeeper.port is '2181'; use a port's number"),
        ({"transactional.zookeeper.root": "here"}, r"transactional.zookeeper.root is 'here'; use a path"),
    ],
)
def test_a_setting_that_can_not_work_is_named(conf, message):
    with pytest.raises(ConfigError, match=message):
        ZooKeeperTransactionalState(conf, "x")


def test_metadata_that_is_too_large_for_a_node_is_told(opened):
    with pytest.raises(StateError, match=r"user/0/1: 2000002 bytes are more than ZooKeeper takes"):
        opened(claims=True).set_data("user/0/1", "x" * 2_000_000)


def test_a_java_topologys_state_is_told(opened, client):
    client.create("/transactional/of-java/coordinator/currtx", b"\x02\x07", makepath=True)
    with pytest.raises(StateError, match="is not JSON: a Java topology uses the same transactional id"):
        opened("of-java").get_data("coordinator/currtx")


# ---- fencing, where ZooKeeper has its own ways ----


@pytest.fixture
def wire(zookeeper):
    found = Wire(zookeeper.port)
    yield found
    found.close()


MULTI = 14  # ZooKeeper's number of that request


@pytest.mark.parametrize("what", ["new", "old", "deleted", "many"])
def test_a_write_whose_answer_was_lost_is_done_once_and_no_error(opened, wire, what):
    state = opened(claims=True, **{"transactional.zookeeper.port": wire.port})
    state.update({"user/0/1": 1, "user/0/2": 2})
    wire.lose_answer = MULTI
    if what == "new":
        state.update({"user/0/3": 3, "user/1/3": 3})
    elif what == "old":
        state.update({"user/0/2": "two"})
    elif what == "deleted":
        state.update({"user/0/3": 3}, ["user/0/1", "user/0/2"])
    else:
        state.update({f"user/{n}/1": n for n in range(300)}, ["user/0/2"])
        wire.lose_answer = MULTI
        state.update({}, [f"user/{n}/1" for n in range(299)])
    assert wire.lost == 1 + (what == "many")
    expected = {"new": {"0": 3, "1": 3}, "old": {"0": "two"}, "deleted": {"0": 3}, "many": {"299": 299}}[what]
    assert opened().last_of_each("user") == expected
    state.update({"user/0/4": 4})


def test_a_claim_whose_answer_was_lost_is_a_claim(opened, wire):
    wire.lose_answer = MULTI
    state = opened(**{"transactional.zookeeper.port": wire.port})
    epoch = state.claim()
    assert wire.lost == 1
    assert state.get_data("coordinator/starts") == epoch
    state.set_data("coordinator/currtx", 1)
    wire.lose_answer = MULTI
    writer = opened(**{"transactional.zookeeper.port": wire.port})
    writer.enter(epoch, "0")
    assert wire.lost == 2
    writer.set_data("user/0/1", 1)


def test_a_coordinator_that_is_cut_off_is_replaced_and_writes_nothing_when_it_is_back(opened, wire):
    state = opened(claims=True, **{"transactional.zookeeper.port": wire.port, **SHORT})
    state.set_data("coordinator/currtx", 7)
    wire.cut.set()
    late: list = []

    def write():
        try:
            state.set_data("coordinator/currtx", 8)
        except StateError as problem:
            late.append(problem)

    thread = threading.Thread(target=write)
    thread.start()  # it waits for the answer
    other = opened(**{"storm.id": "run-2", "topology.name": "other", **SHORT})
    other.claim()  # as soon as the session has ended
    other.set_data("coordinator/currtx", 20)
    wire.cut.clear()
    thread.join()
    assert [type(problem).__name__ for problem in late] == ["OutdatedError"]
    assert "taken over by topology 'other'" in str(late[0])
    assert other.get_data("coordinator/currtx") == 20


def test_an_owner_whose_session_ended_is_known_again_as_soon_as_it_is_back(opened, wire, client, request):
    """Though it has nothing to write."""
    state = opened(claims=True, **{"transactional.zookeeper.port": wire.port, **SHORT})
    owner = f"/transactional/{request.node.name}/owner"
    wire.cut.set()
    wait_for(lambda: client.exists(owner) is None, "its session ends")
    wire.cut.clear()
    wire.disconnect()
    wait_for(lambda: client.exists(owner), "it is back")
    with pytest.raises(InUseError, match="is in use by topology 'counts'"):
        opened(**{"storm.id": "run-2"}).claim(waits=False)
    state.set_data("coordinator/currtx", 1)


def test_nodes_that_were_deleted_under_their_users_are_told(opened, client, request):
    state, writer = opened(claims=True), opened()
    state.set_data("coordinator/currtx", 7)
    writer.enter(1, "0")
    client.delete(f"/transactional/{request.node.name}", recursive=True)
    for use in (lambda: state.set_data("coordinator/currtx", 8), lambda: writer.set_data("user/0/1", 1)):
        with pytest.raises(StoreGoneError, match="was deleted while it was in use"):
            use()
    assert not client.exists(f"/transactional/{request.node.name}")


def test_what_is_more_than_one_request_takes_is_written_in_several(opened):
    state = opened(claims=True)
    values = {f"user/{partition}/1": "x" * 300_000 for partition in range(9)}
    state.update(values)
    assert opened().last_of_each("user") == {str(partition): "x" * 300_000 for partition in range(9)}
    state.update({f"user/0/{txid}": txid for txid in range(3000)})
    state.update({}, [f"user/0/{txid}" for txid in range(2999)])
    assert opened().list("user/0") == ["2999"]


def test_one_value_that_is_too_large_keeps_all_of_its_step_back(opened):
    state = opened(claims=True)
    with pytest.raises(StateError, match=r"user/1/1: 1500002 bytes are more than ZooKeeper takes"):
        state.update({"user/0/1": 1, "user/1/1": "x" * 1_500_000})
    assert opened().list("user") == []


# ---- access ----

SECRET = "counts:pass-word"
SECURED = {
    "storm.zookeeper.topology.auth.scheme": "digest",
    "storm.zookeeper.topology.auth.payload": SECRET,
    "storm.zookeeper.superACL": "digest:storm:kd/FLe/Ys3qQ9SSKBUtYlEGSnrE=",
}


def test_nodes_belong_to_the_credentials_that_the_conf_has(opened, client, request):
    from kazoo.security import make_digest_acl_credential

    state = opened(claims=True, **SECURED)
    state.update({"coordinator/currtx": 7, "user/0/1": 1})
    writer = opened(**SECURED)
    writer.enter(1, "0")
    writer.set_data("user/1/1", 1)
    client.add_auth("digest", SECRET)  # only so that it may read
    root = f"/transactional/{request.node.name}"

    def below(path):
        return [path, *(each for name in client.get_children(root + path) for each in below(f"{path}/{name}"))]

    paths = below("")
    assert {"/owner", "/coordinator/currtx", "/user/0/1", "/user/1/1", "/writers/0"} <= set(paths)
    mine = make_digest_acl_credential(*SECRET.split(":"))
    for path in paths:
        acls, _ = client.get_acls(root + path)
        assert {(each.id.scheme, each.id.id, each.perms) for each in acls} == {
            ("digest", mine, 31),
            ("digest", "storm:kd/FLe/Ys3qQ9SSKBUtYlEGSnrE=", 31),
        }, path
    assert opened(**SECURED).get_data("coordinator/currtx") == 7


def test_folders_above_are_made_with_the_acl_of_the_conf_and_room_for_others(opened, client):
    opened(claims=True, **SECURED, **{ROOT: "/made/by/us"})
    client.add_auth("digest", SECRET)
    for path in ("/made", "/made/by", "/made/by/us"):
        rights = {each.id.scheme: each.perms for each in client.get_acls(path)[0] if "storm:" not in each.id.id}
        assert rights == {"digest": 31, "world": 1 | 4}, path  # to read and to create
    others = {**SECURED, "storm.zookeeper.topology.auth.payload": "others:word", ROOT: "/made/by/us"}
    state = opened("others", claims=True, **others)
    state.set_data("a", 1)
    assert opened("others", **others).get_data("a") == 1


NODES = ("", "coordinator", "coordinator/currtx", "coordinator/starts", "owner")


@pytest.mark.parametrize("rights", ["all", "all and read", "write", "create", "delete", "admin", "only read", "read"])
def test_a_node_that_a_stranger_made_before_is_refused(opened, client, request, rights):
    from kazoo.security import make_acl, make_digest_acl

    mine = [make_digest_acl(*SECRET.split(":"), all=True)]
    theirs = [make_acl("world", "anyone", **{name: True}) for name in rights.removeprefix("only ").split(" and ")]
    client.add_auth("digest", SECRET)
    for number, theirs_is in enumerate(NODES):
        id = f"{re.sub('[^a-z]', '-', request.node.name)}-{number}"
        root = f"/transactional/{id}"
        for path in NODES:
            client.create(f"{root}/{path}".rstrip("/"), b"7" if "/" in path else b"", mine, makepath=True)
        client.set_acls(f"{root}/{theirs_is}".rstrip("/"), theirs if rights == "only read" else [*mine, *theirs])
        state = opened(id, **SECURED)

        def use(state=state):
            assert {*state.list(""), *state.list("coordinator")} >= {"owner", "currtx"}
            for path in NODES[2:]:
                assert state.get_data(path) in (7, None)

        if rights == "read":
            use()
            continue
        with pytest.raises(StateError, match="was not made by this topology, or before it had credentials"):
            use()
        if theirs_is != "coordinator/currtx":  # which is not read there
            with pytest.raises(StateError, match="was not made by this topology, or before it had credentials"):
                opened(id, **SECURED).claim()


def test_a_node_that_a_stranger_put_in_the_place_of_one_that_was_read_is_refused(opened, client, request):
    from kazoo.security import OPEN_ACL_UNSAFE

    state = opened(claims=True, **SECURED)
    state.set_data("user/1", 1)
    assert state.get_data("user/1") == 1
    path = f"/transactional/{request.node.name}/user/1"
    client.add_auth("digest", SECRET)
    client.delete(path)
    client.create(path, b"2", OPEN_ACL_UNSAFE)
    with pytest.raises(StateError, match="world:anyone may change it"):
        state.get_data("user/1")


@pytest.mark.parametrize(
    "other",
    [
        {},
        {**SECURED, "storm.zookeeper.topology.auth.payload": "counts:another"},
    ],
    ids=["none", "others"],
)
def test_wrong_credentials_are_one_clear_error(opened, other):
    opened("secured", claims=True, **SECURED).update({"coordinator/currtx": 7, "user/0/1": 1})
    wrong = opened("secured", **other)
    for use in (
        wrong.claim,
        lambda: wrong.get_data("coordinator/currtx"),
        lambda: wrong.list("user/0"),
        lambda: wrong.enter(1, "0"),
    ):
        with pytest.raises(StateError, match="belongs to who made it with other credentials") as caught:
            use()
        assert "pass-word" not in str(caught.value)
        assert "another\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"storm.zookeeper.topology.auth.scheme": 7}, r"auth.scheme is 7; use a scheme"),
        ({"storm.zookeeper.topology.auth.scheme": "digest"}, r"set storm.zookeeper.topology.auth.payload as well"),
        ({**SECURED, "storm.zookeeper.topology.auth.payload": "pass-word"}, r'\(not shown\) has no ":"'),
        ({**SECURED, "storm.zookeeper.superACL": "storm"}, r"storm.zookeeper.superACL is 'storm'; use \"scheme:id\""),
    ],
)
def test_credentials_that_can_not_work_are_named_and_not_shown(zookeeper, conf, message):
    with pytest.raises(ConfigError, match=message) as caught:
        ZooKeeperTransactionalState({**zookeeper.conf, **conf}, "x")
    assert "pass-word" not in str(caught.value)
