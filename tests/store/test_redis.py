"""Redis's own: its keys, scripts that come twice or late, commands that are refused, and clusters."""

from __future__ import annotations

import os
import pickle
import random
import signal
import socket
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.store import FencedError, StateError, StoreGoneError, open_store, redis_client
from multilang.store.memory import MemoryStore
from multilang.store.redis import RedisStore
from tests.handover.proxy import Proxy
from tests.servers import RedisServer, free_port, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLACE = "shop/count-0"


def url_of(port: int) -> str:
    return f"redis://127.0.0.1:{port}/0"


def store_at(port: int, timeout: int = 2000) -> RedisStore:
    place = {"host": "127.0.0.1", "port": port, "database": 0, "timeout": timeout}
    return RedisStore(url_of(port), settings=place)


@pytest.fixture
def store(redis: RedisServer) -> Iterator[RedisStore]:
    with closing(open_store(url_of(redis.port))) as found:
        assert isinstance(found, RedisStore)
        yield found


@pytest.fixture
def client(redis: RedisServer) -> Iterator[Any]:
    import redis as module

    with module.Redis(port=redis.port) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may kill or set up."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


def rows_of(store: Any, place: str = PLACE) -> dict[str, dict[bytes, bytes]]:
    return {table: dict(store.list(place, table)) for table in ("a", "b", "c")}


class Lossy(Proxy):
    """A network that loses the next script or its answer, and remembers each script as it was sent."""

    def __init__(self, server: int) -> None:
        self.lose = ""
        self.sent: list[bytes] = []
        self._silent: set[socket.socket] = set()
        super().__init__(server)

    def pass_on(self, source: socket.socket, target: socket.socket, _: object) -> None:
        try:
            while data := source.recv(1 << 20):
                if source in self._silent:
                    break
                if b"EVAL" in data:
                    self.sent.append(data)
                    lost, self.lose = self.lose, ""
                    if lost == "script":
                        break
                    if lost == "answer":
                        self._silent.add(target)
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def lossy(redis: RedisServer) -> Iterator[Lossy]:
    with Lossy(redis.port) as found:
        yield found


def again(redis: RedisServer, script: bytes) -> bytes:
    """Let a copy of a script arrive now, and return its answer."""
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        connection.sendall(script)
        return connection.recv(1000)


def test_a_place_is_one_hash_for_each_table_in_one_slot(store: RedisStore, client: Any) -> None:
    assert store.compare_and_write("a{b}%7D", {}, {"rows": {b"k": b"v"}, "more": {b"\xff\0": b""}})
    keys = set(client.keys())
    (calls,) = (key for key in keys if b"/$call:" in key)
    assert keys - {calls} == {b"{a%7Bb%7D%257D}/rows", b"{a%7Bb%7D%257D}/more"}
    assert 0 < client.ttl(calls) <= 3600
    assert client.hgetall(b"{a%7Bb%7D%257D}/more") == {b"\xff\0": b""}
    assert store.places("a{b}%7") == ["a{b}%7D"]


@given(
    names=st.lists(st.text("ab{}%*?[]\\^/:$\U0001f680", max_size=4), max_size=4), start=st.text("ab{%*?[\\", max_size=2)
)
def test_places_are_found_by_the_beginning_of_their_names(
    redis_server: RedisServer, names: list[str], start: str
) -> None:
    with closing(open_store(url_of(redis_server.port))) as store:
        with store._errors() as client:
            client.flushdb()
        for place in names:
            assert store.compare_and_write(place, {}, {"rows": {b"": b""}})
        assert sorted(store.places(start)) == sorted({each for each in names if each.startswith(start)})
        assert set(store.places("")) == set(names)


KEYS = st.sampled_from([b"", b"k", b"\xff\0", b"m"])
VALUES = st.none() | st.sampled_from([b"", b"1", b"two"])
TABLES = st.dictionaries(st.sampled_from("abc"), st.dictionaries(KEYS, VALUES, max_size=3), max_size=3)
CALLS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abc"), st.dictionaries(KEYS, VALUES, max_size=1), max_size=1),
        TABLES,
        st.lists(st.sampled_from("abc"), max_size=2),
        st.none() | st.permutations("abc").map(lambda each: tuple(each[:2])),
    ),
    max_size=8,
)


