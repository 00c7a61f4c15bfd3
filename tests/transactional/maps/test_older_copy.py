"""A topology that is started upon an older copy of its map is refused, whatever the copy's moment within an epoch."""

from __future__ import annotations

import shutil
from copy import copy
from random import Random

import pytest

from multilang import BatchBolt
from multilang.local import LocalCluster, LocalClusterError
from multilang.transactional import Committer, MemoryTransactionalSpout, TransactionalTopologyBuilder
from multilang.transactional.maps import RedisBacking, SqliteBacking, TransactionalMap
from multilang.transactional.names import STORE
from multilang.transactional.stores.sqlite import PATH
from tests.patience import patient
from tests.soak import SOAK, combined

WORDS = ["moon", "sun", "star", "sea"]
WORDS_A_BATCH = 2


class Count(BatchBolt, Committer):
    """Updates its map only where something came; ``ended`` is called with each transaction of the first task."""

    ended = None

    def __init__(self, found, is_attribute):
        self.found = found if is_attribute else None
        self.hidden = (found,)  # in a tuple, where nothing finds it before it is used

    def initialize(self, conf, context, collector, id):
        self.id, self.counts, self.is_first = id, {}, context.task_index == 0

    def process(self, tup):
        self.counts[tup[1]] = self.counts.get(tup[1], 0) + 1

    def finish_batch(self):
        if self.counts:
            self.hidden[0].update(self.id, self.counts)
        if self.is_first and Count.ended is not None:
            Count.ended(self.id.txid)


class InRedis:
    def __init__(self, tmp_path, request):
        from redis import Redis

        self.port = request.getfixturevalue("redis").port
        self.client, self.name, self.copied = Redis(port=self.port), str(tmp_path), None
        self.host = "127.0.0.1"

    def backing(self):
        return RedisBacking(self.name, self.host, self.port)

    def copy(self):
        self.copied = self.client.dump(self.name)

    def put_back(self):
        if self.copied is None:  # it was made before the map
            self.client.delete(self.name)
        else:
            self.client.restore(self.name, 0, self.copied, replace=True)

    def rename(self, by_link):
        self.host = "localhost"


class InFolder:
    """With all files that belong to it, so that nothing beside it tells of what came later."""

    def __init__(self, tmp_path, request):
        self.folder, self.copied = tmp_path / "map", tmp_path / "copied"
        self.folder.mkdir()

    def backing(self):
        return SqliteBacking(self.folder / "map.sqlite", "words")

    def copy(self):
        shutil.copytree(self.folder, self.copied, dirs_exist_ok=True)

    def put_back(self):
        shutil.rmtree(self.folder)
        self.copied.rename(self.folder)

    def rename(self, by_link):
        other = self.folder.with_name("other")
        if by_link:
            other.symlink_to(self.folder)
        else:
            self.folder.rename(other)
        self.folder = other


def run(place, rows, conf, is_attribute, tasks):
    Count.ended = None if place.copied_at is None else lambda txid: txid == place.copied_at and place.copy()
    builder = TransactionalTopologyBuilder(
        "older", "rows", MemoryTransactionalSpout({0: rows}, ["word"], WORDS_A_BATCH)
    )
    found = TransactionalMap(place.backing())
    builder.set_bolt("count", Count(found, is_attribute), parallelism=tasks).fields_grouping("rows", "word")
    try:
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(builder.build()).wait(timeout=patient(60))
        return {word: count for word, count in found.multi_get(WORDS).items() if count}
    finally:
        Count.ended = None
        found.close()


def counted(rows):
    words = [word for (word,) in rows]
    return {word: words.count(word) for word in WORDS if word in words}


