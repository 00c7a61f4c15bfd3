"""An older copy that is put back while a topology uses it, or of one task alone: it is told, and nothing is written to it."""

from __future__ import annotations

import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import redis as redis_package

from multilang.local import LocalCluster, LocalClusterError
from multilang.protocol.codec import loads
from multilang.state import StoreGoneError
from multilang.state.checked import check_whole, noted_whole
from multilang.state.providers import provider_of
from multilang.store.settings import place_of
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
        return {
            key: self._client.dump(key)
            for key in self._client.scan_iter()
            if not key.endswith(b"$owner") and b"$call:" not in key
        }

    def put_back(self, copy):
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.flushall()
            for key, value in copy.items():
                pipeline.restore(key, 0, value)
            pipeline.execute()

    content = take


class FileCopies:
    """Copies of the files of a user's store, but not of its lock."""

    def __init__(self, conf):
        self.folder = Path(conf["multilang.store"].partition(":")[2])

    def take(self):
        return {file: file.read_bytes() for file in self.folder.glob("*.json")}

    def put_back(self, copy):
        for file in self.folder.glob("*.json"):
            file.unlink()
        for file, content in copy.items():
            file.write_bytes(content)

    content = take


COPIES = {"sqlite": SqliteCopies, "redis": RedisCopies, "files": FileCopies}
TABLES = ("head", "data", "prepared", "new")


def store_of(conf):
    """The store of a conf's states, opened for this."""
    return provider_of(conf).store


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
    with pytest.raises(
        StoreGoneError,
        match=r"'count-0'.*was changed by somebody else, or restored from an older copy, while it was in use",
    ):
        task.step()
    assert copies.content() == before
    task.state.close()
    found.close()
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


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("gone", ["count-0", "count-1", "$checkpointspout-0"])
def test_a_topology_is_not_started_where_the_state_of_one_task_is_gone(kind, gone, request, tmp_path):
    conf = {**conf_of(kind, request, tmp_path), "topology.state.checkpoint.interval.ms": 20, "test.sentences": 200}

    def run():
        with LocalCluster("inprocess", conf=conf) as cluster:
            cluster.submit(topology, name="stateful").wait(timeout=patient(60))

    run()
    place = place_of("state", "stateful", gone)
    with closing(store_of(conf)) as store:
        assert store.compare_and_write(place, {}, {}, TABLES)
    said = f"the state of '{re.escape(gone)}'(, which has the progress of the checkpoints,)? is missing in"
    with pytest.raises(LocalClusterError, match=f"can't be started.*{said}"):
        run()


def contents_of(conf, name):
    """Return the stored rows of one task."""
    with closing(store_of(conf)) as store:
        return {table: dict(store.list(place_of("state", "stateful", name), table)) for table in TABLES}


def put_back_contents(conf, name, contents):
    with closing(store_of(conf)) as store:
        assert store.compare_and_write(place_of("state", "stateful", name), {}, contents, TABLES)


@pytest.mark.parametrize("kind", COPIES)
def test_a_topology_is_not_started_where_the_state_of_one_task_is_older(kind, request, tmp_path):
    """As after the failover of one node of a Redis cluster to a replica that is behind."""
    conf = {**conf_of(kind, request, tmp_path), "topology.state.checkpoint.interval.ms": 20, "test.sentences": 200}

    def run():
        with LocalCluster("inprocess", conf=conf) as cluster:
            cluster.submit(topology, name="stateful").wait(timeout=patient(60))

    run()
    older = contents_of(conf, "count-1")
    run()
    newest = contents_of(conf, "count-1")
    put_back_contents(conf, "count-1", older)
    with pytest.raises(LocalClusterError, match=r"can't be started.*the state of 'count-1' in .* is an older copy"):
        run()
    put_back_contents(conf, "count-1", newest)
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
    with pytest.raises(StoreGoneError, match="the state of 'former-0' is missing"):
        check_whole(found, spout, ["count", "former"])
    noted_whole(spout, ["count"])
    check_whole(found, spout, ["count", "former"])  # it may come again, and begins anew
    found.close()
