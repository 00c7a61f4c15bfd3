"""The owner's record is deleted, and what it owns stays: in every store that is noticed at the next write, and no epoch falls."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import redis as redis_package

from multilang.state import owner as owners
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.providers import provider_of
from multilang.transactional.names import EPOCH
from multilang.transactional.stores import open_state


class States:
    """The checkpoint spout's state, which is claimed and written to as it does it."""

    def __init__(self, conf, run):
        self._provider = provider_of({**conf, "storm.id": run})
        self._state = self._provider.new_state("$checkpointspout-0")

    def claim(self):
        epoch = self._provider.claim()
        self._state.claim(epoch)
        return epoch

    def write(self, value):
        self._provider.check_owner()
        self._state.put("value", value)
        self._state.commit()

    def read(self):
        return self._state.get("value")

    def close(self):
        self._state.close()
        self._provider.close()


class Transactions:
    def __init__(self, conf, run):
        self._state = open_state({**conf, "storm.id": run})

    def claim(self):
        epoch = self._state.claim()
        self._state.owner_name()
        return epoch

    def write(self, value):
        self._state.set_data("coordinator/meta", value)

    def read(self):
        return self._state.get_data("coordinator/meta")

    def close(self):
        self._state.close()


def in_sqlite(path):
    def lose():
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            assert connection.execute("DELETE FROM owners").rowcount == 1

    return lose


def in_redis(port, key, *fields):
    def lose():
        with redis_package.Redis(port=port) as client:
            assert client.hdel(key, *fields) if fields else client.delete(key)

    return lose


def in_zookeeper(conf):
    def lose():
        state = open_state(conf)
        state._client.call("delete", state._client.at(EPOCH))
        state.close()

    return lose


@pytest.fixture(
    params=[
        "states sqlite",
        "states redis",
        "transactions sqlite",
        "transactions zookeeper",
    ]
)
def store(request, tmp_path, monkeypatch):
    """Return the functions that make an owner for a run, and delete the record."""
    monkeypatch.setattr(owners, "LEASE_SECS", 0.5)
    monkeypatch.setattr(owners, "BEAT_SECS", 5.0)
    kind, place = request.param.split()
    conf = {"topology.name": "shop", "multilang.parent": "local", "topology.transactional.id": f"lost {tmp_path.name}"}
    path = str(tmp_path / "kept.sqlite")
    if place == "sqlite":
        lose = in_sqlite(path)
        conf |= {
            "topology.state.provider.config": {"path": path},
            "multilang.transactional.sqlite.path": path,
        }
    elif place == "redis":
        port = request.getfixturevalue("redis").port
        conf |= {
            **request.getfixturevalue("redis").conf,
            "topology.name": "shop",
        }
        lose = in_redis(port, "shop:$owner")
    else:
        conf |= {**request.getfixturevalue("zookeeper").conf, "topology.name": "shop"}
        lose = in_zookeeper(conf)
    made = []

    def make(run):
        made.append({"states": States, "transactions": Transactions}[kind](conf, run))
        return made[-1]

    yield make, lose
    for each in made:
        each.close()


@pytest.mark.parametrize("claims", [1, 3])
def test_a_record_that_is_lost_is_noticed_and_the_next_epoch_is_higher_than_all_before(store, claims):
    make, lose = store
    for number in range(claims):
        old = make("run")
        epoch = old.claim()
        old.write(f"old {number}")
    assert epoch == claims
    lose()
    with pytest.raises(StoreGoneError):
        old.write("lost")
    new = make("run")
    assert new.claim() > epoch
    assert new.read() == f"old {claims - 1}"
    new.write("new")
    with pytest.raises(StateError) as caught:
        old.write("late")
    assert isinstance(caught.value, FencedError | StoreGoneError)
    latest = make("run")
    assert latest.claim() > epoch + 1
    assert latest.read() == "new"


@pytest.mark.parametrize("claims", [1, 3])
def test_an_owner_that_sleeps_while_its_record_is_lost_and_another_claims_writes_nothing(store, claims):
    make, lose = store
    for number in range(claims):
        old = make("run")
        epoch = old.claim()
        old.write(f"old {number}")
    lose()
    new = make("run")
    assert new.claim() > epoch
    with pytest.raises(StateError) as caught:
        old.write("late")
    assert isinstance(caught.value, FencedError | StoreGoneError)
    new.write("new")
    latest = make("run")
    latest.claim()
    assert latest.read() == "new"