@pytest.mark.parametrize(
    ("store", "where", "is_attribute"),
    combined(["sqlite", "zookeeper", "sqlite"], [InRedis, InFolder], [True, True, False]),
)
@pytest.mark.parametrize("seed", range(50 if SOAK else 2))
def test_an_older_copy_is_refused_and_the_newest_goes_on(store, where, is_attribute, seed, tmp_path, request):
    random = Random(f"{store} {where.__name__} {is_attribute} {seed}")
    conf = {
        STORE: store,
        PATH: str(tmp_path / "transactions.sqlite"),
        "topology.max.spout.pending": random.randint(1, 3),
    }
    if store == "zookeeper":
        conf |= {**request.getfixturevalue("zookeeper").conf, "transactional.zookeeper.root": f"/{tmp_path.name}"}
    tasks, lives = random.choice([1, 3]), random.randint(1, 3)
    place = where(tmp_path, request)
    rows = []
    for life in range(lives):
        before = len(rows) // WORDS_A_BATCH
        rows += [[random.choice(WORDS)] for _ in range(WORDS_A_BATCH * random.randint(2, 12))]
        place.copied_at = random.randint(before + 1, len(rows) // WORDS_A_BATCH - 1) if life == lives - 1 else None
        assert run(place, rows, conf, is_attribute, tasks) == counted(rows)
    copied_at, place.copied_at = place.copied_at, None
    newest = counted(rows)
    since = rows[copied_at * WORDS_A_BATCH :]
    kept = TransactionalMap(place.backing())
    place.put_back()
    is_older = {word: count for word, count in kept.multi_get(WORDS).items() if count} != newest
    kept.close()
    assert is_older, since
    more = [*rows, *([word] for word in WORDS), *([word] for word in WORDS)]
    with pytest.raises(LocalClusterError, match=r"is an older copy: |is gone: "):
        run(place, more, conf, is_attribute, tasks)


ROWS = [[word] for word in WORDS * 2]


@pytest.fixture(params=[InRedis, InFolder])
def counted_once(request, tmp_path):
    """The place of a map in which ROWS are counted, with a copy from between, and the conf of its topology."""
    conf = {STORE: "sqlite", PATH: str(tmp_path / "transactions.sqlite")}
    place = request.param(tmp_path, request)
    place.copied_at = 2
    assert run(place, ROWS, conf, True, 1) == counted(ROWS)
    place.copied_at = None
    return place, conf


def test_an_older_copy_is_refused_also_under_another_name_of_its_place(counted_once):
    place, conf = counted_once
    before = copy(place)
    place.rename(by_link=True)
    more = ROWS * 2
    assert run(place, more, conf, True, 1) == counted(more)  # the newest goes on
    before.put_back()
    with pytest.raises(LocalClusterError, match=r"is an older copy: "):
        run(before, ROWS * 3, conf, True, 1)


def test_an_older_copy_at_another_place_is_refused(counted_once):
    place, conf = counted_once
    place.put_back()
    place.rename(by_link=False)
    with pytest.raises(
        LocalClusterError, match=r", which was .*, is an older copy: .* by transaction 2 .* up to transaction 4"
    ):
        run(place, ROWS * 2, conf, True, 1)


class Both(Count):
    """Updates a map that nothing finds before it is used, and then another one, which is an attribute."""

    def __init__(self, hidden, found):
        super().__init__(hidden, False)
        self.known = found

    def finish_batch(self):
        super().finish_batch()
        if self.counts:
            self.known.update(self.id, self.counts)


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_map_that_is_an_attribute_begins_beside_one_that_is_hidden(tasks, tmp_path):
    conf = {STORE: "sqlite", PATH: str(tmp_path / "transactions.sqlite")}
    rows = [[word] for word in WORDS * 3]

    def counts(name, rows):
        maps = [TransactionalMap(SqliteBacking(tmp_path / f"{each}.sqlite", "words")) for each in ("hidden", name)]
        spout = MemoryTransactionalSpout({0: rows}, ["word"], WORDS_A_BATCH)
        builder = TransactionalTopologyBuilder("older", "rows", spout)
        builder.set_bolt("count", Both(*maps), parallelism=tasks).fields_grouping("rows", "word")
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(builder.build()).wait(timeout=patient(60))
        found = [each.multi_get(WORDS) for each in maps]
        for each in maps:
            each.close()
        return found

    assert counts("known", rows) == [counted(rows)] * 2
    assert counts("known", [*rows, *rows]) == [counted([*rows, *rows])] * 2
    with pytest.raises(LocalClusterError, match=r"has updated .*known.*, and has .*other.* now, where nothing is"):
        counts("other", [*rows, *rows, *rows])
