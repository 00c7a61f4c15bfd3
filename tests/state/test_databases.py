"""The place of states: what a conf may name, the class behind it, and what each class says of itself."""

from __future__ import annotations

import pickle

import pytest

from multilang.component.errors import ConfigError
from multilang.helpers.dotted import by_dotted_name
from multilang.state import MemoryStateProvider, RedisStateProvider, SqliteStateProvider, StateProvider
from multilang.state.databases import StoreProvider
from multilang.state.providers import check_config, provider_class, provider_of, store_or_provider
from multilang.store import Store
from multilang.store.opening import DATABASES, store_class
from tests.store.file_store import FileStore

URLS = {"memory": "memory:", "sqlite": "sqlite:///{folder}/state.sqlite", "redis": "redis://127.0.0.1:1/2", "rediss": "rediss://127.0.0.1:1", "zookeeper": "zookeeper://127.0.0.1:1/shop"}  # fmt: skip


@pytest.mark.parametrize("scheme", DATABASES)
def test_each_row_of_the_table_names_a_store_that_a_url_opens_and_takes_to_other_processes(scheme, tmp_path):
    pytest.importorskip(DATABASES[scheme].rpartition(".")[0])
    kind = store_class(f"{scheme}:")
    assert issubclass(kind, Store)
    assert f"{kind.__module__}.{kind.__qualname__}" == DATABASES[scheme]
    conf = {"topology.name": "shop", "multilang.store": URLS[scheme].format(folder=tmp_path)}
    found = provider_of(conf)
    assert type(found) is StoreProvider
    assert type(found.store) is kind
    assert (found.durable, found.local, found.requires) == (kind.durable, kind.local, kind.requires)
    assert found.describe() in found.store.describe()
    assert store_or_provider(conf) is kind
    again = provider_of({**conf, "multilang.store": None, **found.portable()})
    assert type(again.store) is kind
    assert again.describe() == found.describe()
    assert pickle.loads(pickle.dumps(found.store)).describe() == found.store.describe()
    for each in (found, again):
        each.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("memory", MemoryStateProvider),
        ("sqlite", SqliteStateProvider),
        ("redis", RedisStateProvider),
        ("org.apache.storm.state.InMemoryKeyValueStateProvider", MemoryStateProvider),
        ("org.apache.storm.redis.state.RedisKeyValueStateProvider", RedisStateProvider),
        ("multilang.state.SqliteStateProvider", SqliteStateProvider),
    ],
)
def test_storms_key_names_a_provider_and_goes_before_the_store(name, kind):
    conf = {"topology.state.provider": name, "multilang.store": "redis://127.0.0.1:1/2"}
    assert provider_class(conf) is kind
    assert store_or_provider(conf) is kind
    assert issubclass(kind, StateProvider)


def test_without_a_key_states_are_in_a_file_here_and_in_memory_on_a_cluster():
    assert provider_class({"multilang.parent": "local"}) is SqliteStateProvider
    assert provider_class({"multilang.parent": "storm"}) is provider_class({}) is MemoryStateProvider
    assert provider_class({"multilang.store": "memory:"}) is by_dotted_name("multilang.state.databases.StoreProvider")


def test_a_store_of_ones_own_is_named_by_its_class(tmp_path):
    conf = {"topology.name": "shop", "multilang.store": f"tests.store.file_store.FileStore:{tmp_path}"}
    found = provider_of(conf)
    assert type(found.store) is FileStore
    assert store_or_provider(conf) is FileStore
    assert found.portable()["multilang.store"] == conf["multilang.store"]
    assert (found.durable, found.local) == (True, True)
    found.close()


def test_what_a_store_can_not_keep_is_reported_before_anything_runs():
    with pytest.raises(ConfigError, match=r"states that outlive their tasks, and they are in .*multilang\.store"):
        check_config({"topology.name": "shop", "multilang.store": "memory:"}, durable=True)
    check_config({"topology.name": "shop", "multilang.store": "memory:"}, durable=False)
    for wrong, says in (
        ("zookeper://x", "'zookeper' is no database that is known"),
        ("sqlite:", "which names no file"),
        ("redis://x/y", "multilang.store is 'redis://x/y'"),
    ):
        with pytest.raises(ConfigError, match=says):
            check_config({"topology.name": "shop", "multilang.store": wrong}, durable=True)


@pytest.mark.parametrize("config", [{"path": "x"}, {"jedisPoolConfig": {}}, {"host": "x"}])
def test_a_member_that_belongs_into_the_url_is_refused(config):
    conf = {"topology.name": "shop", "multilang.store": "memory:", "topology.state.provider.config": config}
    with pytest.raises(ConfigError, match=f"state in multilang.store knows no '{next(iter(config))}'"):
        provider_of(conf)
