"""The owner's record is deleted, and what it owns stays: that is noticed at the next write, and no epoch falls."""

from __future__ import annotations

from contextlib import closing

import pytest

from multilang.state.providers import provider_of
from multilang.store import claims, open_store
from multilang.store.claims import OWNER
from multilang.store.errors import FencedError, StateError, StoreGoneError
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
        self._state.set_data("coordinator/kind", value)

    def read(self):
        return self._state.get_data("coordinator/kind")

    def close(self):
        self._state.close()


@pytest.fixture(params=["sqlite", "redis", "zookeeper"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/shop.sqlite"
    return f"{request.param}://127.0.0.1:{request.getfixturevalue(request.param).port}/{0 if request.param == 'redis' else tmp_path.name}"


@pytest.fixture(params=[States, Transactions])
def store(request, url, tmp_path, monkeypatch):
    """Return the functions that make an owner for a run, and delete the record."""
    monkeypatch.setattr(claims, "LEASE_SECS", 0.5)
    monkeypatch.setattr(claims, "BEAT_SECS", 5.0)
    name = f"shop {tmp_path.name}"
    conf = {
        "topology.name": name,
        "multilang.parent": "local",
        "topology.transactional.id": name,
        "multilang.store": url,
    }
    made = []

    def make(run):
        made.append(request.param(conf, run))
        return made[-1]

    def lose():
        with closing(open_store(url, conf)) as kept:
            place = f"{'state' if request.param is States else 'transactions'}/{name}"
            assert [*kept.list(place, OWNER)]
            kept.compare_and_write(place, {}, {}, [OWNER])

    yield make, lose
    for each in made:
        each.close()


@pytest.mark.parametrize("times", [1, 3])
def test_a_record_that_is_lost_is_noticed_and_the_next_epoch_is_higher_than_all_before(store, times):
    make, lose = store
    for number in range(times):
        old = make("run")
        epoch = old.claim()
        old.write(f"old {number}")
    assert epoch == times
    lose()
    with pytest.raises(StoreGoneError):
        old.write("lost")
    new = make("run")
    assert new.claim() > epoch
    assert new.read() == f"old {times - 1}"
    new.write("new")
    with pytest.raises(StateError) as caught:
        old.write("late")
    assert isinstance(caught.value, FencedError | StoreGoneError)
    latest = make("run")
    assert latest.claim() > epoch + 1
    assert latest.read() == "new"


@pytest.mark.parametrize("times", [1, 3])
def test_an_owner_that_sleeps_while_its_record_is_lost_and_another_claims_writes_nothing(store, times):
    make, lose = store
    for number in range(times):
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
