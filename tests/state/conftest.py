"""Where the states of these tests are: SQLite files, and a Redis of this machine's own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from multilang.state.providers import provider_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIMIT = 90  # seconds for what takes a moment


class RedisServer:
    """A redis-server on a free port of loopback, which writes everything down at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no", *more]
        with open(self.folder / "redis.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        process = self.process
        wait_for(lambda: self.answers() or process.poll() is not None, "Redis answers")
        assert process.poll() is None, (self.folder / "redis.log").read_text()

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
        except OSError:
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def conf(self) -> dict[str, object]:
        """What a topology needs to keep its state here."""
        return {
            "topology.state.provider": "org.apache.storm.redis.state.RedisKeyValueStateProvider",
            "topology.state.provider.config": f'{{"jedisPoolConfig": {{"host": "127.0.0.1", "port": {self.port}}}}}',
        }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_for(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {limit} seconds: {what}")
        time.sleep(0.01)


def running_redis(folder: Path) -> Iterator[RedisServer]:
    """What a fixture yields; skips, or in CI fails, where there is no Redis."""
    if shutil.which("redis-server") is None:
        reason = "no redis-server here, in which the state is to be (Debian: apt-get install redis-server)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    yield from running_redis(tmp_path_factory.mktemp("redis"))


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisServer:
    """The same, empty."""
    import redis

    client = redis.Redis(port=redis_server.port)
    client.flushall()
    client.close()
    return redis_server


@pytest.fixture(params=["memory", "sqlite", "redis"])
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """A topology's conf that names a provider."""
    return conf_of(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "redis"])
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
    server: RedisServer = request.getfixturevalue("redis")
    return {**base, **server.conf}


@pytest.fixture
def provider(conf):
    found = provider_of(conf)
    yield found
    found.close()
