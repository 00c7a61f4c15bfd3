"""A store or a place of somebody's own, as the manual has them: what it gets wrong is told at the start, in one sentence."""

from __future__ import annotations

import pytest

from multilang.component.errors import ConfigError
from multilang.local import LocalCluster
from multilang.local.errors import LocalClusterError
from multilang.state import StateError, StoredState
from multilang.state.errors import WrongProviderError
from multilang.state.memory import MemoryStore
from multilang.state.owner import claim
from tests.patience import patient
from tests.state.files_provider import FilesProvider, FileStore, Folder, FolderPlace
from tests.state.test_own_provider import conf_of
from tests.state.topologies import topology


async def asynchronous(*_):
    pass


def returning(value):
    return lambda *_: value


def texts(self):
    for key, value in FileStore.scan(self):
        yield key.decode(), value.decode()


STORES = {
    "prepare without rows": ({"prepare": lambda self, txid: None}, r"Faulty.prepare\(txid\) is called as prepare\(0, \[\]\)"),
    "prepare async": ({"prepare": asynchronous}, "prepare is a coroutine function.*write `def`"),
    "write async": ({"write": asynchronous}, "write is a coroutine function.*write `def`"),
    "claim without epoch": ({"claim": lambda self: None}, r"Faulty.claim\(\) is called as claim\(1\)"),
    "rollback with txid": ({"rollback": lambda self, txid: None}, r"Faulty.rollback\(txid\) is called as rollback\(\)"),
    "close with more": ({"close": lambda self, more: None}, r"Faulty.close\(more\) is called as close\(\)"),
    "commit no method": ({"commit": 5}, r"Faulty.commit is 5 \(int\); define a method, as multilang.state.Store has it"),
    "count None": ({"count": returning(None)}, r"Faulty.count\(\) returned None \(NoneType\); return how many keys"),
    "count text": ({"count": returning("3")}, r"Faulty.count\(\) returned '3' \(str\); return how many keys"),
    "scan None": ({"scan": returning(None)}, r"Faulty.scan\(\) returned None .*give \(key, value\) one by one"),
    "scan keys": ({"scan": returning([b"key"])}, r"Faulty.scan\(\) gives b'key' \(bytes\); give \(key, value\)"),
    "scan texts": ({"scan": texts}, r"Faulty.scan\(\) gives \('\"__tasks\"', .*both in bytes as they were saved"),
    "load text": ({"load": returning("{}")}, r"Faulty.load\(b'.*'\) returned '{}' \(str\); return the value's bytes"),
    "load other": ({"load": returning(b"{}")}, r"Faulty.load\(b'.*'\) returned b'{}' \(bytes\) .*where scan\(\) gave"),
    "txids None": ({"txids": returning(None)}, r"Faulty.txids\(\) returned None .*two whole numbers, None for each"),
    "txids texts": ({"txids": returning(("1", "2"))}, r"Faulty.txids\(\) returned \('1', '2'\) \(tuple\)"),
    "largest None": ({"largest": None}, r"Faulty.largest is None \(NoneType\); write how many bytes"),
    "write nothing": ({"write": returning(None)}, r"FaultyStores says that it is durable, and a second state of .* gives None"),
}  # fmt: skip

PROVIDERS = {
    "place text": ({"place": returning("x")}, r"FaultyProvider.place\(\) returned 'x' \(str\); return a multilang.state.OwnedPlace"),
    "durable None": ({"durable": None}, "FaultyProvider.durable is None .*write True or False"),
    "local text": ({"local": "no"}, r"FaultyProvider.local is 'no' \(str\); write True or False"),
    "requires list": ({"requires": ["psycopg"]}, r"FaultyProvider.requires is \['psycopg'\] \(list\); write what is imported"),
    "describe None": ({"describe": returning(None)}, r"FaultyProvider.describe\(\) returned None .*a text for messages"),
}  # fmt: skip