@given(calls=CALLS)
def test_it_does_what_memory_does(redis_server: RedisServer, calls: list[tuple[Any, ...]]) -> None:
    memory = MemoryStore()
    with closing(open_store(url_of(redis_server.port))) as store:
        store.compare_and_write(PLACE, {}, {}, ["a", "b", "c"])
        for call in calls:
            assert store.compare_and_write(PLACE, *call) == memory.compare_and_write(PLACE, *call)
            assert rows_of(store) == rows_of(memory)
        assert bool(store.places(PLACE)) == bool(memory.places(PLACE))


@pytest.mark.parametrize("count", [999, 1000, 1001, 25_000])
def test_thousands_of_rows_are_one_step_and_one_request(redis: RedisServer, client: Any, count: int) -> None:
    old = {b"%d" % row: b"old" for row in range(count)}
    odd: dict[bytes, bytes | None] = {
        b"%d" % row: b"" if row % 3 else b"new %d" % row for row in range(1, 2 * count, 2)
    }
    with closing(store_at(redis.port, timeout=60_000)) as store:
        store.check()
        assert store.compare_and_write(PLACE, {}, {})  # so that the server knows the script
        client.config_resetstat()
        assert store.compare_and_write(PLACE, {}, {"b": old})
        assert store.compare_and_write(PLACE, {"b": old}, {"a": odd})
        assert not store.compare_and_write(PLACE, {"b": {**old, b"0": b"another"}}, {"a": {b"0": b"0"}})
        assert not store.compare_and_write(PLACE, {"a": dict.fromkeys(old)}, {"a": {b"0": b"0"}})
        assert store.compare_and_write(PLACE, {"c": dict.fromkeys(old)}, {}, merged=("a", "b"))
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == 5
        merged = {**old, **odd}
        assert rows_of(store) == {"a": {}, "b": {key: value for key, value in merged.items() if value}, "c": {}}
        assert store.get(PLACE, "b", [*merged]) == [value or None for value in merged.values()]
        assert store.compare_and_write(PLACE, {}, {"b": dict.fromkeys(merged)})
    assert all(b"/$call:" in key for key in client.scan_iter())


def test_a_call_whose_answer_is_lost_is_made_once(redis: RedisServer, store: RedisStore, lossy: Lossy) -> None:
    with closing(store_at(lossy.port)) as unlucky:
        lossy.lose = "answer"
        assert unlucky.compare_and_write(PLACE, {"a": {b"k": None}}, {"a": {b"k": b"1"}})
        first, second = lossy.sent
        assert first == second
        lossy.lose = "answer"
        assert not unlucky.compare_and_write(PLACE, {"a": {b"k": None}}, {"a": {b"k": b"2"}})
        assert len(lossy.sent) == 4
    assert rows_of(store)["a"] == {b"k": b"1"}


def test_a_copy_changes_nothing_and_answers_as_the_first_one_whatever_came_between(
    redis: RedisServer, store: RedisStore, lossy: Lossy
) -> None:
    with closing(store_at(lossy.port)) as unlucky:
        lossy.lose = "script"
        assert unlucky.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}}, ["b"], ("c", "b"))
        late = lossy.sent[0]
        for between in ({b"k": b"2"}, {b"k": None}):
            assert store.compare_and_write(PLACE, {}, {"a": between, "b": {b"m": b"m"}, "c": {b"n": b"n"}})
            there = rows_of(store)
            assert again(redis, late) == b":1\r\n"
            assert rows_of(store) == there
        assert not unlucky.compare_and_write(PLACE, {"a": {b"k": b"1"}}, {"a": {b"k": b"3"}})
        assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
        assert again(redis, lossy.sent[-1]) == b":0\r\n"  # although it is there now
        assert b"DAMAGED" in again(redis, late)  # nobody waits for this answer any more
    assert rows_of(store)["a"] == {b"k": b"1"}


