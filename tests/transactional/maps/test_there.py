"""A map that is gone while its transactions go on is refused at the start, by name, and nothing is counted without it."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import closing
from functools import partial

import pytest

from multilang import BatchBolt
from multilang.local import LocalCluster, LocalClusterError
from multilang.state.errors import StoreGoneError
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from multilang.transactional.maps import OpaqueMap, RedisBacking, SqliteBacking, TransactionalMap
from multilang.transactional.maps.registry import MapRegistry, StoredNotes
from multilang.transactional.names import ID, STORE
from multilang.transactional.stores import open_state
from multilang.transactional.stores.sqlite import FILE, PATH
from tests.patience import patient
from tests.soak import combined

KINDS = [TransactionalMap, OpaqueMap]
PLACES = ["sqlite", "redis"]
BOUND = ["attribute", "initialize"]


class Update(BatchBolt, Committer):
    def __init__(self, *maps):
        self.maps = maps  # in a tuple, where nothing finds them before they are used

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup[1]] += 1

    def finish_batch(self):
        for each in self.maps:
            each.update(self.id, dict(self.counts))


def known(*maps):
    """Return the bolt with its maps as attributes, which can be looked at before anything runs."""
    bolt = Update(*maps)
    for number, each in enumerate(maps):
        setattr(bolt, f"map{number}", each)
    return bolt


class Place:
    """Makes maps in one place, counts with them, and removes them."""

    def __init__(self, kind, place, tmp_path, request):
        self.kind, self.place, self.tmp_path = kind, place, tmp_path
        self.conf = {PATH: str(tmp_path / "transactions.sqlite")}
        if place == "redis":
            import redis

            self.port = request.getfixturevalue("redis").port
            self.client = redis.Redis(port=self.port)

    def key(self, name):
        return f"{self.tmp_path} {name}"

    def map(self, name):
        if self.place == "sqlite":
            return self.kind(SqliteBacking(self.tmp_path / f"{name}.sqlite", name))
        return self.kind(RedisBacking(self.key(name), "127.0.0.1", self.port))

    def remove(self, name):
        if self.place == "sqlite":
            for path in self.tmp_path.glob(f"{name}.sqlite*"):
                path.unlink()
        else:
            self.client.delete(self.key(name))

    def count(self, rows, bolt, id="update"):
        spout = MemoryTransactionalSpout if self.kind is TransactionalMap else OpaqueMemoryTransactionalSpout
        builder = TransactionalTopologyBuilder("there", "rows", spout({0: [["moon"]] * rows}, ["word"], 7))
        builder.set_bolt(id, bolt).global_grouping("rows")
        try:
            with LocalCluster(mode="inprocess", conf=self.conf) as cluster:
                cluster.submit(builder.build()).wait(timeout=patient(60))
        finally:
            for each in bolt.maps:
                each.close()
        return [each.get("moon") for each in bolt.maps]


@pytest.mark.parametrize(("kind", "place", "bound"), combined(KINDS, PLACES, BOUND))
def test_a_map_that_is_gone_is_refused(kind, place, bound, tmp_path, request):
    bolt = known if bound == "attribute" else Update
    at = Place(kind, place, tmp_path, request)
    assert at.count(20, bolt(at.map("words"))) == [20]
    assert at.count(30, bolt(at.map("words"))) == [30]
    at.remove("words")
    with pytest.raises(
        LocalClusterError, match=r"map '.*words' in .* is gone: these transactions .*'there'.*Put it back"
    ):
        at.count(40, bolt(at.map("words")))
    assert at.map("words").get("moon") is None


@pytest.mark.parametrize(("kind", "place"), combined(KINDS, PLACES))
def test_another_map_is_refused_and_a_further_one_is_not(kind, place, tmp_path, request):
    at = Place(kind, place, tmp_path, request)
    at.count(20, known(at.map("words")))
    with pytest.raises(LocalClusterError, match=r"bolt 'update' has updated map '.*words' in .* and has map '.*other'"):
        at.count(30, known(at.map("other")))
    assert at.count(30, known(at.map("words"), at.map("more"))) == [30, 10]
    assert at.count(35, known(at.map("anew")), id="second") == [5]


def test_an_older_copy_of_a_map_is_refused(tmp_path, request):
    at = Place(TransactionalMap, "sqlite", tmp_path, request)
    at.count(20, known(at.map("words")))
    (tmp_path / "copy").mkdir()
    for path in tmp_path.glob("words.sqlite*"):
        shutil.copy(path, tmp_path / "copy")
    at.count(30, known(at.map("words")))
    at.remove("words")
    for path in (tmp_path / "copy").iterdir():
        shutil.copy(path, tmp_path)
    with pytest.raises(LocalClusterError, match=r"map 'words' in .* is an older copy: .* epoch 1 .* in epoch 2"):
        at.count(40, known(at.map("words")))


@pytest.mark.parametrize("bound", [known, Update])
@pytest.mark.parametrize(("before", "after"), [(TransactionalMap, OpaqueMap), (OpaqueMap, TransactionalMap)])
def test_a_map_that_becomes_one_of_the_other_kind_is_refused_by_its_kind(before, after, bound, tmp_path, request):
    at = Place(before, "sqlite", tmp_path, request)
    at.count(20, known(at.map("words")))
    at.kind = after
    kinds = rf"was stored by an? {before.__name__}, and this one is {after.__name__}"
    with pytest.raises(LocalClusterError, match=rf"map 'words' in .* {kinds}"):
        at.count(30, bound(at.map("words")))


def test_a_map_that_was_moved_goes_on_and_an_earlier_versions_transactions_note_it_from_then_on(tmp_path, request):
    at = Place(TransactionalMap, "sqlite", tmp_path, request)
    at.count(20, known(at.map("words")))
    connection = FILE.open(at.conf[PATH])
    with connection.writing():
        connection.execute("DELETE FROM nodes WHERE path LIKE 'there/maps/%'")
    connection.close()
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in tmp_path.glob("words.sqlite*"):
        path.rename(moved / path.name)
    counts = TransactionalMap(SqliteBacking(moved / "words.sqlite", "words"))
    assert at.count(30, known(counts)) == [30]
    shutil.rmtree(moved)
    moved.mkdir()
    with pytest.raises(LocalClusterError, match="is gone: these transactions"):
        at.count(40, known(TransactionalMap(SqliteBacking(moved / "words.sqlite", "words"))))


def test_a_map_and_a_state_do_not_share_a_key(redis):
    from multilang.state.names import namespace
    from multilang.state.providers import provider_of

    conf = {**redis.conf, "topology.name": "sharing"}
    provider = provider_of(conf)
    epoch = provider.claim()
    state = provider.new_state(namespace("count", 0))
    state.claim(epoch)
    state.put("moon", 1)
    state.commit()
    for key in ("sharing:count-0", "sharing:count-0$txid", "sharing:$owner"):
        taken = TransactionalMap(RedisBacking(key, "127.0.0.1", redis.port))
        for use in (taken.backing.check, lambda taken=taken: taken.get("moon")):
            with pytest.raises(StoreGoneError, match=r"map 'sharing:.* belongs to the stored states"):
                use()
    assert state.get("moon") == 1
    mine = TransactionalMap(RedisBacking("sharing:words-0", "127.0.0.1", redis.port))
    mine.put(TransactionAttempt(1, 1, "there/1"), {"moon": 3})
    other = provider.new_state(namespace("words", 0))
    with pytest.raises(StoreGoneError, match="its key 'sharing:words-0' is that of a map"):
        other.claim(epoch)
    assert mine.get("moon") == 3
    mine.close()
    provider.close()


class Interleaved(SqliteBacking):
    """Lets another task work between a read of this one and what follows it."""

    meanwhile = None

    def multi_get(self, keys):
        found = super().multi_get(keys)
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
        return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epochs", [(1, 1), (1, 2), (2, 2)])
def test_tasks_that_update_one_map_for_the_first_time_at_once_do_not_miss_it(kind, epochs, tmp_path):
    conf = {PATH: str(tmp_path / "transactions.sqlite"), STORE: "sqlite", ID: "there"}
    registry = MapRegistry(StoredNotes(conf), "update", [])

    def update(backing, epoch, txid, word):
        attempt = TransactionAttempt(txid, TransactionAttempt.first_of(epoch) + txid, "there/a")
        attempt.registry = registry
        found = kind(backing)
        try:
            return found.update(attempt, {word: 1})
        finally:
            found.close()

    place, claimed = tmp_path / "words.sqlite", 0
    for txid, epoch in enumerate(epochs, 1):
        while claimed < epoch:
            with closing(open_state(conf)) as state:
                claimed = state.claim()
        one = Interleaved(place, "words")
        one.meanwhile = partial(update, SqliteBacking(place, "words"), epoch, txid, "sun")
        assert update(one, epoch, txid, "moon") == {"moon": txid}
    with closing(kind(SqliteBacking(place, "words"))) as found:
        assert found.multi_get(["sun", "moon"]) == {"sun": 2, "moon": 2}
