"""multilang state with a URL: a whole store is shown, copied and cleared, and nothing that is in use is touched."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing

import pytest

from multilang.store import InUseError, StateError, StoreGoneError, admin, claims, open_store
from multilang.store.admin import entries, export, load, remove
from tests.cli.command import multilang

STATE = "state/shop"
ROWS = {"data": {b"moon": b"1", b"\xff\0": b"\xfe"}, "head": {b"head": b"{}"}}


@pytest.fixture(params=["sqlite", "redis"])
def urls(request, tmp_path):
    """The URLs of two stores, the first of which has a state of two tasks, and a position."""
    if request.param == "sqlite":
        found = [f"sqlite://{tmp_path}/{name}.sqlite" for name in ("one", "two")]
    else:
        server = request.getfixturevalue("redis")
        found = [f"redis://127.0.0.1:{server.port}/{number}" for number in (0, 1)]
    with closing(open_store(found[0])) as store:
        for place in (STATE, "position/shop/letters/0"):
            claim = store.claim(place, "one", "shop", above=6)
            claim.write({"position": {b"": b"7"}} if place != STATE else {})
            claim.release()
        for index in range(2):
            store.compare_and_write(f"{STATE}/count-{index}", {}, ROWS)
    return found


def shown(store):
    return {each.place: (each.rows, each.owner and each.owner.epoch, each.is_used) for each in entries(store)}


def test_a_store_is_copied_into_another_where_epochs_go_on(urls):
    with closing(open_store(urls[0])) as source, closing(open_store(urls[1])) as target:
        lines = json.loads(json.dumps([*export(source)]))
        assert load(target, iter(lines)) == len(lines) - 1
        assert {place: rows for place, (rows, *_) in shown(target).items()} == {
            place: rows for place, (rows, *_) in shown(source).items()
        }
        assert dict(target.list(f"{STATE}/count-1", "data")) == ROWS["data"]
        assert shown(source)[STATE] == ({}, 7, False)
        assert shown(target)[STATE] == ({}, 8, False)
        with pytest.raises(StateError, match=r"there is something at 'position/shop/letters/0' in .* already"):
            load(target, iter(lines))


def test_what_was_removed_is_imported_again(urls):
    with closing(open_store(urls[0])) as store:
        lines = [*export(store)]
        for place in (STATE, "position/shop"):
            remove(store, place)
        assert load(store, iter(lines)) == len(lines) - 1
        assert shown(store)[STATE] == ({}, 9, False)
        assert dict(store.list(f"{STATE}/count-1", "data")) == ROWS["data"]


@pytest.mark.parametrize("end", [4, 10])
def test_what_an_import_left_half_done_is_refused_until_it_is_removed(urls, end):
    with closing(open_store(urls[0])) as source:
        lines = [*export(source)]
    with closing(open_store(urls[1])) as target:
        killed = os.fork()
        if not killed:

            def cut():
                yield from lines[:end]
                os.kill(os.getpid(), signal.SIGKILL)

            admin._AT_ONCE = 1 if end > 4 else 1000
            load(open_store(urls[1]), cut())
        os.waitpid(killed, 0)
        with pytest.raises(StoreGoneError, match=f"is not whole, .*multilang state rm URL {STATE}"):
            target.claim(STATE, "two", "shop")
        remove(target, STATE)
        remove(target, "position/shop")
        assert load(target, iter(lines)) == len(lines) - 1
        target.claim(STATE, "two", "shop").release()


def test_an_export_beside_a_topology_that_starts_is_refused(urls):
    with closing(open_store(urls[0])) as store:
        lines = export(store)
        next(lines)
        store.claim(STATE, "two", "shop").release()
        with pytest.raises(InUseError, match="was used meanwhile"):
            list(lines)


def test_only_the_places_below_are_shown(urls):
    with closing(open_store(urls[0])) as store:
        store.compare_and_write("state/shop2", {}, ROWS)
        assert [each.place for each in entries(store, STATE)] == [STATE, f"{STATE}/count-0", f"{STATE}/count-1"]


def test_what_is_in_use_is_neither_copied_nor_removed(urls, monkeypatch):
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.1)
    monkeypatch.setattr(claims, "BEAT_SECS", 0.02)
    with closing(open_store(urls[0])) as store:
        before = {place: rows for place, (rows, *_) in shown(store).items()}
        claim = store.claim(STATE, "two", "shop")
        assert shown(store)[STATE][2]
        for use in (
            lambda: [*export(store)],
            lambda: remove(store, "state"),
            lambda: remove(store, STATE),
            lambda: remove(store, f"{STATE}/count-0"),
        ):
            with pytest.raises(InUseError, match="is in use by topology 'shop'"):
                use()
        claim.release()
        assert {place: rows for place, (rows, *_) in shown(store).items()} == before


def test_a_place_is_removed_with_those_below_it_and_its_epoch_goes_on(urls):
    with closing(open_store(urls[0])) as store:
        late = store.claim(STATE, "two", "shop")
        late.release()
        assert remove(store, STATE) == 2
        assert shown(store) == {STATE: ({}, 9, False), "position/shop/letters/0": ({"position": 1}, 7, False)}
        with pytest.raises(StateError, match="there is nothing at 'state/shop'"):
            remove(store, STATE)
        assert store.claim(STATE, "three", "shop").epoch == 10


@pytest.mark.parametrize("lines", [[], [{"multilang-state": 1}], [{"multilang-store": 2}]])
def test_another_file_is_refused(lines, tmp_path):
    with closing(open_store(f"sqlite://{tmp_path}/one.sqlite")) as store:
        with pytest.raises(StateError, match="its first line is not that of one"):
            load(store, iter(lines))
        for wrong in ({"place": "p"}, {"place": "p", "table": "t", "key": {}, "value": "v"}):
            with pytest.raises(StateError, match="line 2 is no row of a store"):
                load(store, iter([{"multilang-store": 1}, wrong]))
        assert not store.places("")


def test_the_commands_take_the_url_of_a_store(urls, tmp_path):
    assert multilang("state", "ls", urls[1]).stdout.endswith("nothing is stored\n")
    listed = multilang("state", "ls", urls[0])
    assert f"{STATE}/count-0" in listed.stdout
    assert "2 in data, 1 in head" in listed.stdout
    assert {each["place"] for each in json.loads(multilang("state", "ls", urls[0], "--json").stdout)["places"]} == {
        STATE, f"{STATE}/count-0", f"{STATE}/count-1", "position/shop/letters/0"
    }  # fmt: skip
    assert multilang("state", "get", urls[0], f"{STATE}/count-0", "moon").stdout == "data: 1\n"
    assert multilang("state", "get", urls[0], f"{STATE}/count-0", "sun").returncode == 1
    file = tmp_path / "all.jsonl"
    assert multilang("state", "export", urls[0], "-o", str(file)).returncode == 0
    assert multilang("state", "import", urls[1], str(file)).returncode == 0
    assert multilang("state", "rm", urls[1], STATE).returncode == 0
    assert f"{STATE}/count-0" not in multilang("state", "ls", urls[1]).stdout
    assert "there is nothing at" in multilang("state", "rm", urls[1], "state/shop/count-0").stderr
    wrong = multilang("state", "ls", "nowhere://x")
    assert wrong.returncode == 2
    assert "'nowhere' is no database that is known" in wrong.stderr
    secret = multilang("state", "ls", "redis://me:my-secret@127.0.0.1:1/0")
    assert secret.returncode == 2
    assert "my-secret" not in secret.stderr + secret.stdout


TOPOLOGY = """
from multilang import BasicBolt, TopologyBuilder
from multilang.state import PositionSpout

