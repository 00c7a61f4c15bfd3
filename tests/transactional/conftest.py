"""ZooKeeper and Kafka of this machine's own: one of each for all tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster import missing_programs
from tests.servers import KafkaServer, ZooKeeperServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for server in ("zookeeper", "kafka"):
            if server in getattr(item, "fixturenames", ()) or f"[{server}" in item.name:
                item.add_marker(pytest.mark.xdist_group(server))  # in one process: one server
                item.add_marker(pytest.mark.timeout(600))  # the first may fetch it


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    needed = [*missing_programs(), "java"]
    yield from running(ZooKeeperServer, tmp_path_factory.mktemp("zookeeper"), *needed)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    needed = [*(["mvn"] if not KafkaServer.is_here() else []), "java"]
    yield from running(KafkaServer, tmp_path_factory.mktemp("kafka"), *needed)
