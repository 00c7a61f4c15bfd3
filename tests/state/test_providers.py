"""Every provider's key-value state keeps Storm's rules for prepare, commit and rollback."""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.protocol.codec import loads
from multilang.state import KeyValueState, Serializer, StateError, StateProvider
from multilang.state.providers import provider_of
from multilang.testing.state_providers import KeyValueStateTests, StateProviderTests, opened
from tests.state.conftest import conf_of


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


class TestMemory(KeyValueStateTests):
    @pytest.fixture
    def conf(self, request, tmp_path):
        return conf_of("memory", request, tmp_path)


class TestEveryDurableProvider(StateProviderTests):
    @pytest.fixture
    def conf(self, durable):
        return {**durable, "storm.id": "one"}


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


def with_config(conf, **members):
    """The conf with more in its provider's config, which may be JSON text as in Storm."""
    config = conf.get("topology.state.provider.config") or {}
    config = loads(config) if isinstance(config, str) else config
    return {**conf, "topology.state.provider.config": {**config, **members}}


@pytest.mark.parametrize("cached", [0, 100_000])
def test_what_others_wrote_is_reported_with_its_place(durable, cached):
    texts = with_config(durable, valueSerializerClass=f"{__name__}.Text")
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


def test_serializers_of_ones_own_are_used(durable):
    own = {"keySerializerClass": f"{__name__}.Upper", "valueSerializerClass": f"{__name__}.Text"}
    found = provider_of(with_config(durable, **own))
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
    classes = {"keyClass": "java.lang.String", "valueClass": "org.example.NoSuchClass"}
    found = provider_of(with_config(conf, **classes))
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
    places = [provider_of({"multilang.parent": "local", "topology.name": name}).describe() for name in names]
    assert len(set(places)) == len(names)
    for name in names:
        provider = provider_of({"multilang.parent": "local", "topology.name": name})
        state = opened(provider, "count-0")
        assert state.get("name") is None
        state.put("name", name)
        state.commit()
        state.close()
        provider.close()
    assert sorted(f"SQLite file {path}" for path in tmp_path.glob("*.sqlite")) == sorted(places)


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
