"""A ZooKeeper of this machine's own, for all tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster import missing_programs
from tests.servers import ZooKeeperServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    needed = [*missing_programs(), "java"]
    yield from running(ZooKeeperServer, tmp_path_factory.mktemp("zookeeper"), *needed)
