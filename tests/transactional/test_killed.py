"""Processes of a running topology are killed, the coordinator's among them: every word counts once, and nothing is stuck.

Nor when the servers are killed in which transactions and counts are. 300 kills over 100,000 tuples with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import time
from collections import Counter

import pytest
from kazoo.client import KazooClient

from multilang.local import LocalCluster
from multilang.transactional import RedisBacking, TransactionalMap
from tests.patience import patient
from tests.servers import RedisServer, ZooKeeperServer
from tests.soak import SOAK, soak_only
from tests.transactional.history import assert_in_order
from tests.transactional.topologies import Database, counts_of, many, with_servers

KILLS, EACH = (300, 33_334) if SOAK else (6, 1000)
TAKE = 30


@pytest.mark.timeout(120 + 20 * KILLS)
def test_every_word_is_counted_once_though_processes_are_killed(tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    conf = {
        "multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite",
        "test.database": str(tmp_path / "counts.sqlite"),
        "test.words": EACH,
        "test.take": TAKE,
        "topology.max.spout.pending": 3,
        "topology.message.timeout.secs": 1,
        "topology.tick.tuple.freq.secs": 1,
    }
    database = Database(conf)
    killed = Counter()

    def counted():
        return database.get("*")[0]

    with LocalCluster(conf=conf) as cluster:
        run = cluster.submit(many)
        for kill in range(KILLS):
            # At most so many words before each: the last kill, too, is in the midst of the work.
            enough = min(counted() + 1, 3 * EACH * (kill + 1) // (KILLS + 1))
            run.wait(until=lambda _, enough=enough: counted() >= enough, timeout=patient(90))
            time.sleep(chance.random() * 0.05)  # sooner or later after a commit
            run.wait(until=lambda run: any(task.pid for task in run.tasks), timeout=patient(90))
            victim = chance.choice([task for task in run.tasks if task.pid])
            os.kill(victim.pid, signal.SIGKILL)
            killed[victim.component] += 1
        assert counted() < 3 * EACH, "all words were counted before the last kill"
        run.wait(timeout=patient(150))
        restarts = {task.component for task in run.tasks if task.restarts}
    print(dict(killed))
    assert restarts == set(killed)
    counts = database.counts()
    assert counts.pop("*") == 3 * EACH
    assert counts == counts_of(EACH)
    commits = database.commits()
    assert_in_order(commits)
    assert {txid for _, txid, _ in commits} == set(range(1, commits[-1][1] + 1))
    database.close()


@soak_only
@pytest.mark.timeout(200 + 20 * KILLS)
def test_every_word_is_counted_once_though_zookeeper_redis_and_processes_are_killed(tmp_path, zookeeper, redis_server):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    servers = []
    for kind in (ZooKeeperServer, RedisServer):
        folder = tmp_path / kind.name
        folder.mkdir()
        servers.append(kind(folder))
    conf = {
        **servers[0].conf,
        "test.redis.port": servers[1].port,
        "test.words": EACH,
        "test.take": TAKE,
        "topology.max.spout.pending": 3,
        "topology.message.timeout.secs": 2,
        "topology.tick.tuple.freq.secs": 1,
    }
    counts = TransactionalMap(RedisBacking("words", "127.0.0.1", servers[1].port))
    killed = Counter()

    def counted():
        return counts.get("*", 0)

    try:
        for server in servers:
            server.start()
        with LocalCluster(conf=conf) as cluster:
            run = cluster.submit(with_servers)
            for kill in range(KILLS):
                enough = min(counted() + 1, 3 * EACH * (kill + 1) // (KILLS + 1))
                run.wait(until=lambda _, enough=enough: counted() >= enough, timeout=patient(120))
                if kill % 3 == 2:
                    run.wait(until=lambda run: any(task.pid for task in run.tasks), timeout=patient(120))
                    victim = chance.choice([task for task in run.tasks if task.pid])
                    os.kill(victim.pid, signal.SIGKILL)
                    killed["process"] += 1
                else:
                    server = servers[kill % 3]
                    server.kill()
                    server.start()
                    killed[server.name] += 1
            assert counted() < 3 * EACH, "all words were counted before the last kill"
            run.wait(timeout=patient(150))
        print(dict(killed))
        found = counts.multi_get(["*", *counts_of(EACH)])
        assert found.pop("*") == 3 * EACH
        assert found == counts_of(EACH)
    finally:
        counts.close()
        for server in servers:
            if server.process is not None:
                server.kill()


@soak_only
@pytest.mark.timeout(120 + 20 * KILLS)
def test_every_word_is_counted_once_though_sessions_of_zookeeper_expire(tmp_path, zookeeper):
    """A session ends for all who have it when one of them closes it: the server tells the others that it expired."""
    conf = {
        **zookeeper.conf,
        "multilang.transactional.store": "zookeeper",
        "transactional.zookeeper.root": f"/{tmp_path.name}",
        "test.database": str(tmp_path / "counts.sqlite"),
        "test.words": EACH,
        "test.take": TAKE,
        "topology.max.spout.pending": 3,
        "topology.message.timeout.secs": 2,
        "topology.tick.tuple.freq.secs": 1,
    }
    database = Database(conf)
    expired = 0

    def counted():
        return database.get("*")[0]

    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        run = cluster.submit(many)
        for n in range(KILLS):
            enough = min(counted() + 1, 3 * EACH * (n + 1) // (KILLS + 1))
            run.wait(until=lambda _, enough=enough: counted() >= enough, timeout=patient(90))
            expired += expire_sessions(zookeeper)
        assert counted() < 3 * EACH, "all words were counted before the last session expired"
        run.wait(timeout=patient(150))
    assert expired >= KILLS
    counts = database.counts()
    assert counts.pop("*") == 3 * EACH
    assert counts == counts_of(EACH)
    assert_in_order(database.commits())
    database.close()


def expire_sessions(zookeeper):
    """End the sessions of all clients of this process, and return how many they were."""
    clients = [each for each in gc.get_objects() if isinstance(each, KazooClient) and each.connected]
    for client in clients:
        session, password = client.client_id
        other = KazooClient(f"127.0.0.1:{zookeeper.port}", client_id=(session, password))
        other.start()
        assert other.client_id[0] == session
        other.stop()
        other.close()
    return len(clients)
