"""Redis Streams: a Redis that is killed and comes back, and streams that are not what they were."""

from __future__ import annotations

import threading
from random import Random

import pytest

from multilang.component.errors import ChangedRowsError, ConfigError, ReportedFailedException
from multilang.state import StateError
from multilang.transactional.spouts.redis import TransactionalRedisSpout
from tests.servers import free_port
from tests.soak import SOAK
from tests.transactional.spouts.sources import FilledRedis
from tests.transactional.spouts.test_sources import Reader, Rows


@pytest.fixture
def source(redis):
    found = FilledRedis(redis.port)
    yield found
    found.close()


def test_a_redis_that_is_killed_and_started_again_is_waited_for(tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    server.start()
    try:
        source = FilledRedis(server.port)
        source.add(0, ["moon", "sun", "star"])
        reader = Reader(source.spout(take=2))
        assert reader.new(0) == ["moon", "sun"]
        server.kill()
        restarter = threading.Timer(0.5, server.start)
        restarter.start()
        try:
            assert reader.new(0) == ["star"]
            assert reader.again(0, reader.last[0]) == ["star"]
        finally:
            restarter.join()
        reader.emitter.close()
        source.close()
    finally:
        server.kill()


def test_a_redis_that_is_not_there_is_named_after_a_while(monkeypatch):
    monkeypatch.setattr("multilang.store.redis_client.PATIENCE_SECS", 0.5)
    port = free_port()
    with pytest.raises(StateError, match=rf"Redis localhost:{port}, database 0 can't be used"):
        TransactionalRedisSpout(["words"], ["word"], port=port).get_emitter({}, None)


def test_a_stream_that_is_not_there_is_named_before_anything_runs(redis):
    with pytest.raises(ConfigError, match=r"there is no stream 'nix' in Redis localhost.*XADD"):
        TransactionalRedisSpout(["nix"], ["word"], port=redis.port).get_emitter({}, None)
    with pytest.raises(ConfigError, match="streams is 'words'; use a list"):
        TransactionalRedisSpout("words", ["word"])


def test_fields_that_an_entry_lacks_are_none(source):
    source.add(0, ["moon"])
    spout = TransactionalRedisSpout(source.names, ["nix", "other"], port=source.port)
    found = spout.open({})
    assert found.read(0, found.first(0), 5)[0] == [[None, "x"]]
    found.close()


def test_entries_that_were_deleted_before_they_were_replayed_are_reported(source):
    source.add(0, ["moon", "sun"])
    reader = Reader(source.spout(take=5))
    reader.new(0)
    source.client.xtrim(source.names[0], maxlen=1, approximate=False)
    with pytest.raises(ReportedFailedException, match=r"had 2 rows .* has 1 now"):
        reader.again(0, reader.last[0])
    reader.emitter.close()


def test_a_stream_that_was_deleted_and_made_anew_is_reported(source):
    source.add(0, ["moon", "sun"])
    reader = Reader(source.spout(take=5))
    reader.new(0)
    name = source.names[0]
    source.client.delete(name)
    with pytest.raises(
        ReportedFailedException, match=f"stream '{name}' in Redis .* can't be read any more: no such key"
    ):
        reader.new(0)
    source.client.xadd(name, {"word": "other"}, id="1-1")
    reader.emitter.close()
    again = Reader(source.spout(take=5))
    again.last = reader.last
    with pytest.raises(ChangedRowsError, match=r"partition 0 .* has other rows.*are 1 now, where 2 were read"):
        again.new(0)
    source.client.xdel(name, "1-1")
    with pytest.raises(ReportedFailedException, match="was deleted and made anew"):
        again.new(0)
    again.emitter.close()


def test_what_is_no_text_is_reported_with_its_place(source):
    source.client.xadd(source.names[0], {"word": b"\xff"}, id="5-5")
    reader = Reader(source.spout(take=5))
    with pytest.raises(ReportedFailedException, match=r"entry 5-5 of stream 'words-0' .* is not UTF-8"):
        reader.new(0)
    reader.emitter.close()


@pytest.mark.parametrize("remove", ["trim", "delete"])
@pytest.mark.parametrize("seed", range(300 if SOAK else 5))
def test_entries_that_are_removed_before_they_are_read_are_reported_and_no_others(source, remove, seed):
    random, name, client = Random(f"{seed} {remove}"), source.names[0], source.client
    reader = source.spout(4).open({})
    position, read, told, noted = reader.first(0), 0, 0, []
    for _ in range(60):
        ids = [id.decode() for id, _ in client.xrange(name)]
        done = position.split()[0]
        unread = [id for id in ids if tuple(map(int, id.split("-"))) > tuple(map(int, done.split("-")))]
        step = random.choice(["add", "add", "read", "remove read ones", "remove unread ones"])
        if step == "add":
            source.add(0, ["moon"] * random.randint(1, 5))
        elif step == "read":
            rows, position = reader.read(0, position, 4)
            noted += reader.notices()
            read += len(rows)
            assert len(noted) == told
        elif step == "remove read ones" and read and len(ids) > len(unread):
            if remove == "trim":
                client.xtrim(name, maxlen=len(unread) + random.randrange(len(ids) - len(unread)), approximate=False)
            else:
                client.xdel(name, random.choice(ids[: len(ids) - len(unread)]))
        elif step == "remove unread ones" and read and unread:
            if remove == "trim":
                client.xtrim(name, maxlen=random.randrange(len(unread)), approximate=False)
            else:
                client.xdel(name, random.choice(unread))
            told += 1
            rows, position = reader.read(0, position, len(ids))  # to the end: behind a deletion Redis counts anew
            noted += reader.notices()
            assert len(noted) == told
            assert "before they were read: they are lost" in noted[-1]
    reader.close()


@pytest.mark.parametrize("kind", ["spout", "opaque"])
def test_a_spout_reports_what_it_lost_and_goes_on(source, kind):
    source.add(0, [f"w{number}" for number in range(10)])
    reader = Reader(getattr(source, kind)(4))
    first = reader.new(0)
    source.client.xtrim(source.names[0], maxlen=3, approximate=False)
    collector = Rows()
    second = reader.new(0, collector)
    assert [*first, *second] == ["w0", "w1", "w2", "w3", "w7", "w8", "w9"]
    (error,) = collector.errors
    assert "3 entries behind" in error
    assert "were trimmed or deleted before they were read" in error
    reader.emitter.close()


@pytest.mark.parametrize("seed", range(300 if SOAK else 10))
def test_each_removal_of_unread_entries_is_reported_whatever_was_removed_before(source, seed):
    random, name, client = Random(f"{seed} both"), source.names[0], source.client
    reader = source.spout(4).open({})
    position, due, exact = reader.first(0), False, True
    for _ in range(80):
        ids = [id.decode() for id, _ in client.xrange(name)]
        done = tuple(map(int, position.split()[0].split("-")))
        unread = [id for id in ids if tuple(map(int, id.split("-"))) > done]
        step = random.choice(["add", "add", "look", "read", "trim read", "trim unread", "delete"])
        if step == "add":
            source.add(0, ["moon"] * random.randint(1, 5))
        elif done == (0, 0) or step in ("read", "look"):
            if step == "look":
                reader.has_more(0, position)
            else:
                _, position = reader.read(0, position, random.randint(1, 4))
            noted = reader.notices()
            if step == "look" and unread and due:
                continue  # it is told when they are read
            assert bool(noted) or not due
            assert due or not exact or not noted
            due, exact = False, exact or (step == "read" and not unread)
        elif step == "trim read":
            client.xtrim(name, maxlen=len(unread) + random.randint(0, len(ids) - len(unread)), approximate=False)
        elif step == "trim unread" and unread:
            client.xtrim(name, maxlen=random.randrange(len(unread)), approximate=False)
            due = True
        elif step == "delete" and unread:
            before = client.xinfo_stream(name)["max-deleted-entry-id"]
            client.xdel(name, random.choice(unread))
            due = due or client.xinfo_stream(name)["max-deleted-entry-id"] != before  # else it was said "up to" it
            exact = False  # a deletion in the middle may be told once more with a later one
    reader.close()
