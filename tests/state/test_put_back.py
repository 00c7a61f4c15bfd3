"""A place that is put back to an older copy, or loses keys, while a topology uses it: told at the next write, never mixed."""

from __future__ import annotations

import os
import random
import re
import sqlite3

import pytest
import redis as redis_package

from multilang.local import LocalCluster, LocalClusterError
from multilang.protocol.codec import loads
from multilang.state import FencedError, StateError, StoreGoneError
from multilang.state.checked import check_whole, noted_whole
from multilang.state.providers import provider_of
from tests.patience import patient
from tests.state.conftest import conf_of, opened
from tests.state.topologies import topology

SEEDS = 8


class SqliteCopies:
    """Copies of the file, put back into the very same file."""

    def __init__(self, conf):
        self.path = conf["topology.state.provider.config"]["path"]

    def take(self):
        copy = sqlite3.connect(":memory:")
        with sqlite3.connect(self.path) as live:
            live.backup(copy)
        live.close()
        return copy

    def put_back(self, copy):
        live = sqlite3.connect(self.path)
        copy.backup(live)
        live.close()

    def content(self):
        live = sqlite3.connect(self.path)
        found = list(live.iterdump())
        live.close()
        return found


class RedisCopies:
    """As after a restart from an older snapshot, or a failover to a replica that is behind."""

    def __init__(self, conf):
        config = loads(conf["topology.state.provider.config"])
        self._client = redis_package.Redis(port=config["jedisPoolConfig"]["port"])

    def take(self):
        return {key: self._client.dump(key) for key in self._client.scan_iter() if not key.endswith(b"$beats")}

    def put_back(self, copy):
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.flushall()
            for key, value in copy.items():
                pipeline.restore(key, 0, value)
            pipeline.execute()

    content = take


COPIES = {"sqlite": SqliteCopies, "redis": RedisCopies}


class Task:
    """A state and random steps of its, as checkpoints take them."""

    def __init__(self, state, rng):
        self.state = state
        self.txid = 0
        self._rng = rng
        self._prepared = False

    def put(self):
        for _ in range(self._rng.randrange(4)):
            key = self._rng.choice("abcdef")
            if self._rng.random() < 0.3:
                self.state.delete(key)
            else:
                self.state.put(key, self._rng.randrange(100))

    def step(self):
        self.put()
        ways = ["at once", "prepare", "roll back"] + ["commit"] * 3 * self._prepared
        way = self._rng.choice(ways)
        if way == "at once" and not self._prepared:
            self.state.commit()
        elif way == "commit":
            self.state.commit(self.txid)
            self._prepared = False
        elif way == "roll back":
            self.state.rollback()
            self._prepared = False
        else:
            self.txid += not self._prepared
            self.state.prepare_commit(self.txid)
            self._prepared = True


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", COPIES)
def test_an_older_copy_is_noticed_at_the_next_write_and_nothing_is_written_to_it(kind, seed, request, tmp_path):
    rng = random.Random(seed)
    conf = conf_of(kind, request, tmp_path)
    copies = COPIES[kind](conf)
    found = provider_of(conf)
    task = Task(opened(found, "count-0"), rng)
    for _ in range(rng.randrange(4)):
        task.step()
    older = copies.take()
    for _ in range(rng.randrange(1, 4)):
        task.step()
    copies.put_back(older)
    before = copies.content()
    with pytest.raises(StoreGoneError, match=r"'count-0'.*was put back to an older copy while it was in use"):
        task.step()
    assert copies.content() == before
    task.state.close()
    found.close()
    if kind == "sqlite":  # an older copy is refused until somebody says that it is meant
        for _ in range(2):
            with pytest.raises(
                StoreGoneError, match=rf"lacks the last \d+ of \d+ commits.*remove {copies.path}\.commits"
            ):
                opened(provider_of(conf), "count-0")
        os.unlink(f"{copies.path}.commits")
    # Whoever starts then goes on from the copy.
    again = provider_of(conf)
    state = opened(again, "count-0")
    state.put("g", 1)
    state.commit()
    assert state.get("g") == 1
    state.close()
    again.close()


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", COPIES)
def test_the_present_copy_is_as_good_as_the_place_itself(kind, seed, request, tmp_path):
    rng = random.Random(seed)
    conf = conf_of(kind, request, tmp_path)
    copies = COPIES[kind](conf)
    found = provider_of(conf)
    task = Task(opened(found, "count-0"), rng)
    for _ in range(10):
        task.step()
        if rng.random() < 0.5:
            copies.put_back(copies.take())
    task.state.close()
    found.close()


