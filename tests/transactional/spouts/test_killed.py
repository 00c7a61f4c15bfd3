"""The servers that a topology stands on are killed while it runs, and started again: every row is counted once."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest

from multilang.local import LocalCluster
from multilang.transactional import OpaqueMap, RedisBacking, SqliteBacking, TransactionalMap
from tests.patience import patient
from tests.servers import KafkaServer, RedisServer, ZooKeeperServer, wait_for
from tests.soak import SOAK, soak_only
from tests.transactional.spouts.sources import FilledFiles, FilledKafka, FilledRedis
from tests.transactional.spouts.test_counts import WORDS, add, conf, holds
from tests.transactional.spouts.topologies import word_count

KILLS = 20 if SOAK else 2
LIMIT = patient(300)  # seconds, for servers that are started again

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600 if KILLS > 2 else 600)]


def started(kind, folder):
    folder.mkdir()
    server = kind(folder)
    server.start()
    return server


def run(server, source, spout, found, conf):
    """Kill the server in the midst of each of some rounds."""
    counts = Counter()
    with LocalCluster(mode="process", conf={"topology.message.timeout.secs": 10, **conf}) as cluster:
        running = cluster.submit(word_count(spout, found))
        for seed in range(KILLS):
            before = sum(counts.values())
            counts += add(source, random.Random(seed), 200)
            wait_for(lambda before=before: sum(found.multi_get(WORDS).values()) > before, "it goes on", LIMIT)
            server.kill()
            server.start()
            if seed % 2:
                wait_for(partial(holds, found, +counts), "all is counted", LIMIT)
        running.wait(timeout=LIMIT)
    assert found.multi_get(WORDS) == counts
    found.close()
    source.close()


@pytest.mark.parametrize("kind", ["idempotent", "opaque"] if SOAK else ["idempotent"])
def test_redis_with_the_source_and_the_counts_is_killed(kind, redis_server, tmp_path):
    server = started(RedisServer, tmp_path / "redis")
    try:
        source = FilledRedis(server.port)
        backing = RedisBacking("counts", port=server.port)
        if kind == "opaque":
            run(server, source, source.opaque(take=10), OpaqueMap(backing), conf(tmp_path))
        else:
            run(server, source, source.spout(take=10), TransactionalMap(backing), conf(tmp_path))
    finally:
        server.kill()


@soak_only
@pytest.mark.parametrize("kind", ["idempotent", "opaque"] if SOAK else ["opaque"])
def test_zookeeper_with_the_transactions_is_killed(kind, zookeeper, tmp_path):
    server = started(ZooKeeperServer, tmp_path / "zookeeper")
    source = FilledFiles(tmp_path / "words")
    backing = SqliteBacking(tmp_path / "counts.sqlite")
    try:
        if kind == "opaque":
            run(server, source, source.opaque(take=10), OpaqueMap(backing), server.conf)
        else:
            run(server, source, source.spout(take=10), TransactionalMap(backing), server.conf)
    finally:
        server.kill()


@soak_only
def test_kafka_with_the_source_is_killed(kafka, tmp_path):
    server = started(KafkaServer, tmp_path / "kafka")
    try:
        source = FilledKafka(server.address)
        found = OpaqueMap(SqliteBacking(tmp_path / "counts.sqlite"))
        run(server, source, source.opaque(take=10), found, conf(tmp_path))
    finally:
        server.kill()