def test_a_call_that_was_given_up_is_not_made_after_a_later_one_of_any_thread(
    redis: RedisServer, store: RedisStore, lossy: Lossy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(store_at(lossy.port, timeout=100)) as unlucky:
        assert unlucky.get(PLACE, "a", [b"k"]) == [None]
        unlucky.hurry()
        monkeypatch.setattr(unlucky, "_patience", 0.01)
        lossy.lose = "script"
        lossy._open.clear()  # no new connection
        with pytest.raises(StateError, match="can't be used"):
            unlucky.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
        lossy.heal()
        monkeypatch.setattr(unlucky, "_patience", 20)
        thread = threading.Thread(target=unlucky.compare_and_write, args=(PLACE, {}, {"a": {b"k": b"2"}}))
        thread.start()
        thread.join()
        assert rows_of(store)["a"] == {b"k": b"2"}
        assert b"DAMAGED" in again(redis, lossy.sent[0])
    assert rows_of(store)["a"] == {b"k": b"2"}


def test_threads_of_one_store_are_counted_right_while_answers_are_lost(store: RedisStore, lossy: Lossy) -> None:
    """Each thread counts its own row up by one; another count than that of its calls is a call made twice or never."""
    times, draw = 60, random.Random(1)
    with closing(store_at(lossy.port)) as shared:

        def count(row: bytes) -> None:
            for number in range(times):
                if draw.random() < 0.1:
                    lossy.lose = draw.choice(("script", "answer"))
                before = {row: b"%d" % number if number else None}
                assert shared.compare_and_write(PLACE, {"a": before}, {"a": {row: b"%d" % (number + 1)}})
            done.append(row)

        done: list[bytes] = []
        threads = [threading.Thread(target=count, args=(b"row %d" % row,)) for row in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == len(threads)
        assert rows_of(store)["a"] == dict.fromkeys(done, b"%d" % times)
        assert len(lossy.sent) > times * len(threads)


def test_a_forked_process_does_not_count_as_the_one_that_it_came_from(store: RedisStore) -> None:
    assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
    pids = []
    for child in range(2):
        pid = os.fork()
        if not pid:
            try:
                done = store.compare_and_write(PLACE, {}, {"a": {b"child %d" % child: b"1"}})
                os._exit(0 if done else 1)
            finally:
                os._exit(2)
        pids.append(pid)
        assert os.waitpid(pid, 0)[1] == 0
    assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"2"}})
    assert rows_of(store)["a"] == {b"k": b"2", b"child 0": b"1", b"child 1": b"1"}


def test_a_beat_does_not_wait_behind_a_write_without_an_answer(redis: RedisServer, store: RedisStore) -> None:
    with Proxy(redis.port) as proxy, closing(store_at(proxy.port, timeout=60_000)) as shared:
        claim = shared.claim(PLACE, "run-1", "shop")
        shared.get(PLACE, "a", [b"k"])  # both connections are there
        writing = threading.Event()
        proxy.cut()
        shared.trace = lambda step: writing.set() if step == "sync" and threading.current_thread() is writer else None
        writer = threading.Thread(target=claim.write, args=({"a": {b"k": b"1"}},))
        writer.start()
        assert writing.wait(60)
        assert not store.get(PLACE, "a", [b"k"])[0]
        shared.trace("x")
        proxy.heal()
        writer.join()
        claim.release()
    assert rows_of(store)["a"] == {b"k": b"1"}


def everything(store: RedisStore) -> bool:
    """Use every command of the script; the row that is merged last tells whether it was done to its end."""
    gone = dict.fromkeys((b"k", b"m"))
    return store.compare_and_write(PLACE, {"a": {b"0": b"0"}}, {"b": {b"end": b"1", **gone}}, ["a"], ("c", "b"))


def filled(store: RedisStore) -> dict[str, dict[bytes, bytes]]:
    rows = {"a": {b"0": b"0", b"k": b"1"}, "b": {b"0": b"0", b"k": b"1"}, "c": {b"0": b"", b"m": b"1"}}
    assert store.compare_and_write(PLACE, {}, rows, ["a", "b", "c"])
    return rows


@pytest.mark.parametrize("table", ["a", "b", "c"])
def test_a_key_of_another_kind_is_named_and_nothing_is_changed(store: RedisStore, client: Any, table: str) -> None:
    rows = filled(store)
    key = f"{{{PLACE}}}/{table}"
    client.delete(key)
    client.set(key, "somebody else's")
    with pytest.raises(StoreGoneError, match=r"'\{shop/count-0\}/\*' in Redis 127.*WRONGTYPE.*remove it"):
        everything(store)
    for read in (lambda: list(store.list(PLACE, table)), lambda: store.get(PLACE, table, [b"k"])):
        with pytest.raises(StoreGoneError, match="WRONGTYPE"):
            read()
    client.delete(key)
    assert rows_of(store) == {**rows, table: {}}
    assert store.compare_and_write(PLACE, {}, {table: {b"k": b"1"}})


