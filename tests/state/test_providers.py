"""Every provider's key-value state keeps Storm's rules for prepare, commit and rollback."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.protocol.codec import loads
from multilang.state import FencedError, KeyValueState, Serializer, StateError, StateProvider
from multilang.state.providers import provider_of
from tests.state.conftest import opened


class Upper(Serializer):
    """Keys as people write them."""

    def encode(self, value):
        return value.upper().encode()

    def decode(self, data):
        return data.decode().lower()


class Text(Serializer):
    def encode(self, value):
        return str(value).encode()

    def decode(self, data):
        return data.decode()


class Own(StateProvider):
    def new_state(self, namespace):
        return OwnState(namespace, self.config)


class OwnState(KeyValueState):
    def __init__(self, namespace, config):
        self.namespace, self.config, self.content = namespace, config, {}

    def get(self, key, default=None):
        return self.content.get(key, default)

    def put(self, key, value):
        self.content[key] = value

    def delete(self, key):
        return self.content.pop(key, None)

    def items(self):
        return iter(self.content.items())

    def prepare_commit(self, txid):
        pass

    def commit(self, txid=None):
        pass

    def rollback(self):
        pass


def test_what_is_put_is_got_deleted_and_iterated(provider):
    state = opened(provider, "count-0")
    assert state.get("moon") is None
    assert state.get("moon", 7) == 7
    state.put("moon", 1)
    state.put("sun", {"of": ["two", 2, None, 1.5], "é": True})
    state.put(("a", 1), "tuple")
    state.put(3, -(2**63))
    assert (state.get("moon"), state.get("sun")["é"], state.get(("a", 1)), state.get(3)) == (1, True, "tuple", -(2**63))
    assert dict(state) == dict(state.items()) == {
        "moon": 1, "sun": {"of": ["two", 2, None, 1.5], "é": True}, ("a", 1): "tuple", 3: -(2**63)
    }  # fmt: skip
    assert state.delete("moon") == 1
    assert state.delete("moon") is None
    assert state.get("moon", 0) == 0
    assert "moon" not in dict(state)


def steps_of(state):
    """Everything that writes, by name."""
    return {
        "prepare": lambda: state.prepare_commit(7),
        "commit": lambda: state.commit(6),
        "commit at once": state.commit,
        "rollback": state.rollback,
        "claim": lambda: state.claim(1),
    }


@pytest.mark.parametrize("step", ["prepare", "commit", "commit at once", "rollback", "claim"])
def test_who_was_taken_over_from_can_write_nothing(durable, step):
    provider = provider_of(durable)
    old = opened(provider, "count-0")
    old.put("moon", 1)
    old.prepare_commit(5)
    old.commit(5)
    old.put("moon", 2)
    old.prepare_commit(6)
    new = opened(provider_of(durable), "count-0")
    new.rollback()
    new.put("moon", 10)
    new.prepare_commit(6)
    old.put("moon", 3)
    with pytest.raises(FencedError, match=r"'count-0'.* taken over"):
        steps_of(old)[step]()
    assert new.store.txids() == (5, 6)
    new.commit(6)
    assert dict(provider.new_state("count-0")) == {"moon": 10}


def test_of_several_that_claim_at_once_one_can_write(durable):
    for turn in range(20):
        providers = [provider_of(durable) for _ in range(4)]
        states = [each.new_state("count-0") for each in providers]
        together = threading.Barrier(len(states))

        def go_on(number, turn=turn, states=states, providers=providers, together=together):
            together.wait()
            try:
                states[number].claim(providers[number].claim())
                seen = states[number].get("last", -1)
                states[number].put("last", seen + 1)
                states[number].put("by", number)
                states[number].commit()
            except FencedError:
                return None
            return seen

        with ThreadPoolExecutor(len(states)) as pool:
            did = [*pool.map(go_on, range(len(states)))]
        for each in (*states, *providers):
            each.close()
        provider = provider_of(durable)
        state = opened(provider, "count-0")
        before = dict(state)["last"] - sum(seen is not None for seen in did)
        assert sorted(seen for seen in did if seen is not None) == [*range(before, dict(state)["last"])]
        state.close()
        provider.close()


def test_nothing_is_written_before_it_is_claimed(durable):
    provider = provider_of(durable)
    state = provider.new_state("count-0")
    assert dict(state) == {}  # to look is free
    state.put("moon", 1)
    with pytest.raises(StateError, match="before it was claimed"):
        state.prepare_commit(1)
    state.claim(provider.claim())
    state.prepare_commit(1)
    provider.close()


def test_a_claim_is_read_anew(durable):
    first, second = provider_of(durable), provider_of(durable)
    early = second.new_state("count-0")
    late = opened(first, "count-0")
    late.put("moon", 1)
    late.commit()
    early.claim(second.claim())
    assert early.get("moon") == 1
    first.close()
    second.close()


def test_what_is_not_committed_is_undone_by_a_rollback(provider):
    state = opened(provider, "count-0")
    state.put("kept", 1)
    state.put("changed", 1)
    state.put("deleted", 1)
    state.prepare_commit(1)
    state.commit(1)
    state.put("changed", 2)
    state.delete("deleted")
    state.put("new", 1)
    state.prepare_commit(2)
    state.put("newer", 1)
    assert dict(state) == {"kept": 1, "changed": 2, "new": 1, "newer": 1}
    state.rollback()
    assert dict(state) == {"kept": 1, "changed": 1, "deleted": 1}
    assert state.get("new") is None
    state.put("changed", 3)
    state.prepare_commit(2)
    state.commit(2)
    state.rollback()
    assert dict(state) == {"kept": 1, "changed": 3, "deleted": 1}


def test_what_is_put_after_a_prepare_is_no_part_of_it(provider):
    state = opened(provider, "count-0")
    state.put("moon", 1)
    state.prepare_commit(1)
    state.put("moon", 2)
    state.commit(1)
    assert state.get("moon") == 2
    state.rollback()
    assert state.get("moon") == 1


def test_a_state_that_is_rolled_back_before_any_commit_is_empty(provider):
    state = opened(provider, "count-0")
    state.put("moon", 1)
    state.prepare_commit(0)
    state.rollback()
    assert dict(state) == {}
    state.put("moon", 5)
    state.prepare_commit(0)
    state.commit(0)
    assert state.get("moon") == 5


def test_preparing_again_adds_to_what_is_prepared(provider):
    state = opened(provider, "count-0")
    state.put("moon", 1)
    state.put("sun", 1)
    state.prepare_commit(1)
    state.put("sun", 2)
    state.prepare_commit(1)
    state.commit(1)
    state.rollback()
    assert dict(state) == {"moon": 1, "sun": 2}


def test_transactions_go_forward_only(provider):
    state = opened(provider, "count-0")
    state.prepare_commit(5)
    with pytest.raises(StateError, match="where 5 is prepared"):
        state.commit(6)
    state.commit(5)
    state.commit(5)  # repeated after a failure
    with pytest.raises(StateError, match="5 is committed already"):
        state.prepare_commit(5)
    with pytest.raises(StateError, match="5 is committed already"):
        state.commit(4)
    state.prepare_commit(6)


def test_a_commit_without_a_prepare_is_taken(provider):
    state = opened(provider, "count-0")
    state.commit(3)
    assert dict(state) == {}


def test_a_commit_under_no_transaction_saves_at_once(provider):
    state = opened(provider, "$checkpointspout-0")
    state.put("__state", [4, "COMMITTING"])
    state.put("__gone", 1)
    state.commit()
    state.delete("__gone")
    state.commit()
    state.rollback()
    assert dict(state) == {"__state": [4, "COMMITTING"]}


def test_namespaces_are_apart(provider):
    one, other = opened(provider, "count-0"), opened(provider, "count-1")
    one.put("moon", 1)
    one.prepare_commit(1)
    one.commit(1)
    assert other.get("moon") is None
    assert dict(other) == {}


@pytest.mark.parametrize(
    ("key", "value", "error", "says"),
    [
        (1.5, 1, TypeError, "a key of a state"),
        (True, 1, TypeError, "a key of a state"),
        (("a", None), 1, TypeError, "a key of a state"),
        ("moon", None, ValueError, "delete"),
        ("moon", float("nan"), ValueError, "nan"),
        ("moon", 2**64, ValueError, "64"),
        ("moon", {1: 2}, ValueError, "string keys"),
        ("moon", {"deep": [object()]}, ValueError, "object"),
        ("moon", "\ud800", ValueError, "surrogate"),
        ("\ud800", 1, ValueError, "surrogate"),
        ("moon", b"bytes", ValueError, "bytes"),
    ],
)
def test_what_can_not_be_saved_is_refused_where_it_is_put(provider, key, value, error, says):
    state = opened(provider, "count-0")
    with pytest.raises(error, match=says):
        state.put(key, value)
    assert dict(state) == {}
    state.prepare_commit(1)


def test_what_is_done_to_a_value_after_its_put_is_saved_by_the_next_put(provider):
    state = opened(provider, "count-0")
    value = ["a"]
    state.put("list", value)
    value.append("b")
    state.prepare_commit(1)
    state.commit(1)
    state.rollback()
    assert state.get("list") == ["a"]


def test_another_task_finds_what_was_committed_and_what_was_prepared(durable):
    first = provider_of(durable)
    state = opened(first, "count-0")
    for word in ("moon", "sun", "star"):
        state.put(word, 1)
    state.prepare_commit(1)
    state.commit(1)
    state.put("moon", 2)
    state.delete("sun")
    state.prepare_commit(2)
    state.put("star", 99)
    state.close()
    first.close()
    second = provider_of(durable)
    again = opened(second, "count-0")
    assert second.txids("count-0") == (1, 2)
    assert dict(again) == {"moon": 2, "star": 1}
    again.commit(2)
    again.rollback()
    assert dict(again) == {"moon": 2, "star": 1}
    again.close()
    second.close()


@pytest.mark.parametrize("cached", [0, 3, 100_000])
def test_keys_that_memory_does_not_hold_are_read_when_they_are_asked_for(durable, cached):
    found = provider_of({**durable, "multilang.state.cache.keys": cached})
    state = opened(found, "count-0")
    for n in range(50):
        state.put(n, n * n)
        if n % 7 == 0:
            state.prepare_commit(n)
        if n % 14 == 0:
            state.commit(n)
    state.delete(10)
    assert [state.get(n) for n in range(50)] == [None if n == 10 else n * n for n in range(50)]
    assert state.get(50) is None
    assert dict(state) == {n: n * n for n in range(50) if n != 10}
    state.close()
    again = opened(found, "count-0")  # what was put after the last prepare is not there
    assert dict(again) == {n: n * n for n in range(50)}
    state = again
    again.rollback()
    assert dict(again) == {n: n * n for n in range(43)}
    assert again.get(49) is None
    state.close()
    found.close()


@pytest.mark.parametrize("cached", [0, 3, 100_000])
def test_an_iteration_shows_each_key_once_whatever_is_done_meanwhile(durable, cached):
    found = provider_of({**durable, "multilang.state.cache.keys": cached})
    state = opened(found, "count-0")
    for n in range(20):
        state.put(n, n)
    state.prepare_commit(0)
    state.commit(0)
    state.rollback()
    seen = {}
    for key, value in state:
        assert key not in seen
        seen[key] = value
        assert state.get(19 - key) == 19 - key
        assert state.get(("none", key)) is None
        if key % 3 == 0:
            state.put(("new", key), key)
    assert seen == {n: n for n in range(20)}
    for key, _ in state:
        state.delete(key)
    assert dict(state) == {}
    state.close()
    found.close()


def test_an_iteration_goes_on_across_checkpoints_of_all_tasks(durable):
    keys = 12_000  # more than a store reads at once
    found = provider_of({**durable, "multilang.state.cache.keys": 0})
    state, other = opened(found, "count-0"), opened(found, "count-1")
    for n in range(keys):
        state.put(n, n)
    state.prepare_commit(0)
    state.commit(0)
    seen = []
    rows = state.items()
    for txid in (1, 2, 3):
        seen += [next(rows)[0] for _ in range(100)]
        for each in (other, state):
            each.put("last", txid)
            each.prepare_commit(txid)
            if txid == 2:
                each.rollback()
            else:
                each.commit(txid)
    seen += [key for key, _ in rows if key != "last"]
    assert sorted(seen) == list(range(keys))
    for each in (other, state):
        assert each.get("last") == 3
        each.close()
    found.close()


@pytest.mark.parametrize("cached", [0, 100_000])
def test_what_others_wrote_is_told_with_its_place(durable, cached):
    config = loads(durable["topology.state.provider.config"]) if "Redis" in durable["topology.state.provider"] else None
    config = config or durable["topology.state.provider.config"]
    texts = {**durable, "topology.state.provider.config": {**config, "valueSerializerClass": f"{__name__}.Text"}}
    found = provider_of(texts)
    state = opened(found, "count-0")
    state.put("moon", "as it is")
    state.prepare_commit(0)
    state.commit(0)
    state.close()
    found.close()
    found = provider_of({**durable, "multilang.state.cache.keys": cached})
    with pytest.raises(
        StateError, match=r"'count-0' has the key b'\"moon\"' with the value b'as it is'.*JsonSerializer"
    ):
        opened(found, "count-0").get("moon")
    found.close()


def test_what_a_provider_stores_is_listed_and_replaced(durable):
    found = provider_of(durable)
    assert found.namespaces() == []
    for index in range(3):
        state = opened(found, f"count-{index}")
        state.put("moon", index)
        state.prepare_commit(1)
        state.commit(1)
        state.put("moon", 99)
        state.prepare_commit(2)
        state.close()
    assert found.namespaces() == ["count-0", "count-1", "count-2"]
    found.replace({"count-0": {"sun": 1, 2: 3}, "count-1": {}})
    contents = {}
    for name in found.namespaces():
        state = opened(found, name)
        contents[name] = dict(state)
        state.close()
    assert contents == {"count-0": {"sun": 1, 2: 3}, "count-2": {"moon": 99}}
    state = opened(found, "count-0")
    state.prepare_commit(0)
    state.close()
    found.close()


def test_serializers_of_ones_own_are_used(durable):
    config = durable["topology.state.provider.config"]
    own = {"keySerializerClass": f"{__name__}.Upper", "valueSerializerClass": f"{__name__}.Text"}
    if isinstance(config, dict):
        conf = {**durable, "topology.state.provider.config": {**config, **own}}
    else:
        import ujson

        conf = {**durable, "topology.state.provider.config": ujson.dumps({**ujson.loads(config), **own})}
    found = provider_of(conf)
    state = opened(found, "count-0")
    state.put("moon", "1")
    state.prepare_commit(1)
    assert state.store.load(b"MOON") == b"1"
    state.rollback()
    with pytest.raises(ValueError, match="at least one"):
        state.put("moon", "")
    state.close()
    found.close()


def test_the_classes_of_keys_and_values_that_storm_has_are_ignored(conf):
    config = conf.get("topology.state.provider.config") or {}
    config = loads(config) if isinstance(config, str) else config
    classes = {"keyClass": "java.lang.String", "valueClass": "org.example.NoSuchClass"}
    found = provider_of({**conf, "topology.state.provider.config": {**config, **classes}})
    state = opened(found, "count-0")
    state.put(("a", 1), {"any": ["value", 1, None]})
    state.commit()
    state.rollback()
    assert state.get(("a", 1)) == {"any": ["value", 1, None]}
    state.close()
    found.close()


def test_a_provider_of_ones_own_is_found_by_its_name():
    conf = {"topology.state.provider": f"{__name__}.Own", "topology.state.provider.config": '{"where": "there"}'}
    found = provider_of(conf)
    assert isinstance(found, Own)
    assert found.new_state("count-0").config == {"where": "there"}
    assert found.namespaces() == []
    with pytest.raises(StateError, match="Own can't replace"):
        found.replace({})


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"topology.state.provider": "nowhere.Provider"}, "nowhere"),
        ({"topology.state.provider": "org.apache.storm.hbase.state.HBaseKeyValueStateProvider"}, "HBase"),
        ({"topology.state.provider": ".nowhere.Provider"}, "'.nowhere.Provider' can't be imported"),
        ({"topology.state.provider": "multilang.state.names.STREAM"}, "not a subclass"),
        ({"topology.state.provider": 5}, "dotted name"),
        ({"topology.state.provider.config": "{"}, "not JSON"),
        ({"topology.state.provider.config": "[1]"}, "JSON object"),
        ({"topology.state.provider": "sqlite", "topology.state.provider.config": {"file": "x"}}, "'file'"),
        ({"topology.state.provider": "sqlite", "topology.state.provider.config": {"path": 1}}, "path is 1"),
        ({"topology.state.provider": "memory", "topology.state.provider.config": {"path": "x"}}, "'path'"),
        (
            {"topology.state.provider": "redis", "topology.state.provider.config": {"jedisPoolConfig": {"hots": "x"}}},
            "'hots'",
        ),
        (
            {"topology.state.provider": "redis", "topology.state.provider.config": {"jedisPoolConfig": {"port": "x"}}},
            "port is 'x'",
        ),
        ({"topology.state.provider": "redis", "topology.state.provider.config": {"jedisPoolConfig": 5}}, "an object"),
        (
            {"topology.state.provider": "redis", "topology.state.provider.config": {"jedisPoolConfig": {"host": 5}}},
            "host is 5; use text",
        ),
        ({"topology.state.provider": "sqlite", "topology.state.provider.config": {"path": "a\0b"}}, "path is 'a"),
        (
            {
                "topology.state.provider": "sqlite",
                "topology.state.provider.config": {"valueSerializerClass": ".nowhere.Values"},
            },
            "valueSerializerClass '.nowhere.Values' can't be imported",
        ),
        (
            {
                "topology.state.provider": "sqlite",
                "topology.state.provider.config": {"keySerializerClass": "nowhere.Keys"},
            },
            "keySerializerClass",
        ),
        (
            {
                "topology.state.provider": "sqlite",
                "topology.state.provider.config": {"valueSerializerClass": "collections.Counter"},
            },
            "not a subclass",
        ),
    ],
)
def test_a_wrong_setting_is_named(conf, says):
    with pytest.raises(ConfigError, match=says):
        provider_of({"topology.name": "stateful", **conf})


def test_unless_told_otherwise_state_is_in_a_file_here_and_in_memory_on_storm(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    here = provider_of({"multilang.parent": "local", "topology.name": "word-count"})
    assert here.describe() == f"SQLite file {tmp_path}/word-count.sqlite"
    assert provider_of({"topology.name": "word count"}).describe().startswith("memory")


def test_no_two_topologies_have_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    names = ["a b", "a-b", "a_b", "a/b", "a%20.b", "a.b", "..", "ä", "a\nb"]
    paths = [provider_of({"multilang.parent": "local", "topology.name": name}).path for name in names]
    assert len(set(paths)) == len(names)
    for name in names:
        provider = provider_of({"multilang.parent": "local", "topology.name": name})
        state = opened(provider, "count-0")
        assert state.get("name") is None
        state.put("name", name)
        state.commit()
        state.close()
        provider.close()
    assert sorted(str(path) for path in tmp_path.glob("*.sqlite")) == sorted(paths)


@pytest.mark.parametrize("deep", [400, 5000])
@pytest.mark.parametrize("kind", [list, dict])
def test_what_is_nested_too_deeply_is_refused_where_it_is_put(provider, kind, deep):
    state = opened(provider, "count-0")
    value = kind()
    for _ in range(deep):
        value = [value] if kind is list else {"a": value}
    with pytest.raises(ValueError, match="can't be saved as JSON: nested deeper than 300 levels"):
        state.put("moon", value)
    assert state.get("moon") is None


class Level(IntEnum):
    LOW = 1


class Word(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int
    b: list[int]


LEAVES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5),
    st.just(Level.LOW), st.builds(Word, st.text(max_size=3)), st.builds(Pair, st.integers(0, 9), st.lists(st.just(1), max_size=2)),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=6,
)


def kinds(value):
    """A value with the type of everything in it."""
    if isinstance(value, list | tuple):
        return type(value), [kinds(each) for each in value]
    if isinstance(value, dict):
        return type(value), [(type(key), key, kinds(each)) for key, each in value.items()]
    return type(value), repr(value)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, min_size=1, max_size=8))
def test_a_value_has_the_same_type_before_and_after_a_task_is_started_again(provider, values):
    state = opened(provider, "count-0")
    for number, value in enumerate(values):
        state.put(number, value)
    live = {key: kinds(value) for key, value in state.items()}
    state.commit()
    state.rollback()  # what is in memory is read again, as another task would
    assert {key: kinds(state.get(key)) for key in live} == live
    for key in live:
        state.delete(key)
    state.commit()
    state.close()
