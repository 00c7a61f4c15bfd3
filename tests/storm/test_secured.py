"""On a cluster that asks everybody for a login, topologies live from submission to their end; nobody else touches them."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import struct
import sys
from base64 import b64encode
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.exceptions import NoAuthError, NoNodeError

from multilang.shipping.cluster.artifacts import runs_sources
from multilang.state import StateError
from multilang.state.providers import provider_of
from multilang.transactional.stores import open_state
from multilang.transport.digest import DigestMd5
from multilang.transport.keys import SIMPLE
from tests.authority import Authority
from tests.cli.command import ROOT, multilang
from tests.servers import SecuredRedisServer, running
from tests.soak import soak_only
from tests.state.topologies import stored
from tests.storm.conftest import LIMIT, wait_for
from tests.storm.secured import FOLDERS, PASSWORDS, ZOOKEEPER, SecuredCluster, write_secret

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from kazoo.client import KazooClient

TOPOLOGY = ROOT / "examples" / "exclamation.py"
COUNTS = ROOT / "examples" / "stateful_word_count.py"
NAME = "shouting"
COUNTING, GUESSING = "counting", "guessing"  # with the Redis user's password, and with another
PAYLOAD = "storm.zookeeper.topology.auth.payload"
OWN = "shouting:its own at ZooKeeper"
CERTIFICATE = "of the topology's workers"
CREDENTIAL = "of the user's file"
LINES = 300


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the users' files."""
    return tmp_path_factory.mktemp("people")


@pytest.fixture(scope="module")
def secured(storm_programs: None, people: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    if not runs_sources():
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here, which the DRPC server needs")
    cluster = SecuredCluster(tmp_path_factory.mktemp("secured"), people)
    try:
        cluster.up()
        cluster.allow_workers()
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredRedisServer]:
    def make(folder: Path) -> SecuredRedisServer:
        return SecuredRedisServer(folder, COUNTING, Authority(folder, "authority"))

    make.name = "redis"  # type: ignore[attr-defined]
    yield from running(make, tmp_path_factory.mktemp("redis"), "redis-server")  # type: ignore[arg-type]


def said(shown: subprocess.CompletedProcess[str], *statuses: int) -> str:
    """Return all that a command said, which never is a password."""
    text = shown.stdout + shown.stderr
    assert shown.returncode in statuses, text
    secrets = [*PASSWORDS.values(), SecuredRedisServer.password, OWN, CERTIFICATE, CREDENTIAL]
    assert not any(json.dumps(password)[1:-1] in text or password in text for password in secrets)
    assert "Traceback" not in text
    return text


def entries(conf: dict[str, Any]) -> list[str]:
    return [word for key, value in conf.items() for word in ("-c", f"{key}={json.dumps(value)}")]


def counting(redis: SecuredRedisServer, people: Path, password: str) -> dict[str, Any]:
    """Return the conf of a topology whose state is in that Redis, by a password that is in a file."""
    text, secret = people / "text", people / f"redis-{password == redis.password}"
    text.write_text("the cow jumped over the moon\n" * LINES)
    write_secret(secret, password)
    pool = {"jedisPoolConfig": {**redis.place, "password": {"file": str(secret)}}}
    return {
        "topology.state.provider": "redis",
        "topology.state.provider.config": json.dumps(pool),
        "multilang.input.files": [str(text)],
        "topology.max.spout.pending": 100,
        "topology.users": ["bob"],
    }


