"""A provider of somebody's own: what it gets wrong is told at the start, in one sentence that names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multilang.component.errors import ConfigError
from multilang.local import LocalCluster
from multilang.local.errors import LocalClusterError
from multilang.state import OwnedPlace, Owner, StateError, StateProvider, StoredState
from multilang.state.admin import StoredStates
from multilang.state.memory import MemoryStore
from multilang.state.providers import provider_of
from tests.cli.command import multilang
from tests.patience import patient
from tests.state.own_providers import (
    Asynchronous,
    ClaimsNothing,
    Forgetful,
    GetsNothing,
    Json,
    JsonState,
    Needs,
    NoMethod,
    OnlyItsOwn,
    ReturnsADict,
    ReturnsNothing,
    Texts,
    Unfinished,
    WithoutDefault,
    WithoutNamespace,
    WithoutTransaction,
)
from tests.state.test_admin import WHERE, options
from tests.state.topologies import topology, words_of


def conf_of(kind, name, **more):
    module = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return {
        "topology.name": "stateful",
        "topology.state.provider": module,
        "topology.state.provider.config": {"name": name},
        "topology.state.checkpoint.interval.ms": 100,
        **more,
    }


def test_a_provider_that_only_makes_states_serves_a_topology_and_what_looks_at_it():
    conf = conf_of(Json, "least", **{"test.sentences": 100})
    for _ in range(2):
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(topology).wait(timeout=patient(60))
    stored = StoredStates(topology, conf)
    assert sorted(stored.namespaces()) == ["count-0", "count-1", "lengths-0"]
    assert stored.get("count", "moon") == 2 * words_of(100)["moon"]
    assert stored.position()[1] == "COMMITTED"
    assert sum(1 for line in stored.export() if line.get("namespace", "").startswith("count")) == len(words_of(100))
    with pytest.raises(StateError, match=r"Json can't replace what it stores: define replace"):
        stored.reshard("count", 3)
    stored.close()


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (
            ReturnsADict,
            r"ReturnsADict.new_state\('\$checkpointspout-0'\) returned {} \(dict\); return a multilang.state.Key",
        ),
        (ReturnsNothing, r"ReturnsNothing.new_state\('\$checkpointspout-0'\) returned None"),
        (WithoutTransaction, r"_State.commit\(txid\) is called as commit\(\), .* commit\(self, txid.* = None\)"),
        (WithoutDefault, r"_State.get\(key\) is called as get\('key', None\)"),
        (Asynchronous, r"prepare_commit is a coroutine function.*write `def`"),
        (NoMethod, r"NoMethod.claim is 5 \(int\); define a method"),
        (WithoutNamespace, r"WithoutNamespace.new_state\(\) is called as new_state\('count-0'\)"),
        (ClaimsNothing, r"ClaimsNothing.claim\(\) returned None.*the owner's epoch"),
        (
            Forgetful,
            r"Forgetful says that it is durable, and a second state of '\$checkpointspout-0' gives None.*durable = False",
        ),
        (
            GetsNothing,
            r"GetsNothing: the state of '\$checkpointspout-0' gives None .* for '__tasks', where {'count': 2,.* was put",
        ),
        (Texts, r"Texts: the state of '\$checkpointspout-0' gives '{\".*}' \(str\) for '__tasks'"),
        (Unfinished, r"Unfinished' can't be made: TypeError: Can't instantiate abstract class"),
        (Needs, r"Needs' can't be made: KeyError: 'folder'"),
        (OnlyItsOwn, r"call super\(\).__init__\(config, conf\) first"),
    ],
)
@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_provider_that_gives_the_wrong_thing_is_told_once_and_at_the_start(kind, says, mode, request, caplog):
    conf = conf_of(kind, request.node.name, **{"test.sentences": 10})
    with (
        LocalCluster(mode=mode, conf=conf) as cluster,
        pytest.raises((StateError, ConfigError, LocalClusterError), match=says) as found,
    ):
        cluster.submit(topology).wait(timeout=patient(60))
    assert "AttributeError" not in caplog.text
    assert caplog.text.count(str(found.value)) <= 1


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (ReturnsADict, "returned {} (dict); return a multilang.state.KeyValueState"),
        (Unfinished, "can't be made: TypeError: Can't instantiate abstract class Unfinished"),
    ],
)
def test_the_command_tells_it_too(kind, says):
    shown = multilang("state", "ls", WHERE, *options(conf_of(kind, "command")))
    assert shown.returncode == 2
    assert says in shown.stderr
    assert "Traceback" not in shown.stderr


class Lists(Json):
    def new_state(self, namespace):
        state = super().new_state(namespace)
        state.items = lambda: state.live
        return state

    def namespaces(self):
        return ("count-0",) if self.config["name"] == "tuple" else ["count-0"]

    def txids(self, namespace):
        return 5


def test_what_is_listed_wrongly_is_named():
    with pytest.raises(
        StateError, match=r"Lists.namespaces\(\) returned \('count-0',\) \(tuple\); return a list of texts"
    ):
        StoredStates(topology, conf_of(Lists, "tuple")).namespaces()
    stored = StoredStates(topology, conf_of(Lists, "lists"))
    with pytest.raises(StateError, match=r"Lists.txids\('count-0'\) returned 5 \(int\); return the transactions"):
        stored.txids("count-0")
    state = stored.provider.new_state("count-0")
    state.put("moon", 1)
    state.commit()
    with pytest.raises(
        StateError, match=r"items\(\) of the state 'count-0' gives 'moon' \(str\); it gives \(key, value\)"
    ):
        stored.size("count-0")
    stored.close()


class Bookkeeping(StateProvider):
    """In memory, with an owner."""

    durable = False
    owners: dict[str, Owner] = {}

    def new_state(self, namespace):
        return self.stored(namespace, MemoryStore(namespace))

    def place(self):
        return Book(self.config["name"])


class Book(OwnedPlace):
    def __init__(self, name):
        self.name = name

    def owner(self):
        return Bookkeeping.owners.get(self.name)

    def replace(self, epoch, owner):
        before = self.owner()
        if (before.epoch if before else 0) != epoch:
            return False
        Bookkeeping.owners[self.name] = Owner.from_text(owner.text())
        return True

    def beats(self):
        return None

    def beat(self, epoch):
        return True

    def describe(self):
        return f"the book {self.name}"


def test_a_provider_that_names_a_place_has_an_owner_there():
    conf = conf_of(Bookkeeping, "one", **{"storm.id": "run"})
    first = provider_of(conf)
    assert first.epoch == 0
    assert (first.claim(), first.claim(), first.epoch) == (1, 1, 1)
    first.close()
    assert Bookkeeping.owners["one"].ended
    again = provider_of(conf)
    again.check_free()
    assert (again.claim(), again.epoch) == (2, 2)
    again.close()


def test_a_state_in_front_of_a_store_has_the_serializers_and_the_cache_that_the_conf_names():
    conf = conf_of(Bookkeeping, "two", **{"multilang.state.cache.keys": 0})
    conf["topology.state.provider.config"]["valueSerializerClass"] = "tests.state.test_providers.Text"
    state = provider_of(conf).new_state("count-0")
    assert isinstance(state, StoredState)
    state.claim(1)
    state.put("moon", 7)
    state.prepare_commit(1)
    assert state.store.load(b'"moon"') == b"7"
    assert state.get("moon") == "7"  # nothing is kept in memory


def test_a_provider_that_is_no_provider_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"JsonState' is not a subclass"):
        provider_of(conf_of(JsonState, "none"))


def test_the_manual_runs_its_provider_by_the_command(tmp_path):
    conf = conf_of("tests.state.files_provider.FilesProvider", "files")
    conf["topology.state.provider.config"] = {"path": str(tmp_path)}
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
    (file,) = [Path(tmp_path / "exported")]
    file.write_text(exported)
    assert multilang("state", "import", WHERE, str(file), "--replace", *options(conf)).returncode == 0
    assert multilang("state", "export", WHERE, *options(conf)).stdout == exported
