"""A provider of somebody's own: what it gets wrong is told at the start, in one sentence that names it."""

from __future__ import annotations

import pytest

from multilang.component.errors import ConfigError
from multilang.errors import LocalClusterError
from multilang.local import LocalCluster
from multilang.state import StateError
from multilang.state.admin import StoredStates
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
def test_a_provider_that_gives_the_wrong_thing_is_reported_once_and_at_the_start(kind, says, mode, request, caplog):
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


def test_a_provider_that_is_no_provider_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"JsonState' is not a subclass"):
        provider_of(conf_of(JsonState, "none"))
