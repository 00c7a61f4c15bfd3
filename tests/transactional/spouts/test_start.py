"""A missing part is reported once at the start of a topology, in a line that names it, and nothing is started."""

from __future__ import annotations

import pytest

from multilang.local import LocalCluster, TaskStartError
from multilang.store import redis as redis_store
from multilang.store import zookeeper
from multilang.transactional import (
    MemoryBacking,
    OpaqueMap,
    RedisBacking,
    SqliteBacking,
    TransactionalFileSpout,
    TransactionalKafkaSpout,
    TransactionalMap,
    TransactionalRedisSpout,
)
from multilang.transactional.spouts import kafka, redis
from tests.servers import free_port
from tests.transactional.spouts.topologies import word_count


def told(spout, conf=None):
    with LocalCluster(conf=conf or {}) as cluster, pytest.raises(TaskStartError) as found:
        cluster.submit(word_count(spout, TransactionalMap(MemoryBacking())))
    return str(found.value)


@pytest.fixture
def conf(tmp_path):
    return {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions"}


def test_a_folder(tmp_path, conf):
    said = told(TransactionalFileSpout(tmp_path / "nix"), conf)
    assert said.startswith("spout 'spout/coordinator' can't be started: there is no folder ")
    assert "\n" not in said


def test_a_redis(monkeypatch, conf):
    monkeypatch.setattr(redis, "START_SECS", 0.2)
    port = free_port()
    said = told(TransactionalRedisSpout(["words"], ["word"], port=port, timeout=100), conf)
    assert f"Redis localhost:{port}, database 0 can't be used" in said


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_redis_of_a_map(monkeypatch, tmp_path, conf, kind):
    monkeypatch.setattr(redis_store, "HASTE_SECS", 0.2)
    port = free_port()
    (tmp_path / "words").mkdir()
    counts = kind(RedisBacking("words", port=port, timeout=100))
    with LocalCluster(conf=conf) as cluster, pytest.raises(TaskStartError) as found:
        cluster.submit(word_count(TransactionalFileSpout(tmp_path / "words"), counts))
    assert f"Redis localhost:{port}, database 0 can't be used" in str(found.value)


def test_a_map_in_a_file_of_something_else(tmp_path, conf):
    (tmp_path / "words").mkdir()
    (tmp_path / "counts").write_text("something else " * 100)
    counts = TransactionalMap(SqliteBacking(tmp_path / "counts"))
    with (
        LocalCluster(conf=conf) as cluster,
        pytest.raises(TaskStartError, match=r"the SQLite file .*counts is damaged"),
    ):
        cluster.submit(word_count(TransactionalFileSpout(tmp_path / "words"), counts))


def test_a_broker_of_kafka(monkeypatch, conf):
    monkeypatch.setattr(kafka, "PATIENCE_SECS", 1.0)
    said = told(TransactionalKafkaSpout(f"127.0.0.1:{free_port()}", "words"), conf)
    assert "topic 'words' of Kafka at" in said
    assert "is a broker running there?" in said


def test_a_zookeeper(tmp_path, monkeypatch):
    monkeypatch.setattr(zookeeper, "START_SECS", 0.2)
    port = free_port()
    conf = {"multilang.transactional.store": "zookeeper", "storm.zookeeper.port": port}
    said = told(TransactionalFileSpout(tmp_path), conf)
    assert f"ZooKeeper localhost:{port} does not answer, 0.2 seconds long" in said
