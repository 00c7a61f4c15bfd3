"""A state and the positions of its sources, in another store, that do not belong together are refused."""

from __future__ import annotations

import os
import re
import shutil

import pytest
import redis as redis_package
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import LocalCluster, StatefulBasicBolt, TopologyBuilder
from multilang.local import LocalClusterError
from multilang.protocol.codec import loads
from multilang.queues import KafkaSpout, RedisStreamSpout
from multilang.state import FencedError, PositionSpout, StateError, StoreGoneError
from multilang.state.admin import COORDINATOR, StoredStates
from multilang.state.checked import position_of
from multilang.state.names import COMMITTED, PREPARING, STATE_KEY
from multilang.state.positions import Note
from multilang.state.witness import Witness
from spark_bridge import ListSource, PartitionSpout
from tests.patience import patient
from tests.state.conftest import conf_of

ROWS = 300


class Numbers(PositionSpout):
    """Numbers up to ``test.rows``."""

    output_fields = ["n"]
    save_secs = 0.0

    def initialize(self, conf, context):
        self.at, self.rows = 0, conf["test.rows"]

    def position(self):
        return {"at": self.at}

    def seek(self, position):
        self.at = position["at"]

    def next_tuple(self):
        if self.at < self.rows:
            self.at += 1
            self.emit([self.at])

    def exhausted(self):
        return self.at >= self.rows


class Orders(RedisStreamSpout):
    """All entries of a stream, until they are acked to the group."""

    def exhausted(self):
        (group,) = self._client.xinfo_groups(self.stream)
        return not group["lag"] and not group["pending"]


class Sum(StatefulBasicBolt):
    output_fields = ["count"]

    def init_state(self, state):
        self.kept = state

    def process(self, tup):
        self.kept.put("count", self.kept.get("count", 0) + 1)


class Place:
    """A state in one store, and positions in another."""

    def __init__(self, state, position, request, folder):
        (folder / "state").mkdir()
        self.folder, self.position = folder, position
        self.conf = {**conf_of(state, request, folder / "state"), "topology.state.checkpoint.interval.ms": 10}
        self.redis = state == "redis"
        self.queue = None
        if position == "stream":
            self.queue = redis_package.Redis(port=request.getfixturevalue("redis").port, db=1)
        if position.startswith("redis"):
            number = 0 if position == "redis too" else 1
            self.conf["multilang.positions"] = f"redis://localhost:{request.getfixturevalue('redis').port}/{number}"
        else:
            self.conf["multilang.positions"] = str(folder / "positions.sqlite")

    def topology(self, rows):
        builder = TopologyBuilder()
        if self.position == "watermarks":
            source = ListSource([[[n] for n in range(rows)]], ["n"])
            store = str(self.folder / "marks.sqlite")
            builder.set_spout("numbers", PartitionSpout(source, store=store, group="g"))
        elif self.queue is not None:
            port = self.queue.connection_pool.connection_kwargs["port"]
            builder.set_spout("numbers", Orders("orders", ["n"], "shop", port=port, database=1))
        else:
            builder.set_spout("numbers", Numbers)
        builder.set_bolt("sum", Sum).shuffle_grouping("numbers")
        return builder.build("stateful", conf={"test.rows": rows})

    def run(self, rows):
        if self.queue is not None:
            for number in range(self.queue.xlen("orders"), rows):
                self.queue.xadd("orders", {"n": number})
        with LocalCluster("inprocess", conf=self.conf) as cluster:
            cluster.submit(self.topology(rows)).wait(timeout=patient(60))
        return self.count()

    def count(self):
        stored = StoredStates(self.topology(0), self.conf)
        try:
            return stored.get("sum", "count")
        finally:
            stored.close()

    def accept(self):
        stored = StoredStates(self.topology(0), self.conf)
        try:
            return stored.accept()
        finally:
            stored.close()

    def take(self):
        if not self.redis:
            shutil.copytree(self.folder / "state", self.folder / f"copy{len(os.listdir(self.folder))}")
            return max(self.folder.glob("copy*"), key=os.path.getmtime)
        with self._client() as client:
            return {key: client.dump(key) for key in client.scan_iter()}

    def put_back(self, copy):
        self.remove()
        if not self.redis:
            shutil.copytree(copy, self.folder / "state")
            return
        with self._client() as client:
            for key, value in copy.items():
                client.restore(key, 0, value)

    def remove(self):
        if not self.redis:
            shutil.rmtree(self.folder / "state")
            return
        with self._client() as client:
            client.flushdb()

    def _client(self):
        return redis_package.Redis(
            port=loads(self.conf["topology.state.provider.config"])["jedisPoolConfig"]["port"], db=0
        )


@pytest.fixture(params=["sqlite", "redis"])
def state(request):
    return request.param


PLACES = [
    *((state, where) for state in ("sqlite", "redis") for where in ("sqlite", "redis", "watermarks")),
    ("sqlite", "stream"),
]


