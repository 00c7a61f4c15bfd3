"""Topics of Kafka as sources: partitions are the topic's, a position is the offset that is read next.

Offsets are stored with the transactions, not in Kafka. Of transactional producers, only committed messages are read. A
topic may get further partitions. Messages that Kafka has removed before they were read (``retention.ms``) are reported.
Needs the extra ``kafka``.
"""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError, SourceUnavailable
from multilang.state.kafka_client import REQUIRES, Topic, check_fields, with_options
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceSpout,
    TransactionalSourceSpout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PATIENCE_SECS = 5.0  # with brokers that don't answer
REFRESH_SECS = 10.0  # until the topic is asked for further partitions
_ALONE = {"group.id": "storm-multilang"}  # librdkafka demands it; no group is joined, nothing is committed there


class _Kafka(SourceSpout):
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        servers: str,
        topic: str,
        fields: Sequence[str] = ("value",),
        batch_size: int = 1000,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(fields, batch_size)
        check_fields(fields)
        self.servers = servers
        self.topic = topic
        self.options = dict(options or {})

    def open(self, conf: Mapping[str, Any]) -> KafkaSource:
        return KafkaSource(self.servers, self.topic, self.fields, with_options(conf, self.options))


class TransactionalKafkaSpout(_Kafka, TransactionalSourceSpout):
    """Messages of a topic, the same in each replay.

    Args:
        servers: Brokers to ask first, ``"host:port,host:port"``.
        topic: The topic's name.
        fields: The parts of a message that are fields: ``value``, ``key``, ``timestamp`` (milliseconds), ``partition``,
            ``offset``. Key and value are text in UTF-8.
        batch_size: The largest number of messages of a partition in one batch.
        options: Further settings of librdkafka, such as ``{"security.protocol": "SSL"}``, over those of the conf's
            ``multilang.kafka.options``. One that is secret may name its place: ``{"sasl.password": {"env": NAME}}``.
    """


class OpaqueTransactionalKafkaSpout(_Kafka, OpaqueTransactionalSourceSpout):
    """Messages of a topic; a broker that is lost holds up only its own partitions.

    Its arguments are those of TransactionalKafkaSpout.
    """


class KafkaSource(Source):
    """The source of both spouts of Kafka. It has a consumer for each partition, which resumes from its last message."""

    forgets = True  # messages have a retention

    def __init__(self, servers: str, topic: str, fields: Sequence[str], options: Mapping[str, Any]) -> None:
        self._topic = Topic(servers, topic, options, SourceUnavailable)
        self._fields = fields
        self._consumers: dict[int, Any] = {}
        self._next: dict[int, int] = {}  # the offset that a consumer gives next
        self._partitions = 0
        self._asked_at = float("-inf")
        self._identity: dict[str, str | None] | None = None
        self._control = self._topic.consumer(_ALONE)
        try:
            self._count(before_start=True)
        except SourceUnavailable as problem:
            self._control.close()
            raise ConfigError(str(problem)) from problem

    def num_partitions(self) -> int:
        if monotonic() >= self._asked_at + REFRESH_SECS:
            self._count()
        return self._partitions

    def _count(self, before_start: bool = False) -> None:
        self._partitions = self._topic.partitions(self._control, PATIENCE_SECS, before_start)
        self._asked_at = monotonic()

    def first(self, partition: int) -> int:
        return self._ends(partition)[0]

    def describe(self) -> str:
        return self._topic.where

    def identity(self, partition: int) -> dict[str, str | None]:
        if self._identity is None:
            self._identity = self._topic.identity(self._control, PATIENCE_SECS)
        return self._identity

    def left(self, partition: int, start: int, end: int) -> list[list[Any]] | None:
        if self.identity(partition)["topic id"] is not None:
            return None  # its messages never change
        low, high = self._ends(partition)
        if end > high:
            return None  # the read will report that
        return self._messages(partition, max(start, low), end, end)[0]

    def read(self, partition: int, position: int, most: int) -> tuple[list[list[Any]], int]:
        return self._messages(partition, position, self._end(partition, position), most)

    def read_again(self, partition: int, start: int, end: int) -> list[list[Any]]:
        self._end(partition, start)
        return self._messages(partition, start, end, end)[0]

    def has_more(self, partition: int, position: int) -> bool:
        return position < self._end(partition, position)

    def close(self) -> None:
        for consumer in [*self._consumers.values(), self._control]:
            consumer.close()

    def _ends(self, partition: int) -> tuple[int, int]:
        """Return the first offset that is there, and the one after the last."""
        return self._topic.ends(self._control, partition, PATIENCE_SECS)

    def _end(self, partition: int, start: int) -> int:
        """Return the offset after the last. Raise SourceUnavailable if ``start`` is no longer there."""
        low, high = self._ends(partition)
        if not low <= start <= high:
            raise SourceUnavailable(
                f"partition {partition} of {self._topic.where} has offsets from {low} to {high}, and {start} is to be read: Kafka has "
                "removed it (retention.ms, retention.bytes), or the topic was made anew; read a new topic under a new "
                "transactional id"
            )
        return high

    def _messages(self, partition: int, start: int, end: int, most: int) -> tuple[list[list[Any]], int]:
        """Return up to ``most`` messages before ``end``, and the offset after them.

        Some offsets have no message: compacted ones, and the marks of Kafka's own transactions.
        """
        try:
            return self._consumed(partition, start, end, most)
        except BaseException:
            self._next.pop(partition, None)  # the consumer is behind messages that nobody got
            raise

    def _consumed(self, partition: int, start: int, end: int, most: int) -> tuple[list[list[Any]], int]:
        position = start
        rows: list[list[Any]] = []
        deadline = monotonic() + PATIENCE_SECS
        while position < end and len(rows) < most:
            consumer = self._at(partition, position)
            for message in consumer.consume(min(end - position, most - len(rows)), timeout=0.1):
                error = message.error()
                if error is None and message.offset() < end:
                    rows.append(self._topic.row(message, self._fields))
                    self._next[partition] = position = message.offset() + 1
                elif error is None:  # it belongs to the next batch, which will read it again
                    self._next[partition] = message.offset() + 1
                    position = end
                elif error.code() != self._topic.kafka.KafkaError._PARTITION_EOF:
                    raise SourceUnavailable(
                        f"partition {partition} of {self._topic.where} can't be read: {error.str()}"
                    )
                elif message.offset() >= end:  # otherwise more messages have come after that end
                    self._next[partition] = position = end
                deadline = monotonic() + PATIENCE_SECS
            if monotonic() > deadline:
                raise SourceUnavailable(
                    f"partition {partition} of {self._topic.where} gave nothing for {PATIENCE_SECS:g} seconds; are its brokers running?"
                )
        return rows, position

    def _at(self, partition: int, offset: int) -> Any:
        """Return the partition's consumer, placed so that it gives the message of ``offset`` next."""
        consumer = self._consumers.get(partition)
        if consumer is None:
            consumer = self._consumers[partition] = self._topic.consumer(_ALONE)
        if self._next.get(partition) != offset:
            consumer.assign([self._topic.at(partition, offset)])
            self._next[partition] = offset
        return consumer