@pytest.mark.parametrize("kind", COPIES)
def test_what_all_tasks_prepared_can_not_be_missing_in_one(kind, request, tmp_path):
    conf = conf_of(kind, request, tmp_path)
    found = provider_of(conf)
    state = opened(found, "count-0")
    state.prepare_commit(1)
    with pytest.raises(StoreGoneError, match="transaction 3 can't be committed in 'count-0', where 1 is prepared"):
        state.commit(3)
    state.close()
    found.close()


class Echoing:
    """A client whose scripts may reach Redis a second time, later: the network has kept a copy of what was sent."""

    def __init__(self, client):
        self._client = client
        self.sent = []

    def __getattr__(self, name):
        return getattr(self._client, name)

    def eval(self, *arguments):
        self.sent.append(arguments)
        return self._client.eval(*arguments)

    def again(self, rng):
        self._client.eval(*rng.choice(self.sent))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_step_that_arrives_again_later_changes_nothing(seed, redis):
    rng = random.Random(seed)
    conf = {**redis.conf, "topology.name": "stateful"}
    found = provider_of(conf)
    copies = RedisCopies(conf)
    task = Task(opened(found, "count-0"), rng)
    echoing = task.state.store._client = Echoing(task.state.store._client)
    for _ in range(20):
        task.step()
        before = copies.content()
        echoing.again(rng)
        assert copies.content() == before
    task.state.close()
    found.close()


class Losing(Echoing):
    """A client that does not get some answers, and so sends these scripts again at once."""

    def __init__(self, client, rng):
        super().__init__(client)
        self._rng = rng

    def eval(self, *arguments):
        if self._rng.random() < 0.3:
            super().eval(*arguments)
        return super().eval(*arguments)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_claim_that_arrives_again_later_takes_nothing_from_the_newest_owner(seed, redis):
    rng = random.Random(seed)
    conf = {**redis.conf, "topology.name": "stateful"}
    found = provider_of(conf)
    epoch = found.claim()
    copies = RedisCopies(conf)
    client = Losing(found.client, rng)
    former = []
    for number in range(8):
        store = found.new_state("count-0").store
        store._client = client
        for _ in range(rng.randint(1, 2)):  # the second time for a checkpoint spout that was started again
            epoch += rng.randint(0, 1)
            store.claim(epoch)
        if rng.random() < 0.5:
            store.write([(b"1", b"0")])
        before = copies.content()
        for arguments in client.sent:
            found.client.eval(*arguments)
        assert copies.content() == before
        for each in former:
            with pytest.raises(FencedError):
                each.write([(b"1", b"-1")])
        store.write([(b"1", b"%d" % number)])
        assert store.load(b"1") == b"%d" % number
        former.append(store)
    found.close()


@pytest.mark.parametrize("suffix", ["", "$prepare"])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("then", ["write", "start again"])
def test_keys_that_redis_lost_are_missed(redis, suffix, whole, then):
    conf = {**redis.conf, "topology.name": "stateful"}
    found = provider_of(conf)
    state = opened(found, "count-0")
    for txid in (1, 2):
        state.put(f"moon{txid}", 1)
        state.put(f"sun{txid}", 1)
        state.prepare_commit(txid)
        if txid == 1:
            state.commit(txid)
    client = redis_package.Redis(port=redis.port)
    key = f"stateful:count-0{suffix}"
    if whole:
        assert client.delete(key)
    else:
        assert client.hdel(key, client.hkeys(key)[0])
    use = (lambda: state.commit(2)) if then == "write" else (lambda: opened(found, "count-0"))
    with pytest.raises(
        StoreGoneError, match=rf"'{key.replace('$', '.')}' has {0 if whole else 1} keys, and 2 were written"
    ):
        use()
    client.close()
    found.close()


