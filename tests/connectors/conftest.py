"""Fixtures of the places that sinks write to."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.connectors.receiver import Receiver
from tests.servers import LIMIT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import KafkaServer

_numbers = itertools.count()


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = f"sink-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": kafka.address, "log_level": 0})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(LIMIT)

    def led() -> bool:
        parts = admin.list_topics(name, timeout=LIMIT).topics[name].partitions.values()
        return len(parts) == 2 and all(each.leader >= 0 for each in parts)

    wait_for(led, "the topic is known")
    return name


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.server.shutdown()
    found.server.server_close()
