"""Topics of Kafka as sources: partitions are the topic's, a position the offset that is read next.

``servers``: brokers to ask first, ``"host:port,host:port"``. ``fields``: what of a message is a field: ``value``, ``key``,
``timestamp`` (milliseconds), ``partition``, ``offset``. Key and value are text in UTF-8. ``options``: further settings of librdkafka, such
as ``{"security.protocol": "SSL"}``. Needs the extra ``kafka``.

Offsets are kept with the transactions, not in Kafka. Of transactional producers only what is committed is read. A topic may
get further partitions. What Kafka has removed before it was read (``retention.ms``) is told.
"""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError
from multilang.state.kafka_client import REQUIRES, Topic, check_fields
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceError,
    SourceSpout,
    TransactionalSourceSpout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PATIENCE_SECS = 5.0  # for brokers that don't answer
REFRESH_SECS = 10.0  # until the topic is asked for further partitions
_ALONE = {"group.id": "storm-multilang"}  # asked for, and not used: no group is joined, nothing is committed there


class _Kafka(SourceSpout):
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        servers: str,
        topic: str,
        fields: Sequence[str] = ("value",),
        take: int = 1000,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(fields, take)
        check_fields(fields)
        self.servers = servers
        self.topic = topic
        self.options = dict(options or {})

    def open(self, conf: Mapping[str, Any]) -> KafkaSource:
        return KafkaSource(self.servers, self.topic, self.fields, self.options)


class TransactionalKafkaSpout(_Kafka, TransactionalSourceSpout):
    """Messages of a topic, the same in each replay. Its arguments are those of the module."""


class OpaqueTransactionalKafkaSpout(_Kafka, OpaqueTransactionalSourceSpout):
    """Messages of a topic; a broker that is lost holds up its own partitions alone. Its arguments are those of the module."""


class KafkaSource(Source):
    """See the spouts. A consumer for each partition that is read, as each is read on from where it was left."""

    def __init__(self, servers: str, topic: str, fields: Sequence[str], options: Mapping[str, Any]) -> None:
        self._topic = Topic(servers, topic, options, SourceError)
        self._fields = fields
        self._consumers: dict[int, Any] = {}
        self._next: dict[int, int] = {}  # the offset that a consumer gives next
        self._partitions = 0
        self._asked_at = float("-inf")
        self._control = self._topic.consumer(_ALONE)
        try:
            self.num_partitions()
        except SourceError as problem:
            self._control.close()
            raise ConfigError(str(problem)) from problem

    def num_partitions(self) -> int:
        if monotonic() >= self._asked_at + REFRESH_SECS:
            self._partitions = self._topic.partitions(self._control, PATIENCE_SECS)
            self._asked_at = monotonic()
        return self._partitions

    def first(self, partition: int) -> int:
        return self._ends(partition)[0]

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
        """The first offset that is there, and the one behind the last."""
        return self._topic.ends(self._control, partition, PATIENCE_SECS)

    def _end(self, partition: int, start: int) -> int:
        """The offset behind the last; SourceError when ``start`` is no longer there."""
        low, high = self._ends(partition)
        if not low <= start <= high:
            raise SourceError(
                f"partition {partition} of {self._topic.where} has offsets from {low} to {high}, and {start} is to be read: Kafka has "
                "removed it (retention.ms, retention.bytes), or the topic was made anew; read a new topic under a new "
                "transactional id"
            )
        return high

    def _messages(self, partition: int, start: int, end: int, most: int) -> tuple[list[list[Any]], int]:
        """Up to ``most`` messages before ``end``, and the offset behind them.

        Some offsets have no message: what was compacted, and the marks of Kafka's own transactions.
        """
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
                elif error is None:  # it belongs to the next batch, for which it is read once more
                    self._next[partition] = message.offset() + 1
                    position = end
                elif error.code() != self._topic.kafka.KafkaError._PARTITION_EOF:
                    raise SourceError(f"partition {partition} of {self._topic.where} can't be read: {error.str()}")
                elif message.offset() >= end:  # otherwise it was the end before there were more
                    self._next[partition] = position = end
                deadline = monotonic() + PATIENCE_SECS
            if monotonic() > deadline:
                raise SourceError(
                    f"partition {partition} of {self._topic.where} gave nothing for {PATIENCE_SECS:g} seconds; are its brokers running?"
                )
        return rows, position

    def _at(self, partition: int, offset: int) -> Any:
        """The partition's consumer, which gives the message of ``offset`` next."""
        consumer = self._consumers.get(partition)
        if consumer is None:
            consumer = self._consumers[partition] = self._topic.consumer(_ALONE)
        if self._next.get(partition) != offset:
            consumer.assign([self._topic.at(partition, offset)])
            self._next[partition] = offset
        return consumer