class Letters(PositionSpout):
    output_fields = ("letter",)

    def initialize(self, conf, context):
        self.at = 0

    def position(self):
        return self.at

    def seek(self, position):
        self.at = position

    def next_tuple(self):
        if self.at < 5:
            self.at += 1
            self.emit(["a"], tup_id=self.at)

    def exhausted(self):
        return self.at == 5

class Printed(BasicBolt):
    def process(self, tup):
        pass

builder = TopologyBuilder()
builder.set_spout("source", Letters())
builder.set_bolt("print", Printed()).shuffle_grouping("source")
topology = builder.build("letters")
"""


def test_a_topologys_positions_are_shown_and_removed(tmp_path):
    file = tmp_path / "letters.py"
    file.write_text(TOPOLOGY)
    conf = ["-c", f"multilang.store=sqlite://{tmp_path}/all.sqlite"]
    run = multilang("run", str(file), *conf)
    assert run.returncode == 0, run.stderr
    place = "position/letters/source/0"
    listed = json.loads(multilang("state", "ls", str(file), "--json", *conf).stdout)
    assert [(each["place"], each["used"]) for each in listed["places"]] == [(place, False)]
    shown = multilang("state", "ls", str(file), *conf).stdout
    assert f"{place}  1 in position" in shown
    assert multilang("state", "rm", str(file), place, *conf).returncode == 0
    assert json.loads(multilang("state", "ls", str(file), "--json", *conf).stdout)["places"][0]["rows"] == {}


def test_a_topologys_transactions_and_maps_are_shown(tmp_path):
    where = "examples/global_count.py"
    environment = {"MULTILANG_STATE_HOME": str(tmp_path)}
    assert multilang("run", where, **environment).returncode == 0
    places = json.loads(multilang("state", "ls", where, "--json", **environment).stdout)["places"]
    assert {each["place"].partition("/")[0] for each in places} == {"transactions", "map"}
    used, values = (
        next(each for each in places if each["place"].startswith(start)) for start in ("transactions", "map")
    )
    with closing(open_store(used["where"].replace("the SQLite file ", "sqlite://"))) as store:
        claim = store.claim(used["place"], "another", "global")
        refused = multilang("state", "rm", where, values["place"], **environment)
        claim.release()
    assert refused.returncode == 2
    assert "is in use by topology 'global'" in refused.stderr
    assert json.loads(multilang("state", "ls", where, "--json", **environment).stdout)["places"] == places