def test_topologies_live_on_a_secured_cluster(secured: SecuredCluster, redis: SecuredRedisServer, people: Path) -> None:
    bob, eve, games = (secured.settings_of(name) for name in ("bob", "eve", "games"))
    wrong = secured.settings_of("bob", "guessed")
    assert secured.drpc is not None
    clients, topologies = secured.drpc
    payload, certificate = people / "zookeeper.secret", people / "shop.crt"
    write_secret(payload, OWN)
    write_secret(certificate, CERTIFICATE)
    conf = {
        "drpc.servers": ["localhost"],
        "drpc.invocations.port": topologies.port,
        "topology.users": ["bob"],
        "topology.groups": ["games"],
        PAYLOAD: {"file": str(payload)},
        "topology.auto-credentials": ["org.apache.storm.security.auth.AutoSSL"],
        "ssl.credential.files": [str(certificate)],
    }
    credentials = people / "credentials.json"
    write_secret(credentials, json.dumps({"shop": CREDENTIAL}))
    submit = ("submit", TOPOLOGY, "--name", NAME, *entries(conf), "--credentials", credentials, "--wait", LIMIT)
    said(multilang("package", TOPOLOGY, "-o", people / "shouting.jar"), 0)

    # The address of the command line or of the file: a wrong password is refused, and so is a client without one.
    for where in ((), ("--nimbus", secured.address)):
        text = said(multilang(*submit, *where, **wrong), 2)
        assert "refused the login by DIGEST-MD5" in text
        assert wrong["STORM_CONF_DIR"] in text, "it names the JAAS file"
    plain = secured.settings_of("eve", "no login", **{"storm.thrift.transport": SIMPLE})
    assert "another login or TLS than storm.yaml says" in said(multilang("list", **plain), 69)
    assert NAME not in said(multilang("list", **bob), 0)

    # Both start at once: one with its state in Redis, and one that answers requests.
    right = counting(redis, people, redis.password)
    options = ("--interpreter", sys.executable, "--wait", 0)
    said(multilang("submit", f"{COUNTS}:exactly_once", *options, "--name", COUNTING, *entries(right), **bob), 0)
    said(multilang(*submit, limit=2 * LIMIT, **bob), 0)
    assert NAME in said(multilang("list", **eve), 0)  # any user may list
    for person in (bob, games):
        assert "ACTIVE" in said(multilang("status", NAME, **person), 0)
    for refused in (("status", NAME), ("kill", NAME, "--wait", 0), ("rebalance", NAME)):
        assert "not authorized" in said(multilang(*refused, **eve), 2)
    for refused in (
        ("status", NAME),
        ("logs", NAME),
        ("kill", NAME, "--wait", 0),
        ("blob", "ls"),
        ("page", "--port", 0),
    ):
        assert "refused the login by DIGEST-MD5" in said(multilang(*refused, **wrong), 2)

    call = ("drpc", "call", "exclamation", "hello", "--host", "localhost", "--port", clients.port, "--timeout", LIMIT)
    assert said(multilang(*call, limit=2 * LIMIT, **bob), 0) == "hello!\n"
    assert "refused the login by DIGEST-MD5" in said(multilang(*call, **wrong), 69)
    assert "not authorized" in said(multilang(*call, **eve), 69)

    shown = said(multilang("logs", NAME, "--raw", **bob), 0)  # from where Nimbus says that they are
    attack_worker(int(re.findall(r"==> \S+:(\d+)", shown)[0]), secured, NAME)
    with secured.client() as nimbus:
        id = next(each.id for each in nimbus.summary().topologies if each.name == NAME)
    attack_zookeeper(secured, id)
    assert "does not have" in said(multilang("blob", "cat", f"{id}-stormconf.ser", **eve), 2)
    wait_for(lambda: written(secured, certificate.name), "a worker has what its plugin makes of the credentials")

    there = provider_of({**right, "topology.name": COUNTING})
    words = Counter(
        {word: count * LINES for word, count in Counter(["the", "cow", "jumped", "over", "the", "moon"]).items()}
    )
    wait_for(lambda: stored(there, "count", 2) == words, "all words are counted, in a Redis with a user and TLS")
    there.close()

    assert said(multilang(*call, limit=2 * LIMIT, **bob), 0) == "hello!\n"
    for name, person in ((NAME, games), (COUNTING, bob)):
        said(multilang("kill", name, "--wait", 0, **person), 0)
    with secured.client() as nimbus:
        wait_for(lambda: all(each.status == "KILLED" for each in nimbus.summary().topologies), "they are killed")


@soak_only
def test_with_a_wrong_password_of_redis_nothing_is_kept_and_the_log_says_why(
    secured: SecuredCluster, redis: SecuredRedisServer, people: Path
) -> None:
    """Alone, since its worker ends and starts again and again, which takes the time of all that run beside it."""
    bob = secured.settings_of("bob")
    options = ("--interpreter", sys.executable, "--wait", 0)
    wrong = entries(counting(redis, people, "guessed"))
    said(multilang("submit", f"{COUNTS}:exactly_once", *options, "--name", GUESSING, *wrong, **bob), 0)
    told = "invalid username-password pair"
    logs = secured.logs / "workers-artifacts"
    wait_for(
        lambda: any(told in path.read_text() for path in logs.glob(f"{GUESSING}-*/*/worker.log")), "the log says why"
    )
    assert told in multilang("logs", GUESSING, "--raw", "-n", 100_000, "--folder", secured.logs, **bob).stdout
    assert not any(GUESSING in name for name in keys(redis)), "nothing was kept"
    said(multilang("kill", GUESSING, "--wait", 0, **bob), 0)


def keys(redis: SecuredRedisServer) -> set[str]:
    import redis as module

    place = redis.place
    client = module.Redis(
        host=str(place["host"]),
        port=redis.port,
        username=redis.user,
        password=redis.password,
        ssl=True,
        ssl_ca_certs=str(place["ca"]),
        decode_responses=True,
    )
    with closing(client):
        return set(client.scan_iter())


def written(secured: SecuredCluster, name: str) -> bool:
    found = [path.read_text() for path in (secured.home / "data").rglob(name)]
    assert found in ([], [CERTIFICATE])
    return bool(found)


