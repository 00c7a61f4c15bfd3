"""The messages that a sink has sent to a topic of Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.servers import LIMIT

if TYPE_CHECKING:
    from tests.servers import KafkaServer


def messages(kafka: KafkaServer, topic: str) -> list[tuple[str | None, str | None]]:
    """Return the key and the value of each message that is in a topic."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.address, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
    )
    try:
        parts = [TopicPartition(topic, number) for number in range(2)]
        left = sum(consumer.get_watermark_offsets(part, timeout=LIMIT)[1] for part in parts)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(2)])
        found = []
        while len(found) < left:
            for message in consumer.consume(left, timeout=LIMIT):
                assert message.error() is None
                found.append(
                    tuple(None if part is None else part.decode() for part in (message.key(), message.value()))
                )
        return found
    finally:
        consumer.close()