def test_a_redis_that_deletes_keys_by_itself_is_refused(redis):
    client = redis_package.Redis(port=redis.port)
    client.config_set("maxmemory", "1gb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        found = provider_of({**redis.conf, "topology.name": "stateful"})
        for call in (found.check, found.claim):
            with pytest.raises(StateError, match=r"maxmemory-policy allkeys-lru.*set it to noeviction"):
                call()
        client.config_set("maxmemory-policy", "volatile-lru")
        found.check()
        found.claim()
        found.close()
    finally:
        client.config_set("maxmemory", "0")
        client.config_set("maxmemory-policy", "noeviction")
        client.close()


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("gone", ["count-0", "count-1", "$checkpointspout-0"])
def test_a_topology_is_not_started_where_the_state_of_one_task_is_gone(kind, gone, request, tmp_path):
    conf = {**conf_of(kind, request, tmp_path), "topology.state.checkpoint.interval.ms": 20, "test.sentences": 200}

    def run():
        with LocalCluster("inprocess", conf=conf) as cluster:
            cluster.submit(topology, name="stateful").wait(timeout=patient(60))

    run()
    if kind == "sqlite":
        with sqlite3.connect(tmp_path / "state.sqlite") as live:
            for table in ("txids", "data", "prepared"):
                live.execute(f"DELETE FROM {table} WHERE namespace = ?", (gone,))
        live.close()
    else:
        client = redis_package.Redis(port=loads(conf["topology.state.provider.config"])["jedisPoolConfig"]["port"])
        assert client.delete(*(f"stateful:{gone}{suffix}" for suffix in ("", "$prepare", "$txid")))
        client.close()
    said = f"the state of '{re.escape(gone)}'(, which has the progress of the checkpoints,)? is gone from"
    with pytest.raises(LocalClusterError, match=f"can't be started.*{said}"):
        run()


def contents_of(kind, conf, name):
    """Return the stored rows of one task."""
    if kind == "sqlite":
        with sqlite3.connect(conf["topology.state.provider.config"]["path"]) as live:
            found = {
                table: live.execute(f"SELECT * FROM {table} WHERE namespace = ?", (name,)).fetchall()
                for table in ("txids", "data", "prepared")
            }
        live.close()
        return found
    with redis_package.Redis(port=loads(conf["topology.state.provider.config"])["jedisPoolConfig"]["port"]) as client:
        return {key: client.dump(key) for key in client.scan_iter(match=f"stateful:{name}*")}


def put_back_contents(kind, conf, contents):
    if kind == "sqlite":
        with sqlite3.connect(conf["topology.state.provider.config"]["path"]) as live:
            for table, rows in contents.items():
                for row in rows:
                    live.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        live.close()
        return
    with redis_package.Redis(port=loads(conf["topology.state.provider.config"])["jedisPoolConfig"]["port"]) as client:
        for key, value in contents.items():
            client.restore(key, 0, value, replace=True)


@pytest.mark.parametrize("kind", COPIES)
def test_a_topology_is_not_started_where_the_state_of_one_task_is_older(kind, request, tmp_path):
    """As after the failover of one node of a Redis cluster to a replica that is behind."""
    conf = {**conf_of(kind, request, tmp_path), "topology.state.checkpoint.interval.ms": 20, "test.sentences": 200}

    def run():
        with LocalCluster("inprocess", conf=conf) as cluster:
            cluster.submit(topology, name="stateful").wait(timeout=patient(60))

    run()
    older = contents_of(kind, conf, "count-1")
    run()
    newest = contents_of(kind, conf, "count-1")
    put_back_contents(kind, conf, older)
    with pytest.raises(LocalClusterError, match=r"can't be started.*the state of 'count-1' in .* is an older copy"):
        run()
    put_back_contents(kind, conf, newest)
    run()


def test_components_that_the_topology_no_longer_has_are_not_missed(request, tmp_path):
    conf = conf_of("sqlite", request, tmp_path)
    found = provider_of(conf)
    spout = opened(found, "$checkpointspout-0")
    spout.put("__tasks", {"count": 1, "former": 1})
    noted_whole(spout, ["count", "former"])
    spout.commit()
    state = opened(found, "count-0")
    state.prepare_commit(1)
    state.commit(1)
    check_whole(found, spout, ["count"])
    with pytest.raises(StoreGoneError, match="the state of 'former-0' is gone"):
        check_whole(found, spout, ["count", "former"])
    noted_whole(spout, ["count"])
    check_whole(found, spout, ["count", "former"])  # it may come again, and begins anew
    found.close()
