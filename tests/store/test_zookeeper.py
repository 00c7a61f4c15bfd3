"""ZooKeeper's own side of a store there; ``test_laws.py`` has what every database keeps."""

from __future__ import annotations

import threading
import time

import pytest

from multilang.component.errors import ConfigError
from multilang.state.databases import StoreProvider
from multilang.store import FencedError, StateError, admin, open_store, zookeeper_client, zookeeper_writes
from multilang.store.zookeeper import ROOT, ZooKeeperStore
from tests.patience import paced, patient
from tests.servers import LIMIT, Wire, ZooKeeperServer, free_port, wait_for
from tests.soak import SOAK

MULTI = 14  # ZooKeeper's number of that request
PING = 11
KILLS = 20 if SOAK else 2  # one of them is longer than a session


@pytest.fixture
def opened(zookeeper, request):
    """Opens stores, which are closed at the end, below a root of the test's own."""
    stores = []
    root = "".join(each if each.isalnum() else "-" for each in request.node.name)

    def make(url=None, port=zookeeper.port, **conf):
        stores.append(open_store(url or f"zookeeper://127.0.0.1:{port}/{root}", {**zookeeper.conf, **conf}))
        return stores[-1]

    make.root = f"/{root}"
    yield make
    for each in stores:
        each.close()


@pytest.fixture
def client(zookeeper):
    from kazoo.client import KazooClient

    found = KazooClient(f"127.0.0.1:{zookeeper.port}")
    found.start()
    yield found
    found.stop()
    found.close()


class CountingWire(Wire):
    """A way to a server on which the requests are noted, and which is cut when an answer is lost, if ``cuts``."""

    cuts = False

    def __init__(self, port):
        self.requests = []
        super().__init__(port)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "lost" and value and self.cuts:
            self.cut.set()

    def _frame(self, source):
        frame = super()._frame(source)
        if frame and source.getsockname()[1] == self.port and (kind := int.from_bytes(frame[8:12], "big")) != PING:
            self.requests.append(kind)
        return frame


@pytest.fixture
def wire(zookeeper):
    found = CountingWire(zookeeper.port)
    yield found
    found.close()


def rows(store, place, table):
    return dict(store.list(place, table))


# ---- nodes ----


@pytest.mark.parametrize("root", ["", "/deep/er"])
def test_rows_are_nodes_whose_names_are_quoted(opened, client, zookeeper, root):
    store = opened(f"zookeeper:///{root}", **{ROOT: "/", "transactional.zookeeper.port": zookeeper.port})
    keys = [b"", b".", b"..", b"%", b"/", b"zookeeper", b"a b", b"\xff\x00", "é".encode(), b"$x", b"..."]
    for place in ("zookeeper", "..", "", "a/b", "$owner"):
        for table in ("", ".", "$owner", "t"):
            assert store.compare_and_write(place, {table: dict.fromkeys(keys)}, {table: {key: key for key in keys}})
            assert rows(store, place, table) == {key: key for key in keys}
        assert store.compare_and_write(place, {}, {}, ["", "."])
        assert place in store.places(place)
        assert store.compare_and_write(place, {}, {}, ["$owner", "t"])
        assert place not in store.places(place)
    assert client.exists(f"{root}/%7Aookeeper/t") is not None
    assert client.exists(f"{root}/a%2Fb/%24owner") is not None


def test_a_write_after_the_first_is_one_request(opened, wire):
    store = opened(port=wire.port)
    fence = {"$owner": {b"f": b"1"}}
    assert store.compare_and_write("p", {}, {**fence, "t": {b"k": b"0", b"1": b"", b"2": b"", b"e": b"0", b"x": b""}})
    assert store.compare_and_write("p", fence, {"t": {b"k": b"0"}})
    del wire.requests[:]
    for n in range(1, 3):
        change = {b"k": b"%d" % n, b"new %d" % n: b"", b"%d" % n: None}
        assert store.compare_and_write("p", fence, {"t": change})
    assert wire.requests == [MULTI] * 2
    for n in range(3):  # what is expected and written is known, too, once it was read
        if n:
            del wire.requests[:]
        assert store.compare_and_write(
            "p", {**fence, "t": {b"e": b"%d" % n}}, {"t": {b"e": b"%d" % (n + 1), b"x": None}}
        )
        assert store.compare_and_write("p", fence, {"t": {b"x": b""}})
        assert n == 0 or wire.requests == [MULTI] * 2