@pytest.fixture(params=PLACES, ids="-".join)
def place(request, tmp_path):
    made = Place(*request.param, request, tmp_path)
    yield made
    if made.queue is not None:
        made.queue.flushdb()
        made.queue.close()


def test_an_older_copy_is_refused_by_name_until_it_is_accepted(place):
    assert place.run(ROWS) == ROWS
    older = place.take()
    assert place.run(2 * ROWS) == 2 * ROWS
    newest = place.take()
    place.put_back(older)
    for _ in range(2):
        with pytest.raises(
            LocalClusterError,
            match=r"the state in .* is older than the positions in .*: it has transaction \d+ .* state accept TOPOLOGY",
        ):
            place.run(3 * ROWS)
        assert place.count() == ROWS
    place.put_back(newest)
    assert place.run(3 * ROWS) == 3 * ROWS
    place.put_back(older)
    assert "lacks the tuples up to transaction" in "".join(place.accept())
    assert place.run(4 * ROWS) == 2 * ROWS  # what came between is missing, as the user has accepted
    assert place.accept() == []
    # A copy of the branch that was left behind is another state, however far it went.
    longer = place.take()
    place.put_back(newest)
    with pytest.raises(LocalClusterError, match="is not the one to which the positions in"):
        place.run(5 * ROWS)
    place.put_back(longer)
    assert place.run(5 * ROWS) == 3 * ROWS


def test_a_state_that_was_removed_is_refused_until_it_is_accepted(place):
    place.run(ROWS)
    newest = place.take()
    place.remove()
    if not place.redis:
        (place.folder / "state").mkdir()
    for _ in range(2):
        with pytest.raises(LocalClusterError, match=r"is not the one to which .* it has nothing of this topology"):
            place.run(2 * ROWS)
    place.put_back(newest)  # it was not meant to be removed, after all
    assert place.run(2 * ROWS) == 2 * ROWS
    place.remove()
    if not place.redis:
        (place.folder / "state").mkdir()
    assert len(place.accept()) == 1
    assert place.run(3 * ROWS) == ROWS
    assert place.run(4 * ROWS) == 2 * ROWS


def test_a_state_that_moved_goes_on(place, tmp_path):
    place.run(ROWS)
    stored = StoredStates(place.topology(0), place.conf)
    lines = list(stored.export())
    stored.close()
    place.remove()
    if not place.redis:
        (place.folder / "state").mkdir()
    stored = StoredStates(place.topology(0), place.conf)
    stored.load(iter(lines), False)
    stored.close()
    assert place.run(2 * ROWS) == 2 * ROWS


def test_state_and_positions_of_one_moment_go_on(request, tmp_path):
    place = Place("redis", "redis too", request, tmp_path)
    place.run(ROWS)
    older = place.take()
    place.run(2 * ROWS)
    place.put_back(older)
    assert place.run(3 * ROWS) == 3 * ROWS


def dies_in_its_first_checkpoint(place):
    """Return the rows that the checkpoint spout stores in a run that is killed in its first checkpoint."""
    stored = StoredStates(place.topology(0), place.conf)
    coordinator = stored.provider.new_state(COORDINATOR)
    witness = Witness(stored.topology["$checkpointspout"].component.elsewhere, stored.conf)
    try:
        coordinator.claim(stored.claim())
        witness.check(stored.provider, coordinator, pytest.fail)
        txid = (position_of(stored.provider, coordinator) or (-1, COMMITTED))[0]
        coordinator.commit()
        coordinator.put(STATE_KEY, [txid + 1, PREPARING])
        coordinator.commit()
        coordinator.put(STATE_KEY, [txid, COMMITTED])  # the recovery of the next one
        coordinator.commit()
    finally:
        witness.close()
        coordinator.close()
        stored.close()


def test_a_topology_that_began_many_times_without_a_checkpoint_goes_on(place):
    assert place.run(ROWS) == ROWS
    for _ in range(4):
        dies_in_its_first_checkpoint(place)
    assert place.run(2 * ROWS) == 2 * ROWS


def test_state_and_positions_that_were_removed_begin_at_the_beginning_without_a_warning(
    state, request, tmp_path, caplog
):
    place = Place(state, "sqlite", request, tmp_path)
    place.run(ROWS)
    place.remove()
    if not place.redis:
        (place.folder / "state").mkdir()
    stored = StoredStates(place.topology(0), place.conf)
    assert stored.remove("numbers") == 1
    stored.close()
    assert place.run(ROWS) == ROWS
    assert "in the middle of its source" not in caplog.text


def test_positions_that_are_elsewhere_are_reported(state, request, tmp_path, caplog):
    place = Place(state, "sqlite", request, tmp_path)
    assert place.run(ROWS) == ROWS
    assert place.run(2 * ROWS) == 2 * ROWS
    assert "begins at the beginning" not in caplog.text
    place.conf["multilang.positions"] = str(tmp_path / "elsewhere.sqlite")
    assert place.run(ROWS) == 3 * ROWS
    assert re.search(
        r"elsewhere\.sqlite has no positions that belong to the state in .*, which has transaction \d+", caplog.text
    )