def test_what_is_written_to_the_record_of_calls_by_hand_is_reported(store: RedisStore, client: Any) -> None:
    assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
    (key,) = (key for key in client.scan_iter() if b"$call" in key)
    client.hset(key, "calls", "moon")
    with pytest.raises(StoreGoneError, match=r"DAMAGED.*moon"):
        store.compare_and_write(PLACE, {}, {"a": {b"k": b"2"}})
    assert rows_of(store)["a"] == {b"k": b"1"}


@pytest.mark.parametrize("command", ["hset", "hdel", "unlink", "expire", "hscan", "hlen", "hmget", "hget"])
def test_who_lacks_the_right_to_one_command_changes_nothing(store: RedisStore, client: Any, command: str) -> None:
    rows = filled(store)
    filter = ["+@all", f"-{command}"]
    client.acl_setuser("poor", enabled=True, passwords=["+secret"], keys=["*"], commands=filter)
    conf = {"multilang.redis.access": {"user": "poor", "password": "secret"}}
    try:
        with closing(RedisStore(store.url, conf)) as poor, pytest.raises(StateError, match="ACL SETUSER"):
            everything(poor)
        assert rows_of(store) == rows
    finally:
        client.acl_deluser("poor")
    assert everything(store)
    assert rows_of(store) == {"a": {}, "b": {b"end": b"1"}, "c": {}}


def test_a_login_with_rights_to_other_places_only_is_refused(store: RedisStore, client: Any) -> None:
    client.acl_setuser("poor", enabled=True, passwords=["+secret"], keys=["{shop/*"], commands=["+@all"])
    conf = {"multilang.redis.access": {"user": "poor", "password": "secret"}}
    try:
        with closing(RedisStore(store.url, conf)) as poor:
            assert poor.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
            for call in (
                lambda: poor.compare_and_write("other", {}, {"a": {b"k": b"1"}}),
                lambda: poor.get("other", "a", [b"k"]),
                lambda: list(poor.list("other", "a")),
            ):
                with pytest.raises(StateError, match=r"'\{other\}/\*' in Redis"):
                    call()
    finally:
        client.acl_deluser("poor")


def test_a_full_memory_changes_nothing(own: RedisServer) -> None:
    import redis as module

    with closing(store_at(own.port)) as store, module.Redis(port=own.port) as client:
        rows = filled(store)
        client.config_set("maxmemory", 1)
        with pytest.raises(StateError, match=r"can't be used.*maxmemory"):
            everything(store)
        assert rows_of(store) == rows
        client.config_set("maxmemory", 0)
        assert everything(store)


def test_a_server_that_is_killed_in_a_write_and_started_again_is_waited_for(own: RedisServer) -> None:
    with closing(store_at(own.port)) as store:
        for number in range(3):
            before = {"a": {b"k": b"%d" % number if number else None}}
            restarter = threading.Timer(0.2, own.start)

            def kill(step: str, restarter: threading.Timer = restarter) -> None:
                if step == "sync":
                    own.kill()
                    restarter.start()

            store.trace = kill
            assert store.compare_and_write(PLACE, before, {"a": {b"k": b"%d" % (number + 1)}})
            restarter.join()
        assert rows_of(store)["a"] == {b"k": b"3"}


def test_a_server_that_sleeps_in_a_write_has_made_it_once(own: RedisServer) -> None:
    with closing(store_at(own.port, timeout=200)) as store:
        store.trace = lambda step: own.pause(0.7) if step == "sync" else None
        assert store.compare_and_write(PLACE, {"a": {b"k": None}}, {"a": {b"k": b"1"}})
        store.trace = lambda _: None
        assert rows_of(store)["a"] == {b"k": b"1"}


def test_a_server_that_runs_a_long_script_is_waited_for(own: RedisServer) -> None:
    import redis as module

    with closing(store_at(own.port, timeout=200)) as store, module.Redis(port=own.port) as client:
        client.config_set("lua-time-limit", 50)

        def run() -> None:
            with module.Redis(port=own.port) as another, pytest.raises(module.RedisError):
                another.eval("while true do end", 0)

        running = threading.Thread(target=run)
        running.start()
        with module.Redis(port=own.port) as looker:
            wait_for(lambda: is_busy(looker), "a script runs")
            killer = threading.Timer(0.5, looker.script_kill)
            killer.start()
            assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
            killer.join()
        running.join()
        assert rows_of(store)["a"] == {b"k": b"1"}


def is_busy(client: Any) -> bool:
    import redis as module

    try:
        client.ping()
    except module.ResponseError as problem:
        return str(problem).startswith("BUSY")
    return False


