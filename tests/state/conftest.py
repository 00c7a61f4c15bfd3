"""The stores of these tests' states: memory, SQLite files, a Redis of their own on this machine, and one of a user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.state.providers import provider_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import RedisServer


@pytest.fixture(params=["memory", "sqlite", "redis"])
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """A topology's conf that names a provider."""
    return conf_of(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "redis", "files"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """The same, of those that survive a task."""
    return conf_of(request.param, request, tmp_path)


def conf_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    base = {"topology.name": "stateful", "topology.state.checkpoint.interval.ms": 100}
    if kind == "memory":
        return {**base, "topology.state.provider": "org.apache.storm.state.InMemoryKeyValueStateProvider"}
    if kind == "sqlite":
        return {
            **base,
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        }
    if kind == "files":
        return {**base, "multilang.store": f"tests.store.file_store.FileStore:{tmp_path / 'files'}"}
    server: RedisServer = request.getfixturevalue("redis")
    return {**base, **server.conf}


@pytest.fixture
def provider(conf):
    found = provider_of(conf)
    yield found
    found.close()


def opened(provider, namespace):
    """A task's state, claimed as a topology does it."""
    state = provider.new_state(namespace)
    state.claim(provider.claim())
    return state