def attack_zookeeper(secured: SecuredCluster, id: str) -> None:
    """Nobody but the daemons and the topology reads what the daemons keep of it, and the topology itself only reads."""
    for payload in (None, "eve:hers", ZOOKEEPER.replace("daemons", "others")):
        with secured.zookeeper(payload) as client:
            for path in (f"/storm/credentials/{id}", f"/storm/storms/{id}", f"/storm/assignments/{id}"):
                for use in (client.get, client.delete, client.get_children, lambda path: client.set(path, b"")):
                    with pytest.raises(NoAuthError):
                        use(path)
            for path in ("/storm", *(f"/storm/{name}" for name in client.get_children("/storm"))):
                with pytest.raises(NoAuthError):
                    client.create(f"{path}/forged", b"")
            assert readable(client, "/storm") == {"/storm", *(f"/storm/{name}" for name in FOLDERS)}
    with secured.zookeeper(OWN) as client:
        credentials = gzip.decompress(client.get(f"/storm/credentials/{id}")[0])
        assert CREDENTIAL.encode() in credentials  # of the user's file
        assert b64encode(CERTIFICATE.encode()) in credentials  # and of the plugin
        with pytest.raises(NoAuthError):
            client.set(f"/storm/credentials/{id}", b"")


def readable(client: KazooClient, path: str) -> set[str]:
    """Return the nodes that a client can read, from this one on."""
    try:
        names = client.get_children(path)
        client.get(path)
    except (NoAuthError, NoNodeError):  # some come and go
        return set()
    return {path}.union(*(readable(client, f"{path}/{name}") for name in names))


def attack_worker(port: int, secured: SecuredCluster, name: str) -> None:
    """A worker listens on every interface: without its topology's secret, it takes no tuple."""

    def connected() -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), LIMIT)

    def log() -> str:
        return "".join(path.read_text(errors="replace") for path in secured.logs.rglob(f"{port}/worker.log"))

    before = log().count("NOT* authorized")
    with connected() as wire:
        wire.sendall(struct.pack(">hI", 1, 4) + b"evil")  # a tuple for task 1
        wait_for(lambda: log().count("NOT* authorized") > before, "the worker refuses a tuple without a login")
    for secret, complete in (("guessed:by eve", False), (OWN, True)):
        with connected() as wire:
            user = b64encode(name.encode()).decode()
            login = DigestMd5(user, b64encode(secret.encode()).decode(), "null")
            wire.sendall(struct.pack(">h", -202))
            answer = login.step(token(wire))
            wire.sendall(struct.pack(">hI", -500, len(answer)) + answer)
            assert (token(wire) != b"") == complete, "the worker knows who has the secret"


def token(wire: socket.socket) -> bytes:
    """Return the next message of a worker's login; nothing if it hung up."""
    try:
        head = wire.recv(6, socket.MSG_WAITALL)
        if len(head) < 6:
            return b""
        code, length = struct.unpack(">hI", head)
        assert code == -500
        return wire.recv(length, socket.MSG_WAITALL)
    except ConnectionError:
        return b""


def test_a_blob_belongs_to_who_put_it(secured: SecuredCluster) -> None:
    bob, eve = secured.settings_of("bob"), secured.settings_of("eve")
    said(multilang("blob", "put", "own", TOPOLOGY, **bob), 0)
    said(multilang("blob", "put", "shared", TOPOLOGY, "--acl", "u:eve:r", **bob), 0)
    text = TOPOLOGY.read_text()
    assert said(multilang("blob", "cat", "own", **bob), 0) == text
    assert said(multilang("blob", "cat", "shared", **eve), 0) == text
    for refused in (("cat", "own"), ("rm", "own"), ("rm", "shared"), ("put", "shared", TOPOLOGY)):
        assert "does not have" in said(multilang("blob", *refused, **eve), 2)
    said(multilang("blob", "rm", "own", "shared", **bob), 0)


def test_transactions_in_its_zookeeper_belong_to_their_topology(secured: SecuredCluster, people: Path) -> None:
    secret = people / "transactions.secret"
    write_secret(secret, "counts:of the transactions")
    conf = {
        "transactional.zookeeper.servers": ["127.0.0.1"],
        "transactional.zookeeper.port": secured.conf["storm.zookeeper.port"],
        "storm.zookeeper.topology.auth.scheme": "digest",
        "storm.zookeeper.superACL": secured.conf["storm.zookeeper.superACL"],
        "storm.id": "run-1",
        "topology.transactional.id": "secured",
    }
    with closing(open_state({**conf, PAYLOAD: {"file": str(secret)}})) as state:
        state.claim()
        state.update({"coordinator/currtx": 7})
        with closing(open_state({**conf, PAYLOAD: "counts:guessed"})) as other:
            for use in (other.claim, lambda: other.get_data("coordinator/currtx")):
                with pytest.raises(StateError, match="was made with other credentials") as caught:
                    use()
                assert "guessed" not in str(caught.value)
        assert state.get_data("coordinator/currtx") == 7
