"""The common part of all tests: hypothesis's settings, a Redis, a ZooKeeper and a Kafka."""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.patience import LONGEST, PACE, patient
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.servers import KafkaServer, RedisServer, ZooKeeperServer

# Tests share a busy machine: how long one example takes says nothing. A failure prints what repeats it. In CI a change is
# judged by the same examples whenever it runs; new ones are sought on developers' machines, and by scripts/soak.
settings.register_profile(
    "tests",
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="CI" in os.environ and not SOAK,
)
settings.register_profile("full", settings.get_profile("tests"), max_examples=2000)
settings.load_profile("full" if SOAK else "tests")

# What tests let pip build is built by the setuptools of this environment, which scripts/lock.txt pins, and not by the newest
# one of the day: to pip, this 0 means no isolation.
os.environ["PIP_NO_BUILD_ISOLATION"] = "0"

# What a shell starts in the background ignores SIGINT, and so would every process that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The tests of a group share a server, and run in one process: the longest groups begin first, so that none is left alone
# at the end. Then come the tests that start a Spark of their own, which are the longest of the others.
GROUPS = (
    *("spark job", "spark sources", "storm", "storm topologies"),
    *("kafka", "storm clusters", "zookeeper", "values"),
)


def turn(item: pytest.Item) -> int:
    """Return when a test's turn is, from 0."""
    mark = item.get_closest_marker("xdist_group")
    if mark is not None and mark.args[0] in GROUPS:
        return GROUPS.index(mark.args[0])
    return len(GROUPS) + ("spark_programs" not in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the marks are made before xdist looks at them
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    if not SOAK:
        left = [item for item in items if item.get_closest_marker("soak_only") is not None]
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if item not in left]
    for item in items:
        for server in ("zookeeper", "kafka"):
            if server in getattr(item, "fixturenames", ()) or f"[{server}" in item.name:
                item.add_marker(pytest.mark.xdist_group(server))  # in one process: one server
                item.add_marker(pytest.mark.timeout(600))  # the first may fetch it
    yield
    for item in items if PACE > 1 else ():
        _wait_patiently(config, item)
    items.sort(key=turn)


def _wait_patiently(config: pytest.Config, item: pytest.Item) -> None:
    """Give a test the time that it may take on this machine."""
    mark = item.get_closest_marker("timeout")
    given = config.getoption("timeout")  # by whoever calls pytest
    secs = mark.args[0] if mark is not None and mark.args else config.getini("timeout") if given is None else given
    item.add_marker(pytest.mark.timeout(max(float(secs), min(patient(float(secs)), LONGEST))), append=False)


# Thousands of tests are made and stay until the end: looking for garbage among them costs each process seconds.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what topologies store out of the home of who runs the tests, where an earlier run's would be found again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MULTILANG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    from tests.servers import RedisServer, running

    yield from running(RedisServer, tmp_path_factory.mktemp("redis"), "redis-server")


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisServer:
    """The same, empty."""
    import redis

    client = redis.Redis(port=redis_server.port)
    client.flushall()
    client.close()
    return redis_server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    from tests.servers import KafkaServer, running

    needed = [*(["mvn"] if not KafkaServer.is_here() else []), "java"]
    yield from running(KafkaServer, tmp_path_factory.mktemp("kafka"), *needed)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    from multilang.shipping.cluster import missing_programs
    from tests.servers import ZooKeeperServer, running

    yield from running(ZooKeeperServer, tmp_path_factory.mktemp("zookeeper"), *missing_programs(), "java")