def test_positions_that_went_on_beside_a_state_in_memory_are_not_those_of_the_stored_one(state, request, tmp_path):
    place = Place(state, "sqlite", request, tmp_path)
    assert place.run(ROWS) == ROWS
    in_memory = {**place.conf, "topology.state.provider": "memory", "topology.state.provider.config": "{}"}
    for rows in (2 * ROWS, 3 * ROWS):  # its own positions do not stop it
        with LocalCluster("inprocess", conf=in_memory) as cluster:
            cluster.submit(place.topology(rows)).wait(timeout=patient(60))
    with pytest.raises(LocalClusterError, match="is not the one to which the positions in"):
        place.run(4 * ROWS)
    assert place.count() == ROWS
    assert len(place.accept()) == 1
    assert place.run(4 * ROWS) == 2 * ROWS


@pytest.mark.parametrize("named", ["by a link", "from here", "with another slash", "by its number", "in capitals"])
def test_one_store_of_positions_that_spouts_name_in_two_ways_is_one(named, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    first = str(tmp_path / "folder" / "positions.sqlite")
    if named in ("by its number", "in capitals"):
        first = f"redis://localhost:{request.getfixturevalue('redis').port}/1"
    second = {
        "by a link": str(tmp_path / "link" / "positions.sqlite"),
        "from here": "folder/positions.sqlite",
        "with another slash": f"{tmp_path}/folder//positions.sqlite",
        "by its number": first.replace("localhost", "127.0.0.1"),
        "in capitals": first.replace("localhost", "LOCALHOST") + "/",
    }[named]
    assert first != second
    place = Place("sqlite", "file", request, tmp_path)
    del place.conf["multilang.positions"]
    builder = TopologyBuilder()
    builder.set_spout("one", Numbers, conf={"multilang.positions": first})
    builder.set_spout("two", Numbers, conf={"multilang.positions": second})
    builder.set_bolt("sum", Sum).shuffle_grouping("one").shuffle_grouping("two")
    for rows in (ROWS, 2 * ROWS):
        with LocalCluster("inprocess", conf=place.conf) as cluster:
            cluster.submit(builder.build("stateful", conf={"test.rows": rows})).wait(timeout=patient(60))
        assert place.count() == 2 * rows


def test_what_a_kafka_group_has_read_is_noted_among_the_positions(request, tmp_path):
    place = Place("sqlite", "file", request, tmp_path)
    builder = TopologyBuilder()
    builder.set_spout("orders", KafkaSpout("127.0.0.1:1", "orders", "shop"))
    builder.set_bolt("sum", Sum).shuffle_grouping("orders")
    topology = builder.build("stateful", conf=place.conf)
    stored = StoredStates(topology, place.conf)
    coordinator = stored.provider.new_state(COORDINATOR)
    coordinator.claim(stored.claim())
    elsewhere = topology["$checkpointspout"].component.elsewhere
    try:
        for txid in (7, 3):
            coordinator.put(STATE_KEY, [txid, COMMITTED])
            witness = Witness(elsewhere, {**stored.conf, **place.conf})
            try:
                if txid == 3:  # as of an older copy
                    with pytest.raises(StoreGoneError, match=r"has transaction 3 .*, and they belong to 7"):
                        witness.check(stored.provider, coordinator, pytest.fail)
                else:
                    witness.check(stored.provider, coordinator, pytest.fail)
                    witness.note(txid, pytest.fail)
            finally:
                witness.close()
    finally:
        coordinator.close()
        stored.close()
    on_storm = Witness(elsewhere, {"topology.name": "stateful", "multilang.parent": "storm"})
    on_storm.note(7, pytest.fail)  # where there is no place for positions, there is none for the note
    on_storm.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), max_size=12))
def test_a_note_is_replaced_by_no_earlier_one_nor_by_who_did_not_read_it(tmp_path_factory, writes):
    """Two runs with one state and one with another know nothing of each other; a write may be done although its answer is lost."""
    conf = {"topology.name": "t", "multilang.parent": "local"}
    conf["multilang.positions"] = str(tmp_path_factory.mktemp("note") / "positions.sqlite")
    notes = [Note(conf) for _ in range(3)]
    known = [note.read() for note in notes]
    reader = Note(conf)
    for who, txid, is_lost in writes:
        before, mine = reader.read(), ("aab"[who], txid)
        may = before in (known[who], mine) or (before is not None and before[0] == mine[0] and before[1] <= txid)

        def lose(step, is_lost=is_lost):
            if is_lost and step == "synced":
                raise StateError("the answer is lost")

        notes[who]._store.trace = lose
        try:
            notes[who].write(*mine)
            known[who] = mine
        except FencedError:
            assert not may
        except StateError:
            pass
        assert reader.read() == (mine if may else before)
    for note in (*notes, reader):
        note.close()
