"""States in Redis: Storm's config names it, topologies share it, and it may go away for a while. Its rows: tests/store."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import requires
from pathlib import Path

import pytest

from multilang.local import LocalCluster, TaskStartError
from multilang.shipping.cluster.artifacts import cache_folder
from multilang.state import RedisStateProvider, StateError, StoreGoneError
from multilang.state.admin import StoredStates
from multilang.state.providers import provider_of
from tests.servers import free_port, wait_for
from tests.state.conftest import opened
from tests.state.topologies import topology


@pytest.fixture
def client(redis):
    import redis as module

    client = module.Redis(port=redis.port, decode_responses=True)
    yield client
    client.close()


def test_a_redis_that_is_killed_and_started_again_is_waited_for(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    server.start()
    try:
        found = provider_of(server.conf)
        state = opened(found, "count-0")
        state.put("moon", 1)
        state.prepare_commit(1)
        server.kill()
        restarter = threading.Timer(0.5, server.start)
        restarter.start()
        try:
            state.commit(1)
        finally:
            restarter.join()
        again = opened(found, "count-0")
        assert dict(again) == {"moon": 1}
        assert found.txids("count-0") == (1, 1)
        found.close()
    finally:
        server.kill()


def test_a_redis_that_is_not_there_is_named_after_a_while(monkeypatch):
    monkeypatch.setattr("multilang.store.redis_client.PATIENCE_SECS", 0.5)
    found = RedisStateProvider({"jedisPoolConfig": {"host": "127.0.0.1", "port": 1, "timeout": 100}}, {})
    start = time.monotonic()
    with pytest.raises(StateError, match=r"Redis 127\.0\.0\.1:1, database 0 can't be used"):
        opened(found, "count-0")
    assert 0.5 <= time.monotonic() - start < 60


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
@pytest.mark.parametrize(
    "config",
    [
        {"jedisPoolConfig": {"host": "127.0.0.1", "port": 1}},
        {"jedisClusterConfig": {"nodes": ["127.0.0.1:1"]}},
    ],
)
def test_a_redis_that_is_not_there_at_the_start_is_reported_once_and_soon(mode, config, monkeypatch):
    # Whoever waits for as long as what runs would not come to an end.
    monkeypatch.setattr("multilang.store.redis_client.PATIENCE_SECS", 24 * 3600)
    monkeypatch.setattr("multilang.store.redis.HASTE_SECS", 0.2)
    conf = {"topology.state.provider": "redis", "topology.state.provider.config": config}
    with (
        LocalCluster(mode=mode, conf=conf) as cluster,
        pytest.raises(
            TaskStartError,
            match=r"Redis .*127\.0\.0\.1:1.*; start it, or name another in topology\.state\.provider\.config",
        ),
    ):
        cluster.submit(topology)
    with pytest.raises(StateError, match="start it"):
        StoredStates(topology, conf)


def test_a_redis_that_answers_nothing_is_left_when_patience_is_at_its_end(monkeypatch):
    monkeypatch.setattr("multilang.store.redis.HASTE_SECS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        pool = {"host": "127.0.0.1", "port": silent.getsockname()[1], "timeout": 1000}
        start = time.monotonic()
        with pytest.raises(StateError, match="Timeout"):
            RedisStateProvider({"jedisPoolConfig": pool}, {}).check()
        assert 1 <= time.monotonic() - start < 60


def test_a_redis_that_wants_a_password_says_where_it_belongs(tmp_path, redis_server, monkeypatch):
    import redis as module

    server = type(redis_server)(tmp_path)
    server.start()
    try:
        with module.Redis(port=server.port) as client:
            client.config_set("requirepass", "secret")
        with pytest.raises(StateError, match="MULTILANG_REDIS_PASSWORD"):
            provider_of(server.conf).check()
        monkeypatch.setenv("MULTILANG_REDIS_PASSWORD", "secret")
        provider_of(server.conf).check()
    finally:
        server.kill()


def test_the_database_and_the_password_of_the_config_are_used(tmp_path, redis_server):
    import redis as module

    server = type(redis_server)(tmp_path)
    server.start()
    try:
        with module.Redis(port=server.port) as client:
            client.config_set("requirepass", "secret")
        pool = {"host": "127.0.0.1", "port": server.port, "timeout": 20_000, "database": 3}
        with pytest.raises(StateError, match=r"(?i)password"):
            RedisStateProvider({"jedisPoolConfig": {**pool, "password": "other"}}, {}).check()
        provider = RedisStateProvider({"jedisPoolConfig": {**pool, "password": "secret"}}, {"topology.name": "one"})
        provider.check()
        state = provider.new_state("count-0")
        state.claim(provider.claim())
        state.put("moon", 1)
        state.commit()
        state.close()
        provider.close()
        with module.Redis(port=server.port, password="secret") as client:
            assert client.info("keyspace").keys() == {"db3"}
    finally:
        server.kill()


def test_a_redis_cluster_is_named_by_its_nodes(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    try:
        start_cluster(server)
        found = RedisStateProvider({"jedisClusterConfig": {"nodes": [f"127.0.0.1:{server.port}"]}}, {})
        state = opened(found, "count-0")
        state.put("moon", 1)
        state.prepare_commit(1)
        state.commit(1)
        assert dict(opened(found, "count-0")) == {"moon": 1}
        assert found.namespaces() == ["count-0"]
        found.replace({"count-0": {"sun": 1}, "count-1": {"star": 2}})
        assert [dict(opened(found, name)) for name in found.namespaces()] == [{"sun": 1}, {"star": 2}]
        found.close()
    finally:
        server.kill()


def test_a_redis_cluster_whose_nodes_are_all_killed_and_started_again_is_waited_for(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    try:
        start_cluster(server)
        found = RedisStateProvider({"jedisClusterConfig": {"nodes": [f"127.0.0.1:{server.port}"]}}, {})
        state = opened(found, "count-0")
        state.put("moon", 1)
        state.prepare_commit(1)
        server.kill()
        restarter = threading.Timer(0.5, start_cluster, (server,))
        restarter.start()
        try:
            state.commit(1)
        finally:
            restarter.join()
        assert dict(found.new_state("count-0")) == {"moon": 1}
        found.close()
    finally:
        server.kill()


def start_cluster(server):
    import redis as module

    new = not (server.folder / "nodes.conf").exists()
    server.start("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with module.Redis(port=server.port) as client:
        if new:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_for(lambda: "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")), "the cluster is up")


def test_with_the_oldest_redis_py_that_is_allowed_it_is_waited_for_as_well(redis_server):
    """The newest is what is installed here; this repeats the tests of waiting with the oldest."""
    requirement = next(each for each in requires("storm-multilang") or () if each.startswith("redis"))
    oldest = re.search(r">=([\d.]+)", requirement)[1]
    folder = oldest_redis_py(oldest)
    env = {**os.environ, "PYTHONPATH": str(folder)}
    version = [sys.executable, "-c", "import redis; print(redis.__version__)"]
    found = subprocess.run(version, env=env, check=True, capture_output=True, text=True).stdout.strip()
    assert [int(part) for part in found.split(".")] == [int(part) for part in f"{oldest}.0.0".split(".")][:3]
    tests = "started_again or after_a_while or password"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        tests,
        __file__,
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def oldest_redis_py(version):
    """Its folder, fetched once by pip, and there whole or not at all."""
    folder = cache_folder() / f"redis-py-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}-"))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(part / "lib"), f"redis=={version}"]
        subprocess.run(pip, check=True, stdin=subprocess.DEVNULL)
        try:
            (part / "lib").rename(folder)
        except OSError:  # another process was quicker
            assert folder.is_dir()
        shutil.rmtree(part)
    return folder


def test_what_was_done_but_not_answered_is_done_once_and_goes_on(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    server.start()
    pool = {"host": "127.0.0.1", "port": server.port, "timeout": 200}
    conf = {**server.conf, "topology.state.provider.config": {"jedisPoolConfig": pool}}
    found = provider_of(conf)
    state = opened(found, "count-0")
    try:
        for txid in range(3):
            state.store.trace = lambda step: step == "write" and server.pause(1)
            state.put("last", txid)
            state.delete("first") if txid % 2 else state.put("first", txid)
            state.prepare_commit(txid)
            state.commit(txid)
        state.put("last", 7)
        state.prepare_commit(3)
        state.rollback()
        state.claim(found.claim())
        assert dict(state) == {"last": 2, "first": 2}
        assert state.store.txids() == (2, 2)
    finally:
        found.close()
        server.kill()


def test_two_topologies_share_a_database_under_their_names(redis):
    one, other = (provider_of({**redis.conf, "topology.name": name}) for name in ("one", "on*"))
    states = [opened(one, "count-0"), opened(other, "count-0")]
    for value, state in enumerate(states):
        state.put("moon", value)
        state.prepare_commit(1)
        state.commit(1)
    assert [dict(state) for state in states] == [{"moon": 0}, {"moon": 1}]
    assert one.namespaces() == other.namespaces() == ["count-0"]
    other.replace({"count-0": {}})
    assert (one.namespaces(), other.namespaces()) == (["count-0"], [])
    one.close()
    other.close()


def test_a_database_that_was_emptied_under_its_users_is_reported(redis, client):
    found = provider_of(redis.conf)
    state = opened(found, "count-0")
    state.put("moon", 1)
    client.flushall()
    with pytest.raises(StoreGoneError, match=r"'count-0' in Redis .* was deleted"):
        state.prepare_commit(1)
    found.close()


def test_a_value_that_redis_does_not_take_is_refused_where_it_is_put(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    server.start("--proto-max-bulk-len", "1mb")
    try:
        found = provider_of(server.conf)
        state = opened(found, "count-0")
        state.put("small", "x")
        for value in ("x" * 2**20, ["é" * 2**20]):
            with pytest.raises(
                ValueError, match=r"value of 'large' in the state of 'count-0' has [\d,]+ bytes.*1,048,576"
            ):
                state.put("large", value)
        with pytest.raises(
            ValueError, match=r"a key in the state of 'count-0' has [\d,]+ bytes.*1,048,576; it begins with 'kkk"
        ):
            state.put("k" * 2**20, 1)
        state.prepare_commit(1)
        state.commit(1)
        assert dict(state) == {"small": "x"}
        found.close()
    finally:
        server.kill()


def test_a_checkpoint_larger_than_the_server_takes_in_one_command_goes_in_several(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    server.start("--client-query-buffer-limit", "6mb")
    try:
        found = provider_of(server.conf)
        state = opened(found, "count-0")
        for n in range(200):
            state.put(f"key {n}", "x" * 50_000)
        state.prepare_commit(1)
        state.commit(1)
        assert len(dict(found.new_state("count-0"))) == 200
        found.close()
    finally:
        server.kill()