def test_a_row_that_was_removed_and_made_again_is_another_one(opened):
    """Although its node has the same version."""
    one, other = opened(), opened()
    for clearing in (False, True):
        assert one.compare_and_write("p", {}, {"t": {b"k": b"a"}}, ["t"])
        assert one.compare_and_write("p", {"t": {b"k": b"a"}}, {})  # from here on it is known
        assert other.compare_and_write("p", {}, {} if clearing else {"t": {b"k": None}}, ["t"] if clearing else [])
        assert other.compare_and_write("p", {}, {"t": {b"k": b"b"}})
        assert not one.compare_and_write("p", {"t": {b"k": b"a"}}, {"t": {b"k": b"c"}})
        assert one.get("p", "t", [b"k"]) == [b"b"]


def test_a_place_that_was_deleted_and_made_again_is_another_one(opened, client):
    """The same, where somebody deleted the nodes by hand."""
    one = opened()
    claim = one.claim("p", "run-1", "counts")
    assert one.compare_and_write("q", {}, {"t": {b"k": b"a"}})
    assert one.compare_and_write("q", {"t": {b"k": b"a"}}, {})
    for place in "pq":
        client.delete(f"{opened.root}/{place}", recursive=True)
    other = opened()
    assert not one.compare_and_write("p", claim.fence, {"t": {b"k": b"c"}})
    assert not client.exists(f"{opened.root}/p")  # nothing was made by who was refused
    successor = other.claim("p", "run-2", "counts")
    assert other.compare_and_write("q", {}, {"t": {b"k": b"b"}})
    assert not one.compare_and_write("q", {"t": {b"k": b"a"}}, {"t": {b"k": b"c"}})
    assert rows(one, "q", "t") == {b"k": b"b"}
    with pytest.raises(StateError):
        claim.write({"t": {b"k": b"c"}})
    successor.write({"t": {b"k": b"d"}})
    assert rows(one, "p", "t") == {b"k": b"d"}
    assert one.compare_and_write("q", {"t": {b"k": b"b"}}, {"t": {b"k": b"c"}})
    for each in (claim, successor):
        each.release()


def test_the_nodes_of_writers_are_removed_when_they_end_and_else_by_the_next_claim(opened, client):
    def writers():
        return client.get_children(f"{opened.root}/p/$writers")

    ended, left = opened(), opened()
    for each in (ended, left):
        assert each.compare_and_write("p", {}, {"t": {b"k": b"1"}})
    assert len(writers()) == 2
    ended.close()
    assert len(writers()) == 1
    (mark,) = writers()
    claim = opened().claim("p", "run-1", "counts")
    assert mark not in writers()
    assert left.compare_and_write("p", {"t": {b"k": b"1"}}, {"t": {b"k": b"2"}})  # it makes another one
    claim.release()


# ---- lost answers ----


@pytest.mark.parametrize("kind", ["new", "set", "removed", "mixed", "nothing", "cleared", "merged", "claim"])
def test_a_write_whose_answer_was_lost_is_done_once(opened, wire, kind):
    store, direct = opened(port=wire.port), opened()
    before = {"t": {b"1": b"1", b"2": b"2"}, "u": {b"2": b"two", b"3": b"three", b"1": b""}}
    assert store.compare_and_write("p", {}, before)
    wire.lose_answer = MULTI
    if kind == "claim":
        store.claim("p", "run-1", "counts").release()
        assert wire.lost == 1
        return
    changes = {
        "new": {"t": {b"3": b"3"}},
        "set": {"t": {b"2": b"z"}},
        "removed": {"t": {b"2": None}},
        "mixed": {"t": {b"1": None, b"2": b"z", b"3": b"3"}},
    }.get(kind, {})
    cleared = ["t"] if kind == "cleared" else []
    merged = ("u", "t") if kind == "merged" else None
    assert store.compare_and_write("p", {"t": {b"1": b"1", b"9": None}}, changes, cleared, merged) is True
    assert wire.lost == 1
    wanted = {key: value for key, value in {**before["t"], **changes.get("t", {})}.items() if value is not None}
    wanted = {} if kind == "cleared" else {b"2": b"two", b"3": b"three"} if kind == "merged" else wanted
    assert rows(direct, "p", "t") == wanted
    assert store.compare_and_write("p", {"t": wanted}, {"t": {b"4": b"4"}})
    assert direct.get("p", "t", [b"4"]) == [b"4"]


