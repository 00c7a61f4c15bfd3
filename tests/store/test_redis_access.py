"""A Redis with a user and TLS: who has the password reaches it and nothing beside it, and whoever has not learns why."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from multilang.component.errors import ConfigError
from multilang.helpers.secret import Secret
from multilang.queues.redis import RedisStreamSpout
from multilang.settings import REDIS_ACCESS
from multilang.state.positions import open_positions
from multilang.state.providers import provider_of
from multilang.store import StateError, open_store
from multilang.store.redis_access import PASSWORD, place_of
from multilang.transactional import RedisBacking
from multilang.transactional.spouts.redis import TransactionalRedisSpout
from tests.authority import Authority
from tests.servers import SecuredRedisServer, free_port, running, wait_for
from tests.state.conftest import opened
from tests.state.topologies import topology

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "stateful"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredRedisServer]:
    folder = tmp_path_factory.mktemp("secured")

    def make(folder: Path) -> SecuredRedisServer:
        return SecuredRedisServer(folder, NAME, Authority(folder, "authority"))

    make.name = "redis"  # type: ignore[attr-defined]
    yield from running(make, folder, "redis-server")  # type: ignore[arg-type]


@pytest.fixture
def password(tmp_path: Path) -> dict[str, str]:
    """The place of the password."""
    path = tmp_path / "redis.secret"
    path.touch(mode=0o600)
    path.write_text(f"{SecuredRedisServer.password}\n")
    return {"file": str(path)}


def url_of(server: SecuredRedisServer) -> str:
    return f"rediss://{server.user}@127.0.0.1:{server.port}/0?ca={server.place['ca']}"


def conf_of(pool: dict[str, Any], **more: Any) -> dict[str, Any]:
    provider = {
        "topology.state.provider": "redis",
        "topology.state.provider.config": json.dumps({"jedisPoolConfig": pool}),
    }
    return {**provider, "topology.name": NAME, "storm.id": "run-1", **more}


def test_a_state_is_kept_by_a_user_who_has_rights_to_nothing_else(secured, password) -> None:
    found = provider_of(conf_of({**secured.place, "password": password}))
    found.check()
    state = opened(found, "count-0")
    state.put("moon", 1)
    state.prepare_commit(1)
    state.commit(1)
    assert found.namespaces() == ["count-0"]
    found.close()
    another = provider_of({**conf_of({**secured.place, "password": password}), "topology.name": "another"})
    with pytest.raises(StateError, match=r"no permissions.*give its user the right \(ACL SETUSER\)"):
        another.claim()
    another.close()


def test_the_way_in_may_be_one_key_for_all_that_the_topology_keeps_in_redis(secured, password) -> None:
    host, port, *_ = (secured.place[name] for name in ("host", "port"))
    access = {"user": secured.user, "password": password, "ca": secured.place["ca"]}
    found = provider_of(conf_of({"host": host, "port": port}, **{REDIS_ACCESS: access}))
    found.check()
    found.close()
    spout = RedisStreamSpout(f"{NAME}:orders", ["id"], "all", host=host, port=port)
    spout.check_start({REDIS_ACCESS: access})
    TransactionalRedisSpout([f"{NAME}:orders"], ["id"], host=host, port=port).check_start({REDIS_ACCESS: access})


def test_code_may_name_the_way_in_too(secured, password) -> None:
    place = dict(secured.place)
    where = {"host": place.pop("host"), "port": place.pop("port")}
    access = {**place, "password": Secret(password)}
    map = RedisBacking(f"{NAME}:counts", **where, access=access)
    map.check()
    assert map.multi_put([(b"a", None, b"1")])
    assert map.multi_get([b"a"]) == [b"1"]
    map.close()
    RedisStreamSpout(f"{NAME}:orders", ["id"], "all", **where, access=access).check_start({})


@pytest.mark.parametrize("by", ["conf", "environment"])
def test_a_store_is_reached_under_a_url_with_user_and_authority(secured, password, by, monkeypatch) -> None:
    conf: dict[str, Any] = {}
    if by == "conf":
        conf[REDIS_ACCESS] = {"password": password}
    else:
        monkeypatch.setenv(PASSWORD, secured.password)
    with closing(open_store(url_of(secured), conf)) as store:
        store.check()
        assert store.largest > 1 << 20  # although this user may not ask for it
        claim = store.claim(f"state/{NAME}/{by}", "run-1", NAME)
        assert claim.write({"rows": {b"moon": b"1"}}, {"rows": {b"moon": None}})
        assert dict(store.list(f"state/{NAME}/{by}", "rows")) == {b"moon": b"1"}
        assert f"state/{NAME}/{by}" in store.places(f"state/{NAME}")
        claim.release()
        with pytest.raises(StateError, match=r"'\{another/0\}/\*' in Redis.*give its user the right \(ACL SETUSER\)"):
            store.claim("another/0", "run-1", "another")


@pytest.mark.parametrize(
    ("user", "access", "message"),
    [
        ("shop", {"password": "guessed"}, "invalid username-password"),
        ("eve", {}, "invalid username-password"),
    ],
)
def test_a_store_says_why_a_user_may_not_enter(secured, password, user, access, message, monkeypatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    url = url_of(secured).replace(secured.user, user, 1)
    with closing(open_store(url, {REDIS_ACCESS: {"password": password, **access}})) as store:
        for use in (store.check, lambda: store.get(f"state/{NAME}/0", "rows", [b"moon"])):
            with pytest.raises(StateError, match=message) as caught:
                use()
            assert "guessed" not in str(caught.value)


@pytest.mark.parametrize("by", ["conf", "environment"])
def test_a_position_is_kept_under_a_url_with_user_and_authority(secured, password, by, monkeypatch) -> None:
    conf: dict[str, Any] = {"multilang.positions": url_of(secured), "storm.id": "run-1", "topology.name": NAME}
    if by == "conf":
        conf[REDIS_ACCESS] = {"password": password}
    else:
        monkeypatch.setenv(PASSWORD, secured.password)
    first = open_positions(conf, f"{by}/0")
    assert first.claim() is None
    first.save("7")
    first.close()
    again = open_positions(conf, f"{by}/0")
    assert again.claim() == "7"
    again.close()


def test_a_url_names_the_way_in_to_spark_too(secured, password) -> None:
    from spark_bridge.job.state import conf_of as of_spark

    found = provider_of({**of_spark(url_of(secured)), "topology.name": NAME, REDIS_ACCESS: {"password": password}})
    found.check()
    found.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"password": "guessed"}, rf"invalid username-password.*its user and password belong into {REDIS_ACCESS}"),
        ({"user": "eve"}, rf"invalid username-password.*its user and password belong into {REDIS_ACCESS}"),
        ({"password": None}, r"invalid username-password|[Aa]uthentication required"),
        (
            {"ca": None, "tls": True},
            rf"certificate verify failed.*name the authority that signed its certificate in {REDIS_ACCESS}",
        ),
        ({"host": "localhost"}, r"certificate verify failed.*Hostname mismatch"),
        ({"ca": None}, r"can't be used"),
    ],
    ids=["password", "user", "none", "authority", "host", "no TLS"],
)
def test_a_refused_login_is_reported_at_once(secured, password, change, message, monkeypatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    found = provider_of(conf_of({**secured.place, "password": password, **change}))
    with pytest.raises(StateError, match=message) as caught:
        found.check()
    assert secured.password not in str(caught.value)
    assert "guessed" not in str(caught.value)


def test_a_topology_with_a_wrong_password_does_not_start(secured) -> None:
    from multilang.local import LocalCluster, TaskStartError

    conf = conf_of({**secured.place, "password": "guessed"})
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises((TaskStartError, StateError), match="invalid username"),
    ):
        cluster.submit(topology)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ({"tls": "yes"}, r"jedisPoolConfig.tls is 'yes'; use true or false"),
        ({"tls": False, "ca": "/ca.pem"}, "tls is false, and there are certificates"),
        ({"key": "/key.pem"}, "a key needs its certificate"),
        ({"user": 5}, "jedisPoolConfig.user is 5; use text"),
        ({"password": {"path": "/x"}}, "jedisPoolConfig.password is an object without 'env' or 'file'"),
        ({"ca": "/nowhere/ca.pem"}, "ca of Redis is '/nowhere/ca.pem', which can't be read here"),
        ({"password": {"env": "NOT_SET_ANYWHERE"}}, "environment variable NOT_SET_ANYWHERE, which is not set"),
    ],
)
def test_a_way_in_that_can_not_be_is_named(pool, message) -> None:
    with pytest.raises(ConfigError, match=message):
        provider_of(conf_of(pool)).check()


@pytest.mark.parametrize(
    "url",
    [
        "rediss://u:p@host/0",
        "redis://host/x",
        "redis://host/0?ca=/x",
        "rediss://host/0?password=x",
        "http://host/0",
        "rediss:///0",
    ],
)
def test_a_url_that_can_not_be_is_refused(url) -> None:
    with pytest.raises(ValueError, match=r"its form is|a password belongs into"):
        place_of(url)
    assert os.environ.get(PASSWORD) is None


def test_a_cluster_is_reached_by_tls_and_by_a_user_too(password, tmp_path) -> None:
    import redis as module

    server = SecuredRedisServer(tmp_path, NAME, Authority(tmp_path, "authority"))
    users = tmp_path / "users.acl"
    rights = f"~{{*/{NAME}[}}/]* -@all +@read +@write +@connection +@scripting +@transaction -@dangerous +cluster|slots"
    digest = hashlib.sha256(server.password.encode()).hexdigest()
    users.write_text(f"user default off\nuser admin on #{digest} ~* +@all\nuser {server.user} on #{digest} {rights}\n")
    place = {name: server.place[name] for name in ("user", "ca")}
    try:
        server.start("--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port", str(free_port()))
        by_tls = {"ssl": True, "ssl_ca_certs": str(place["ca"])}
        with module.Redis("127.0.0.1", server.port, username="admin", password=server.password, **by_tls) as admin:
            admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_for(lambda: "cluster_state:ok" in str(admin.execute_command("CLUSTER", "INFO")), "the cluster is up")

        def of(**access: Any) -> Any:
            nodes = {"nodes": [f"127.0.0.1:{server.port}"]}
            conf = json.dumps({"jedisClusterConfig": {**nodes, **place, "password": password, **access}})
            return provider_of({**conf_of({}), "topology.state.provider.config": conf})

        found = of()
        found.check()
        state = opened(found, "count-0")
        state.put("moon", 1)
        state.prepare_commit(1)
        state.commit(1)
        assert dict(opened(found, "count-0")) == {"moon": 1}
        found.close()
        for wrong, message in (
            ({"password": "guessed"}, "invalid username-password|[Aa]uthentication"),
            ({"ca": None, "tls": True}, "certificate verify failed"),
        ):
            with pytest.raises(StateError, match=message) as caught:
                of(**wrong).check()
            assert "guessed" not in str(caught.value)
    finally:
        server.kill()