def test_a_server_that_evicts_keys_is_refused(own: RedisServer) -> None:
    import redis as module

    with closing(store_at(own.port)) as store, module.Redis(port=own.port) as client:
        store.check()
        client.config_set("maxmemory-policy", "allkeys-lru")
        store.check()  # its memory is never full
        client.config_set("maxmemory", 100 << 20)
        with pytest.raises(StateError, match=r"deletes keys when its memory is full \(maxmemory-policy allkeys-lru\)"):
            store.check()


def test_a_server_that_is_not_there_is_reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_client, "PATIENCE_SECS", 24 * 3600)
    monkeypatch.setattr("multilang.store.redis.HASTE_SECS", 0.2)
    with closing(RedisStore(url_of(1))) as store:
        told = r"Redis 127\.0\.0\.1:1, database 0 can't be used: .*; start it, or name another in multilang\.store"
        with pytest.raises(StateError, match=told):
            store.check()
        threading.Timer(0.2, store.hurry).start()  # while it is waited for
        with pytest.raises(StateError, match="start it"):
            store.get(PLACE, "a", [b"k"])


def test_the_owner_before_writes_nothing_once_there_is_another(redis: RedisServer) -> None:
    with closing(store_at(redis.port)) as one, closing(store_at(redis.port)) as other:
        first = one.claim(PLACE, "run-1", "shop")
        assert first.write({"a": {b"k": b"1"}})
        second = other.claim(PLACE, "run-1", "shop")
        assert (first.epoch, second.epoch) == (1, 2)
        with pytest.raises(FencedError, match=r"taken over by topology 'shop'.*\(epoch 2; this one has 1\)"):
            first.write({"a": {b"k": b"2"}})
        assert not one.beat(PLACE, first.fence, 7)
        assert second.write({"a": {b"m": b"2"}}, {"a": {b"k": b"1"}})
        assert not second.write({"a": {b"m": b"3"}}, {"a": {b"k": None}})
        assert rows_of(one)["a"] == {b"k": b"1", b"m": b"2"}
        first.release()
        second.release()


def test_rows_that_are_large_are_read_in_answers_that_are_not(
    store: RedisStore, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {b"%d" % row: b"x" * 30_000 for row in range(300)}
    assert store.compare_and_write(PLACE, {}, {"a": rows})
    monkeypatch.setattr(redis_client, "MAX_ANSWER", 300_000)
    assert dict(store.list(PLACE, "a")) == rows
    assert store.largest == 150_000


def test_the_largest_value_is_the_servers(store: RedisStore, client: Any) -> None:
    client.config_set("proto-max-bulk-len", 1 << 20)
    try:
        assert store.largest == 1 << 20
        assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"x" * (1 << 20)}})
    finally:
        client.config_set("proto-max-bulk-len", 512 << 20)


def test_a_row_is_listed_once_although_its_table_shrinks(store: RedisStore) -> None:
    kept = {b"kept %d" % row: b"x" * 100 for row in range(300)}
    more = [b"%d" % row for row in range(8000)]
    for begun in range(150, 5000, 400):  # Redis itself gives a row twice in some of these
        assert store.compare_and_write(PLACE, {}, {"a": {**kept, **dict.fromkeys(more, b"x" * 100)}}, ["a"])
        rows = store.list(PLACE, "a")
        found = [next(rows)[0] for _ in range(begun)]
        for part in (more[::2], more[1::2], [b"kept 0"]):
            assert store.compare_and_write(PLACE, {}, {"a": dict.fromkeys(part)})
            store.get(PLACE, "a", [b"0"] * 10_000)  # each read moves some rows to the smaller table
        found += [key for key, _ in rows]
        assert len(found) == len(set(found))
        assert set(kept) - {b"kept 0"} <= set(found)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://:moon@host:1/0", "a password belongs into multilang.redis.access"),
        ("redis://host/x", "its form is redis://HOST:PORT/DATABASE, or rediss://"),
        ("redis://host:99999/0", "[Pp]ort"),
        ("redis:///0", "its form is"),
        ("redis://host/0?ca=/x", "its form is"),
        ("rediss://host/0?password=moon", "its form is"),
        ("rediss://host/0?key=/x", "a key needs its certificate"),
    ],
)
def test_a_url_that_can_not_be_is_named_with_its_setting(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^shop.place is .*{message}") as caught:
        open_store(url, setting="shop.place")
    assert "moon" not in str(caught.value)


def test_it_goes_to_another_process_without_its_connections(store: RedisStore) -> None:
    assert store.compare_and_write(PLACE, {}, {"a": {b"k": b"1"}})
    place = {"host": "127.0.0.1", "port": 1, "timeout": 5}
    with closing(pickle.loads(pickle.dumps(store))) as copy:
        assert copy.get(PLACE, "a", [b"k"]) == [b"1"]
        assert copy.compare_and_write(PLACE, {}, {"a": {b"k": b"2"}})
    assert store.compare_and_write(PLACE, {"a": {b"k": b"2"}}, {"a": {b"k": b"3"}})
    given = pickle.loads(pickle.dumps(RedisStore("redis", settings=place)))
    assert given.describe() == "Redis 127.0.0.1:1, database 0"


@contextmanager
def cluster(folder: Path) -> Iterator[list[RedisServer]]:
    """Two servers that have one half of the slots each."""
    import redis as module

    servers = []
    try:
        for number in range(2):
            (folder / str(number)).mkdir()
            servers.append(RedisServer(folder / str(number)))
            servers[-1].start("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
        clients = [module.Redis(port=server.port) for server in servers]
        first, second = clients
        first.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8000)
        second.execute_command("CLUSTER", "ADDSLOTSRANGE", 8001, 16383)
        bus = int(second.config_get("cluster-port")["cluster-port"])
        first.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[1].port, bus)
        wait_for(
            lambda: all("cluster_state:ok" in str(each.execute_command("CLUSTER", "INFO")) for each in clients),
            "the cluster is up",
        )
        for each in clients:
            each.close()
        yield servers
    finally:
        for server in servers:
            server.kill()