@pytest.mark.parametrize("meanwhile", ["nothing", "another", "removed", "claimed", "claimed and changed", "fenced"])
def test_what_others_do_before_a_write_is_sent_again_stays(opened, wire, meanwhile):
    store, other = opened(port=wire.port), opened()
    assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}, "own": {b"e": b"1"}})
    wire.cuts, wire.lose_answer = True, MULTI
    said: list = []

    def write():
        try:
            said.append(store.compare_and_write("p", {"own": {b"e": b"1"}}, {"t": {b"k": b"2"}}))
        except StateError as problem:
            said.append(problem)

    thread = threading.Thread(target=write)
    thread.start()
    wait_for(lambda: wire.lost, "the answer is lost")
    claim = other.claim("p", "run-1", "counts") if "claimed" in meanwhile else None
    changes = {
        "another": {"t": {b"k": b"3"}},
        "removed": {"t": {b"k": None}},
        "claimed and changed": {"t": {b"k": b"3"}},
        "fenced": {"own": {b"e": b"2"}, "t": {b"k": b"3"}},
    }.get(meanwhile, {})
    assert other.compare_and_write("p", {}, changes)
    wire.cut.clear()
    thread.join()
    wanted = {"nothing": b"2", "claimed": b"2", "removed": None}.get(meanwhile, b"3")
    assert other.get("p", "t", [b"k"]) == [wanted]
    if meanwhile == "claimed and changed":
        assert "the answer to a write was lost" in str(said[0])
    else:
        assert said == [True]
    if claim is not None:
        claim.release()


def test_a_write_that_was_given_up_and_is_done_later_is_not_taken_for_the_next_one(opened, wire):
    store, other = opened(port=wire.port, **{"storm.zookeeper.session.timeout": patient(10_000)}), opened()
    assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
    wire.cut.set()
    store.hurry()
    with pytest.raises(StateError, match="does not answer"):
        store.compare_and_write("p", {}, {"t": {b"k": b"2"}})
    wire.cut.clear()
    wait_for(lambda: other.get("p", "t", [b"k"]) == [b"2"], "it is done")
    assert store.compare_and_write("p", {}, {"t": {b"l": b"3"}})
    assert other.get("p", "t", [b"k", b"l"]) == [b"2", b"3"]


def test_an_owner_that_is_cut_off_and_replaced_writes_nothing_when_it_is_back(opened, wire):
    short = {"storm.zookeeper.session.timeout": patient(1000)}
    store, other = opened(port=wire.port, **short), opened()
    claim = store.claim("p", "run-1", "counts")
    claim.write({"t": {b"k": b"7"}})
    wire.cut.set()
    late: list = []

    def write():
        try:
            claim.write({"t": {b"k": b"8"}})
        except StateError as problem:
            late.append(problem)

    thread = threading.Thread(target=write)
    thread.start()
    successor = other.claim("p", "run-1", "other")
    successor.write({"t": {b"k": b"20"}})
    time.sleep(paced(2))  # the session ends
    wire.cut.clear()
    thread.join()
    assert [type(problem) for problem in late] == [FencedError]
    assert "taken over by topology 'other'" in str(late[0])
    assert other.get("p", "t", [b"k"]) == [b"20"]
    for each in (claim, successor):
        each.release()


def test_a_zookeeper_that_is_killed_and_started_again_loses_nothing_and_is_waited_for(tmp_path, zookeeper, monkeypatch):
    monkeypatch.setattr(zookeeper_client, "PATIENCE_SECS", patient(120))  # a busy machine takes long to start a server
    server = ZooKeeperServer(tmp_path)
    server.start()
    store = open_store(f"zookeeper://127.0.0.1:{server.port}/killed", server.conf)
    claim = store.claim("p", "run-1", "counts")
    done = 0

    def killer():
        for kill in range(KILLS):
            wait_for(lambda enough=50 * (kill + 1): done > enough, "it goes on")
            server.kill()
            time.sleep(0.2 if kill else paced(3))  # once longer than a session
            server.start()

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        while thread.is_alive():
            before = b"%d" % done if done else None
            done += 1
            change = {b"n": b"%d" % done, b"%d" % done: b"", b"%d" % (done - 3): None}
            assert claim.write({"t": change}, {"t": {b"n": before}})
        assert rows(store, "p", "t") == {b"n": b"%d" % done, **{b"%d" % n: b"" for n in range(done - 2, done + 1)}}
        assert done > 50 * KILLS
    finally:
        thread.join()
        claim.release()
        store.close()
        server.kill()


# ---- more than a request takes ----