PLACES = {
    "owner text": ({"owner": returning("x")}, r"Faulty.owner\(\) returned 'x' \(str\); return a multilang.state.Owner"),
    "replace None": ({"replace": returning(None)}, r"Faulty.replace\(\) returned None \(NoneType\); return True, or False"),
    "replace False": ({"replace": returning(False)}, r"Faulty.replace\(0, owner\) returned False 20 times, while owner\(\) gave None"),
    "replace nothing": ({"replace": returning(True)}, r"Faulty.replace\(0, owner\) returned True, and owner\(\) gives None"),
    "beat None": ({"beat": returning(None)}, r"Faulty.beat\(\) returned None \(NoneType\); return True, or False"),
    "beat False": ({"beat": returning(False)}, r"Faulty.beat\(1\) returned False, and the owner there has that epoch"),
    "beat without epoch": ({"beat": lambda self: True}, r"Faulty.beat\(\) is called as beat\(1\)"),
    "replace async": ({"replace": asynchronous}, "replace is a coroutine function"),
}  # fmt: skip


class NoStore:
    """By duck typing."""

    largest = 10


def faulty_stores(members):
    store = type("Faulty", (FileStore,), {**members, "__module__": __name__})

    class FaultyStores(FilesProvider):
        def new_state(self, namespace):
            return self.stored(namespace, store(self.folder, namespace))

    return FaultyStores


def faulty_places(members):
    place = type("Faulty", (FolderPlace,), {**members, "__module__": __name__})

    class FaultyPlaces(FilesProvider):
        def place(self):
            return place(self.folder)

    return FaultyPlaces


def faulty_provider(members):
    return type("FaultyProvider", (FilesProvider,), {**members, "__module__": __name__})


class ReturnsNoStore(FilesProvider):
    def new_state(self, namespace):
        return self.stored(namespace, NoStore())


CASES = {
    **{f"store: {name}": (faulty_stores(members), says) for name, (members, says) in STORES.items()},
    **{f"provider: {name}": (faulty_provider(members), says) for name, (members, says) in PROVIDERS.items()},
    **{f"place: {name}": (faulty_places(members), says) for name, (members, says) in PLACES.items()},
    "no store": (ReturnsNoStore, r"NoStore object.* is not a store: write `class NoStore\(Store\)`"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_store_or_place_that_is_wrong_is_told_once_and_at_the_start(case, tmp_path, monkeypatch, caplog):
    kind, says = CASES[case]
    monkeypatch.setitem(globals(), kind.__name__, kind)
    conf = conf_of(f"{__name__}.{kind.__name__}", "", **{"test.sentences": 10})
    conf["topology.state.provider.config"] = {"path": str(tmp_path)}
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises((StateError, ConfigError, LocalClusterError), match=says) as found,
    ):
        cluster.submit(topology).wait(timeout=patient(60))
    assert "Traceback" not in caplog.text
    assert "AttributeError" not in caplog.text
    assert caplog.text.count(str(found.value)) <= 1


class TextsForBolts(FilesProvider):
    """The checkpoint spout's state is right, those of the tasks are not."""

    def new_state(self, namespace):
        store = FileStore if namespace.startswith("$") else FaultyForBolts
        return self.stored(namespace, store(self.folder, namespace))


class FaultyForBolts(FileStore):
    def prepare(self, txid):
        pass


def test_the_store_of_a_task_is_looked_at_where_the_task_starts(tmp_path):
    conf = conf_of(TextsForBolts, "", **{"test.sentences": 10})
    conf["topology.state.provider.config"] = {"path": str(tmp_path)}
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises((StateError, LocalClusterError), match=r"FaultyForBolts.prepare\(txid\) is called as"),
    ):
        cluster.submit(topology).wait(timeout=patient(60))


def test_what_a_store_gives_wrongly_later_is_told_by_its_name_too():
    class Later(MemoryStore):
        def load(self, key):
            return super().load(key) and super().load(key).decode()

    state = StoredState("count-0", Later("count-0"), cached=0)
    state.claim(1)
    state.put("moon", "is up")
    state.commit()
    state.rollback()
    with pytest.raises(WrongProviderError, match=r"Later.load\(b'\"moon\"'\) returned '\"is up\"' \(str\); return the"):
        state.get("moon")


def test_a_place_that_somebody_else_claims_meanwhile_is_asked_again(tmp_path):
    class Contended(FolderPlace):
        losses = 3

        def replace(self, epoch, owner):
            if self.losses and not owner.ended:
                self.losses -= 1
                other = FolderPlace(self.folder)
                claim(other, "other", "other").release()
            return super().replace(epoch, owner)

    owned = claim(Contended(Folder(tmp_path)), "mine", "mine")
    assert owned.epoch == 4
    owned.release()
