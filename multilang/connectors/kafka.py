"""A topic of Kafka as a sink (extra ``kafka``). The source is multilang.queues.KafkaSpout.

Guarantee: **at least once**. A tuple is acked when all in-sync brokers have its message. The producer is idempotent: what it
repeats by itself is in the topic once, and in order; what a replayed tuple sends is another message. On every engine.
"""

from __future__ import annotations

from multilang.component.batching import LingeringBolt
from multilang.component.errors import ConfigError, ConnectorError
from multilang.connectors.records import as_text, made_of
from multilang.protocol.codec import dumps
from multilang.settings import KAFKA_OPTIONS
from multilang.state.kafka_client import REQUIRES, Topic, with_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple

_PATIENCE_SECS = 5.0  # with brokers that don't answer
_DELIVERY_SECS = 15.0  # until a message that no broker takes counts as failed: below the message timeout
_QUEUE_SECS = 0.1  # to wait while the producer's queue is full


class KafkaSink(LingeringBolt):
    """A bolt that sends each tuple as a message; see the module.

    Args:
        servers: Brokers to ask first, ``"host:port,host:port"``.
        topic: The topic's name.
        value: The field that is the message's value; None: all fields, as a JSON object. Text is sent as it is, all else as
            JSON, and None as a message without a value.
        key: The field that is the message's key, by which Kafka chooses the partition; None: no key.
        options: Further settings of librdkafka, see KafkaSpout.
    """

    linger_secs = 0.005
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        servers: str,
        topic: str,
        value: str | None = None,
        key: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        for name, given in (("servers", servers), ("topic", topic)):
            if type(given) is not str or not given:
                raise ConfigError(f"{name} is {given!r}; use text that is not empty")
        self.servers = servers
        self.topic = topic
        self.value = value
        self.key = key
        self.options = dict(options or {})
        _check_options(self.options, "options")

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check once that the topic is there."""
        super().check_start(conf)
        topic = Topic(self.servers, self.topic, self._options(conf), ConfigError)
        topic.partitions(topic.producer({}), _PATIENCE_SECS, before_start=True)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._topic = Topic(self.servers, self.topic, self._options(conf), ConnectorError)
        self._producer: Any = None

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        tups, messages = made_of(self, tups, self._message, self._topic.where)
        problems: dict[int, str] = {}
        fatal = False

        def delivered(number: int, error: Any) -> None:
            nonlocal fatal
            if error is not None:
                problems[number] = error.str()
                fatal = fatal or error.fatal()

        for number, (name, value) in enumerate(messages):
            self._send(name, value, lambda error, _, number=number: delivered(number, error))
        self._producer.flush()  # which ends: each message is delivered, or fails in _DELIVERY_SECS
        if fatal:  # it sends nothing any more
            self._producer = None
        if problems:
            first = next(iter(problems.values()))
            self.report_error(
                f"{len(problems)} of {len(tups)} tuples can't be sent to {self._topic.where}: {first}; they fail"
            )
            for number in problems:
                self.fail(tups[number])

    def close(self) -> None:
        producer = getattr(self, "_producer", None)
        if producer is not None:
            producer.flush(0)

    def _send(self, key: bytes | None, value: bytes | None, delivered: Any) -> None:
        if self._producer is None:
            self._producer = self._topic.producer(
                {"enable.idempotence": True, "delivery.timeout.ms": int(_DELIVERY_SECS * 1000), "linger.ms": 0}
            )
        kafka = self._topic.kafka
        while True:
            try:
                self._producer.produce(self.topic, value=value, key=key, on_delivery=delivered)
                return
            except BufferError:  # its queue is full
                self._producer.poll(_QUEUE_SECS)
            except kafka.KafkaException as problem:  # one that is too large, for example
                delivered(problem.args[0], None)
                return

    def _options(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        found = with_options(conf, self.options)
        _check_options(found, KAFKA_OPTIONS)
        return found

    def _message(self, tup: Tuple) -> tuple[bytes | None, bytes | None]:
        value = dumps(tup.asdict()).encode() if self.value is None else self._of(tup, self.value)
        return self._of(tup, self.key), value

    def _of(self, tup: Tuple, field: str | None) -> bytes | None:
        value = None if field is None else tup[field]
        if value is None:
            return None
        return as_text(value).encode()


def _check_options(options: Mapping[str, Any], what: str) -> None:
    for name, value in options.items():
        if name in ("acks", "request.required.acks") and str(value) not in ("all", "-1"):
            raise ConfigError(
                f"{what} has {name!r} as {value!r}, with which a message can be lost that a tuple was acked for; leave it out (all)"
            )