@pytest.mark.parametrize(
    "changes",
    [
        {b"small": b"1", b"large": b"x" * (ZooKeeperStore.largest + 1)},
        {b"%d" % n: b"x" * 300_000 for n in range(4)},
        {b"%d" % n: b"" for n in range(zookeeper_writes.MOST_BYTES // 200)},
        {b"small": b"1", b"x" * (ZooKeeperStore.largest + 1): None},
    ],
    ids=["one", "together", "many", "key"],
)
def test_more_than_a_request_takes_is_refused_whole(opened, changes):
    store = opened()
    with pytest.raises(StateError, match=r"ZooKeeper takes .*nothing was written"):
        store.compare_and_write("p", {}, {"t": changes})
    assert rows(store, "p", "t") == {}
    assert store.compare_and_write("p", {}, {"t": {b"%d" % n: b"x" * 300_000 for n in range(3)}})


def test_a_portion_fits_into_a_request_whatever_its_keys_are(opened, zookeeper):
    store = opened(url=f"zookeeper:///{'long' * 20}", **{"transactional.zookeeper.port": zookeeper.port})
    size = store.portion_bytes // store.portion_rows
    for part in store.portions((b"\xff" * (size - 4) + b"%04d" % n, b"") for n in range(store.portion_rows + 1)):
        assert store.compare_and_write("é" * 50, {}, {"t": part})
    assert len(rows(store, "é" * 50, "t")) == store.portion_rows + 1


class Killed(BaseException):
    pass


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("step", ["sync", "synced"])
def test_a_large_merge_that_is_killed_loses_nothing_and_is_made_again(opened, monkeypatch, steps, step):
    monkeypatch.setattr(zookeeper_writes, "MOST_BYTES", 50_000)
    store, later = opened(), opened()
    size = 150
    old, new = {b"%d" % n: b"old" for n in range(10)}, {b"%d" % n: b"x" * 600 for n in range(5, size)}  # 3 parts
    new[b"3"] = b""
    assert store.compare_and_write("p", {}, {"to": old, "own": {b"e": b"1"}})
    for key, value in new.items():
        assert store.compare_and_write("p", {}, {"from": {key: value}})
    seen: list[str] = []

    def trace(name):
        seen.append(name)
        if seen.count(step) > steps:
            raise Killed

    store.trace = trace
    wanted = {key: value for key, value in {**old, **new}.items() if value}
    expected, changes = {"own": {b"e": b"1"}, "to": {b"7": b"old"}}, {"own": {b"e": b"2"}, "from": {b"z": b"1"}}
    try:
        assert store.compare_and_write("p", expected, changes, (), ("from", "to"))
    except Killed:
        found, left = rows(later, "p", "to"), rows(later, "p", "from")
        if later.get("p", "own", [b"e"]) == [b"1"]:
            assert {key: value for key, value in {**found, **left}.items() if value} == wanted
            assert later.compare_and_write("p", expected, changes, (), ("from", "to"))
    else:
        assert steps == 5
        assert 3 <= seen.count("synced") <= 5
    assert rows(later, "p", "to") == wanted
    assert rows(later, "p", "from") == {b"z": b"1"}
    assert rows(later, "p", "own") == {b"e": b"2"}


def test_a_merge_that_has_to_be_in_one_step_and_does_not_fit_is_refused_whole(opened, monkeypatch):
    monkeypatch.setattr(zookeeper_writes, "MOST_BYTES", 20_000)
    store = opened()
    new = {b"%d" % n: b"x" * 600 for n in range(40)}
    for key, value in new.items():
        assert store.compare_and_write("p", {}, {"from": {key: value}, "to": {b"kept": b"1"}})
    for changes, cleared in (({}, ["to"]), ({"t": {b"%d" % n: b"x" * 8000 for n in range(3)}}, [])):
        with pytest.raises(StateError, match=r"more than ZooKeeper takes .*nothing was written"):
            store.compare_and_write("p", {}, changes, cleared, ("from", "to"))
        assert rows(store, "p", "from") == new
        assert rows(store, "p", "to") == {b"kept": b"1"}
    assert store.compare_and_write("p", {}, {"to": {b"1": b"changed"}}, ["from"], ("from", "to"))
    assert rows(store, "p", "to") == {b"kept": b"1", b"1": b"changed"}


# ---- where it is ----


@pytest.mark.parametrize(
    ("url", "conf", "said"),
    [
        ("zookeeper://zoo1", {}, "zoo1:2181/transactional"),
        ("zookeeper://zoo1:1,[::1]:2/a/b/", {}, "zoo1:1,[::1]:2/a/b"),
        ("zookeeper:", {"storm.zookeeper.servers": ["a", "b"]}, "a:2181,b:2181/transactional"),
        ("zookeeper:///x", {"storm.zookeeper.port": 7, ROOT: "/y"}, "localhost:7/x"),
        (
            "zookeeper:",
            {"transactional.zookeeper.servers": ["t"], "storm.zookeeper.servers": ["s"], ROOT: "//y/"},
            "t:2181/y",
        ),
        ("zookeeper://h", {ROOT: "/"}, "h:2181"),
    ],
)
def test_a_url_has_what_the_conf_has_else(url, conf, said):
    assert open_store(url, conf).describe() == f"ZooKeeper {said}"


@pytest.mark.parametrize(
    ("url", "conf", "message"),
    [
        ("zookeeper:zoo1/x", {}, "multilang.store is 'zookeeper:zoo1/x': // is missing; use zookeeper://HOST:PORT"),
        ("zookeeper:/x", {}, "// is missing"),
        ("zookeeper://zoo1:/x", {}, "'zoo1:' is no address"),
        ("zookeeper://zoo1:0/x", {}, "'zoo1:0' is no address"),
        ("zookeeper://zoo1:65536/x", {}, "'zoo1:65536' is no address"),
        ("zookeeper://zoo1,,zoo2/x", {}, "'' is no address"),
        ("zookeeper://zoo1, zoo2/x", {}, "' zoo2' is no address"),
        ("zookeeper://::1/x", {}, "'::1' is no address"),
        ("zookeeper://shop:pass-word@zoo1/x", {}, "a login belongs into storm.zookeeper.topology.auth.scheme"),
        ("zookeeper://zoo1/x?ssl=1", {}, "nothing follows the path"),
        ("zookeeper://zoo1/../x", {}, "can't be a path there"),
        ("zookeeper://zoo1/x\0", {}, "can't be a path there"),
        ("zookeeper:", {"transactional.zookeeper.servers": "zoo"}, r"servers is 'zoo'; use a list of hosts"),
        ("zookeeper:", {"storm.zookeeper.servers": []}, r"storm.zookeeper.servers is \[\]; use a list of hosts"),
        ("zookeeper:", {"storm.zookeeper.servers": ["zoo/storm"]}, r"has 'zoo/storm'; .* is the beginning of tr.*root"),
        ("zookeeper:", {"storm.zookeeper.servers": ["zoo:1"]}, r"has 'zoo:1'; use a host alone: its port is tr.*port"),
        ("zookeeper:", {"transactional.zookeeper.port": "2181"}, r"port is '2181'; use a port's number"),
        ("zookeeper:", {ROOT: "here"}, r"transactional.zookeeper.root is 'here'; use a path"),
    ],
)
def test_a_place_that_can_not_be_is_named(url, conf, message):
    with pytest.raises(ConfigError, match=message) as caught:
        open_store(url, conf)
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("url", ["zookeeper://127.0.0.1:{}/x", "zookeeper:"])
def test_where_nothing_listens_is_reported_soon(url, monkeypatch):
    monkeypatch.setattr("multilang.store.zookeeper.START_SECS", 0.3)
    port = free_port()
    store = open_store(url.format(port), {"transactional.zookeeper.port": port}, "shop.store")
    named = "transactional.zookeeper.port" if url == "zookeeper:" else "shop.store"
    start = time.monotonic()
    with pytest.raises(StateError, match=rf"ZooKeeper .*:{port} does not answer.* {named} right"):
        store.check()
    assert time.monotonic() - start < LIMIT / 2
    store.close()


def test_a_server_that_is_there_is_checked(opened):
    opened().check()


def test_states_of_more_rows_than_a_request_takes_are_rolled_back_and_replaced(opened):
    store = opened()
    conf = {**store.conf, "multilang.store": store.url, "topology.name": "shop", "storm.id": "shop-1"}
    provider = StoreProvider({}, conf)
    state = provider.new_state("count-0")
    try:
        state.claim(provider.claim())
        for step, end in enumerate((state.rollback, lambda: state.commit(1))):
            for key in range(4000):
                state.put(f"key {key}", key)
            state.prepare_commit(step)
            end()
        provider.replace({"count-0": {f"key {key}": -key for key in range(4000)}})
        again = provider.new_state("count-0")
        assert dict(again.items()) == {f"key {key}": -key for key in range(4000)}
        again.close()
    finally:
        state.close()
        provider.close()
    assert admin.remove(store, "state/shop") == 1
    assert store.tables("state/shop/count-0") == []