def test_a_cluster_keeps_each_place_on_one_server_and_finds_those_of_all(tmp_path: Path) -> None:
    import redis as module

    with cluster(tmp_path) as servers:
        nodes = [f"127.0.0.1:{servers[0].port}"]
        with closing(RedisStore("redis", setting="the.setting", settings={"nodes": nodes})) as store:
            store.check()
            places = [f"shop/{number}" for number in range(8)]
            for place in ("", "{", *places):
                assert store.compare_and_write(place, {"a": {b"k": None}}, {"a": {b"k": b"1"}, "b": {b"m": b""}})
                assert store.compare_and_write(place, {}, {}, ["a"], merged=("b", "c"))
                assert not store.compare_and_write(place, {"b": {b"m": b""}}, {"a": {b"k": b"2"}})
                assert store.compare_and_write(place, {}, {"a": {b"k": b"2"}})
                assert rows_of(store, place) == {"a": {b"k": b"2"}, "b": {}, "c": {}}
            assert sorted(store.places("shop/")) == places
            assert len(store.places("")) == len(places) + 2
            claim = store.claim("shop/0", "run-1", "shop")
            assert claim.write({"a": {b"k": b"3"}})
            claim.release()
            with module.Redis(port=servers[1].port) as second:
                assert 0 < second.dbsize() < 3 * len(places)
                second.config_set("maxmemory-policy", "allkeys-lfu")
                second.config_set("maxmemory", 100 << 20)
            with pytest.raises(StateError, match=f"Redis cluster {nodes[0]} deletes keys.*allkeys-lfu"):
                store.check()
            assert store.largest == 128 << 20


def test_a_cluster_that_is_stopped_and_goes_on_has_made_a_write_once(tmp_path: Path) -> None:
    with cluster(tmp_path) as servers:
        settings = {"nodes": [f"127.0.0.1:{server.port}" for server in servers], "timeout": 200}
        with closing(RedisStore("redis", settings=settings)) as store:
            assert store.get(PLACE, "a", [b"k"]) == [None]
            for server in servers:
                assert server.process is not None
                server.process.send_signal(signal.SIGSTOP)
            waking = threading.Timer(
                0.7, lambda: [each.process.send_signal(signal.SIGCONT) for each in servers if each.process]
            )
            waking.start()
            began = time.monotonic()
            assert store.compare_and_write(PLACE, {"a": {b"k": None}}, {"a": {b"k": b"1"}})
            assert time.monotonic() - began > 0.2
            waking.join()
            assert rows_of(store)["a"] == {b"k": b"1"}


def test_a_cluster_has_nodes() -> None:
    for nodes in (None, [], ["host"], [{"host": "x"}]):
        with (
            closing(RedisStore("redis", setting="the.setting", settings={"nodes": nodes})) as store,
            pytest.raises(ConfigError, match=r"^the\.setting: .*host:port"),
        ):
            store.check()
