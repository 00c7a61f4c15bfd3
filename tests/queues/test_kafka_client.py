"""Errors that a broker gives for a moment, while a topic is new or a partition moves, are asked about again with patience."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from multilang.state import kafka_client
from multilang.state.kafka_client import Topic

PASSES = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._UNKNOWN_PARTITION,
)
STAYS = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART)


class Unusable(Exception):
    """A topic can not be used."""


class Client:
    """A client of a broker that answers as asked, with an error as often as it is told."""

    def __init__(self, code: int, times: int) -> None:
        self.code = code
        self.left = times
        self.asked = 0

    def poll(self, timeout: float) -> None:
        pass

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        self._answer()
        if self.left >= 0:
            raise KafkaException(KafkaError(self.code))
        return 3, 7

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[Any]:
        self._answer()
        error = KafkaError(self.code) if self.left >= 0 else None
        return [Answer(each.partition, 7, error if each.partition else None) for each in partitions]

    def _answer(self) -> None:
        self.asked += 1
        self.left -= 1


class Answer:
    """The answer about one partition; librdkafka's own class takes no error from Python."""

    def __init__(self, partition: int, offset: int, error: KafkaError | None) -> None:
        self.partition = partition
        self.offset = offset
        self.error = error


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    monkeypatch.setattr(kafka_client, "sleep", lambda secs: None)
    return Topic("127.0.0.1:1", "words", {}, Unusable)


@pytest.mark.parametrize("code", PASSES)
def test_an_error_that_passes_is_asked_about_again(topic: Topic, code: int) -> None:
    assert topic.ends(Client(code, 4), 1, 5.0) == (3, 7)
    assert topic.committed(Client(code, 4), [0, 1], 5.0) == {0: 7, 1: 7}


def test_an_error_that_does_not_pass_is_reported_with_the_brokers_words(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_client, "monotonic", count().__next__)  # a second from each look to the next
    client = Client(PASSES[0], 1000)
    with pytest.raises(Unusable, match=r"topic 'words' of Kafka at 127.0.0.1:1 can't be used: .*Not leader"):
        topic.ends(client, 1, 3.0)
    assert client.asked == 4
    with pytest.raises(Unusable, match=r"can't be used: partition 1: .*Not leader"):
        topic.committed(Client(PASSES[0], 1000), [0, 1], 3.0)


@pytest.mark.parametrize("code", STAYS)
def test_an_error_that_stays_is_not_waited_for(topic: Topic, code: int) -> None:
    client = Client(code, 1000)
    with pytest.raises(Unusable, match="can't be used: "):
        topic.ends(client, 1, 3600.0)
    assert client.asked == 2
