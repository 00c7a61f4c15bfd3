"""A store of somebody's own: what it gets wrong is told by one error that names the method; the manual's store is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multilang.component.errors import ConfigError
from multilang.errors import LocalClusterError
from multilang.local import LocalCluster
from multilang.state import StateError
from multilang.state.providers import provider_of
from multilang.store import Store, WrongProviderError, open_store
from multilang.store.opening import is_url
from tests.cli.command import multilang
from tests.patience import patient
from tests.state.conftest import opened
from tests.state.test_admin import WHERE, options
from tests.state.topologies import topology, words_of
from tests.store import file_store
from tests.store.file_store import FileStore

PAGE = Path(__file__).parents[2] / "docs" / "state-providers.md"


async def asynchronous(*_):
    pass


def returning(value):
    return lambda *_: value


def texts(self, place, table):
    for key, value in FileStore.list(self, place, table):
        yield key.decode(), value.decode()


def without_super(self, url, conf, setting):
    self.folder = Path(url.partition(":")[2])


def failing(self, url, conf, setting):
    raise KeyError(url)


CASES = {
    "get without keys": ({"get": lambda self, place, table: []}, r"Faulty.get\(place, table\) is called as get\('place', 'table', \[b'key'\]\)"),
    "list with more": ({"list": lambda self, place, table, more: []}, r"Faulty.list\(place, table, more\) is called as list\('place', 'table'\)"),
    "write without merged": ({"compare_and_write": lambda self, place, expected, changes, cleared=(): True}, r"is called as compare_and_write\(.*multilang.store.Store has it, compare_and_write\(self, place"),
    "write async": ({"compare_and_write": asynchronous}, "compare_and_write is a coroutine function.*write `def`"),
    "close no method": ({"close": 5}, r"Faulty.close is 5 \(int\); define a method, as multilang.store.Store has it"),
    "get None": ({"get": returning(None)}, r"Faulty.get\('state/stateful.*\) returned None \(NoneType\); return a list with the value of each key"),
    "get one": ({"get": returning(b"1")}, r"Faulty.get\(.*\) returned b'1' \(bytes\); return a list"),
    "get too few": ({"get": returning([])}, r"Faulty.get\(.*\) returned \[\] \(list\); return a list"),
    "get texts": ({"get": returning(["x"])}, r"Faulty.get\(.*\) returned \['x'\] \(list\)"),
    "list None": ({"list": returning(None)}, r"Faulty.list\('state/stateful.*\) returned None .*yield \(key, value\) one by one"),
    "list keys": ({"list": returning([b"key"])}, r"Faulty.list\(.*\) gives b'key' \(bytes\); yield \(key, value\)"),
    "write None": ({"compare_and_write": returning(None)}, r"Faulty.compare_and_write\(...\) returned None .*return True when it is written"),
    "largest None": ({"largest": None}, r"Faulty.largest is None \(NoneType\); write a number"),
    "durable None": ({"durable": None}, "Faulty.durable is None .*write True or False"),
    "local text": ({"local": "no"}, r"Faulty.local is 'no' \(str\); write True or False"),
    "requires list": ({"requires": ["psycopg"]}, r"Faulty.requires is \['psycopg'\] \(list\); write what is imported"),
    "describe None": ({"describe": returning(None)}, r"Faulty.describe\(\) returned None .*a text for messages"),
    "no super": ({"__init__": without_super}, r"multilang.store '.*Faulty': call super\(\).__init__\(url, conf, setting\) first"),
    "init fails": ({"__init__": failing}, r"multilang.store '.*Faulty' can't be made: KeyError"),
}  # fmt: skip


def named(monkeypatch, kind, base=FileStore, **members):
    """A class that a conf can name."""
    found = type(kind, (base,), {**members, "__module__": __name__})
    monkeypatch.setitem(globals(), kind, found)
    return f"{__name__}.{kind}"


def conf_of(name, folder, **more):
    return {
        "topology.name": "stateful",
        "multilang.store": f"{name}:{folder}",
        "topology.state.checkpoint.interval.ms": 100,
        **more,
    }


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_is_wrong_is_reported_once_and_at_the_start(case, tmp_path, monkeypatch, caplog):
    members, says = CASES[case]
    conf = conf_of(named(monkeypatch, "Faulty", **members), tmp_path, **{"test.sentences": 10})
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises((StateError, ConfigError, LocalClusterError), match=says) as found,
    ):
        cluster.submit(topology).wait(timeout=patient(60))
    assert "Traceback" not in caplog.text
    assert "AttributeError" not in caplog.text
    assert caplog.text.count(str(found.value)) <= 1


def test_a_call_that_a_store_does_not_take_is_reported_by_the_command_without_a_traceback(tmp_path):
    shown = multilang("run", WHERE, *options(conf_of(f"{__name__}.Narrow", tmp_path)))
    assert shown.returncode == 2
    assert "Narrow.get(place) is called as get('place', 'table', [b'key'])" in shown.stderr
    assert "Traceback" not in shown.stderr


class Narrow(FileStore):
    def get(self, place):
        return []


def test_a_fault_in_a_store_at_the_start_is_reported_with_its_place(tmp_path, monkeypatch):
    def get(self, place, table, keys):
        return {}[keys[0]]

    conf = conf_of(named(monkeypatch, "Faulty", get=get), tmp_path)
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises(LocalClusterError, match=r"can't be started: KeyError in component.*(?s:.*), in get\b"),
    ):
        cluster.submit(topology)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nowhere.Store:/path", r"multilang.store: 'nowhere.Store' can't be imported"),
        ("collections.Counter:/path", r"'collections.Counter' is not a subclass of multilang.store.Store"),
        ("files:/path", r"'files' is no database that is known; use sqlite:.*or the dotted name of a subclass"),
        ("no url", r"which names no database; use sqlite:"),
        (5, r"multilang.store is '?5'?, which names no database"),
    ],
)
def test_a_url_of_no_store_is_reported_by_its_setting(url, says):
    with pytest.raises(ConfigError, match=says):
        provider_of({"topology.name": "stateful", "multilang.store": url})


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("sqlite:///shop/state.sqlite", True),
        ("shop.files.FileStore:/var/lib/shop", True),
        ("shop.files.FileStore:a.b", True),
        ("tests.store.file_store.FileStore:shop", True),
        ("tests.store.file_store.FileStore:", True),
        ("shop.files.Unknown:shop", False),
        ("shop.words:topology", False),
        ("shop.words:", False),
        ("words.py:topology", False),
        ("words.py:", False),
        ("words:topology", False),
        ("words", False),
        ("/shop.d/words.py:topology", False),
        ("./words.d/file.sqlite", False),
    ],
)
def test_a_url_is_told_from_a_path_and_from_a_topology(text, is_one):
    assert is_url(text) is is_one


def test_a_method_that_is_missing_is_named():
    with pytest.raises(ConfigError, match=r"Unfinished' can't be made: TypeError: Can't instantiate abstract class"):
        open_store(f"{__name__}.Unfinished:x")


class Unfinished(Store):
    pass


def get_texts(self, place, table, keys):
    found = FileStore.get(self, place, table, keys)
    return [each and each.decode() for each in found] if table == "data" else found


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"get": get_texts}, r"Later.get\(.*, \[b'\"sun\"'\]\) returned \['1'\] \(list\); return"),
        ({"list": texts}, r"Later.list\(.*\) gives \('\"moon\"', '1'\) \(tuple\); yield \(key, value\), both in bytes"),
    ],
)
def test_what_a_store_answers_wrongly_later_is_reported_when_it_comes(tmp_path, monkeypatch, members, says):
    conf = conf_of(named(monkeypatch, "Later", **members), tmp_path, **{"multilang.state.cache.keys": 0})
    found = provider_of(conf)
    state = opened(found, "count-0")
    state.put("moon", 1)
    state.put("sun", 1)
    state.commit()
    state.rollback()
    with pytest.raises(WrongProviderError, match=says):
        state.get("sun")
    state.close()
    found.close()


def test_places_that_are_no_texts_are_reported(tmp_path, monkeypatch):
    found = provider_of(conf_of(named(monkeypatch, "Placeless", places=returning(None)), tmp_path))
    with pytest.raises(
        WrongProviderError, match=r"Placeless.places\('state/stateful/'\) returned None .*list of texts"
    ):
        found.namespaces()
    found.close()


def test_a_fault_inside_of_a_users_method_is_not_taken_for_damaged_rows(tmp_path, monkeypatch):
    def get(self, place, table, keys):
        raise LookupError("a fault of the user's")

    conf = conf_of(named(monkeypatch, "Failing", get=get), tmp_path)
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises(Exception, match="a fault of the user's") as found,
    ):
        cluster.submit(topology).wait(timeout=patient(60))
    assert "damaged" not in str(found.value)


def test_the_serializers_and_the_cache_that_the_conf_names_are_used(tmp_path):
    conf = conf_of("tests.store.file_store.FileStore", tmp_path, **{"multilang.state.cache.keys": 0})
    conf["topology.state.provider.config"] = {"valueSerializerClass": "tests.state.test_providers.Text"}
    found = provider_of(conf)
    state = opened(found, "count-0")
    state.put("moon", 7)
    state.prepare_commit(1)
    assert state.store.load(b'"moon"') == b"7"
    assert state.get("moon") == "7"  # nothing is kept in memory
    state.close()
    found.close()


def test_the_manual_has_the_store_that_is_tested():
    code = Path(file_store.__file__).read_text(encoding="utf-8")
    assert f"```python\n{code}```\n" in PAGE.read_text(encoding="utf-8")


def test_the_manuals_store_is_used_by_the_command(tmp_path):
    conf = conf_of("tests.store.file_store.FileStore", tmp_path / "store")
    shown = multilang("run", WHERE, "--until-drained", *options({**conf, "test.sentences": 50}))
    assert shown.returncode == 0, shown.stderr
    assert f"folder {tmp_path}" in multilang("state", "ls", WHERE, *options(conf)).stdout
    assert multilang("state", "get", WHERE, "count", "moon", *options(conf)).stdout == f"{words_of(50)['moon']}\n"
    exported = multilang("state", "export", WHERE, *options(conf)).stdout
    assert multilang("state", "reshard", WHERE, "count", "5", *options(conf)).returncode == 0
    moved = [json.loads(line) for line in multilang("state", "export", WHERE, *options(conf)).stdout.splitlines()]
    assert moved[0]["tasks"]["count"] == 5
    assert {(line["key"], line["value"]) for line in moved[1:] if line["namespace"].startswith("count")} == {
        (line["key"], line["value"])
        for line in map(json.loads, exported.splitlines()[1:])
        if line["namespace"].startswith("count")
    }
    file = tmp_path / "exported"
    file.write_text(exported)
    assert multilang("state", "import", WHERE, str(file), "--replace", *options(conf)).returncode == 0
    assert multilang("state", "export", WHERE, *options(conf)).stdout == exported


def test_the_command_shows_all_of_a_users_store_whose_class_is_in_the_current_folder(tmp_path):
    (tmp_path / "files.py").write_text(Path(file_store.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    url = f"files.FileStore:{tmp_path / 'store'}"
    store = FileStore(url)
    store.compare_and_write("a/b", {}, {"t": {b"moon": b"1"}})
    store.close()
    shown = multilang("state", "ls", url, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "a/b  1 in t" in shown.stdout
    assert multilang("state", "get", url, "a/b", "moon", cwd=tmp_path).stdout == "t: 1\n"
    exported = tmp_path / "rows.jsonl"
    assert multilang("state", "export", url, "-o", exported, cwd=tmp_path).returncode == 0
    assert multilang("state", "import", f"{url}2", exported, cwd=tmp_path).returncode == 0
    assert FileStore(f"{url}2").get("a/b", "t", [b"moon"]) == [b"1"]
    assert multilang("state", "rm", url, "a/b", cwd=tmp_path).returncode == 0
    assert FileStore(url).places("") == []
