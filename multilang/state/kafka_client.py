"""Access to a topic of Kafka: consumers, the parts of a message, and errors that name the topic.

The conf key ``multilang.kafka.options`` has settings of librdkafka for all topics of a topology, such as the login and TLS.
"""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeout
from time import monotonic, sleep

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.helpers.masked import is_reference
from multilang.helpers.secret import Secret
from multilang.settings import KAFKA_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    _Answer = TypeVar("_Answer")

REQUIRES = {"confluent_kafka": "confluent-kafka>=2.6"}
_OF_ANY_CLIENT = ("bootstrap.servers", "log_level", "error_cb")
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # of a topic at a broker that knows no ids
_MAY_NOT_TELL = (
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "UNSUPPORTED_VERSION",
    "_UNSUPPORTED_FEATURE",
)
_PASSES = (  # answers of a broker while a topic is new, or a partition moves to another broker
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REPLICA_NOT_AVAILABLE",
    "BROKER_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "NETWORK_EXCEPTION",
    "REQUEST_TIMED_OUT",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
    "_UNKNOWN_PARTITION",
)
_AGAIN_SECS = 0.1  # between two questions to a broker that gave such an answer
_HASTE_SECS = 1.0  # after which a refusal is looked for
_SLOW_SECS = 30.0  # before a topology starts, for a broker that can be reached and is slow
PARTS = ("key", "offset", "partition", "timestamp", "value")


def check_fields(fields: Sequence[str]) -> None:
    """Raise ConfigError if a field is no part of a message."""
    for field in fields:
        if field not in PARTS:
            raise ConfigError(f"a message of Kafka has no {field!r}; it has {', '.join(PARTS)}")


def with_options(conf: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spout's options over those of the conf's ``multilang.kafka.options``. Raises ConfigError if that is no object."""
    given = conf.get(KAFKA_OPTIONS)
    if given is not None and not isinstance(given, dict):
        raise ConfigError(
            f'{KAFKA_OPTIONS} is of type {type(given).__name__}; write an object, {{"security.protocol": "SASL_SSL", ...}}'
        )
    return {**(given or {}), **own}


class Topic:
    """A topic of Kafka. Consumers made here never commit by themselves, and never replace a missing offset.

    Args:
        servers: Brokers to ask first, ``"host:port,host:port"``.
        name: The topic's name.
        options: Further settings of librdkafka; one that is secret may be a Secret, or name its place.
        error: The class of exceptions to raise when something is wrong with the topic.
    """

    def __init__(self, servers: str, name: str, options: Mapping[str, Any], error: type[Exception]) -> None:
        self.kafka = imported("confluent_kafka", "kafka", "Kafka", package="confluent-kafka", on_workers=True)
        self.name = name
        self.where = f"topic {name!r} of Kafka at {servers}"
        self._error = error
        self._options = options
        self._refusal = ""
        self._is_away = False
        self._hears = True
        self._administers: Any = None
        self._settings = {
            "bootstrap.servers": servers,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": 8192,  # read ahead, for each partition
            "reconnect.backoff.max.ms": 1000,
            "log_level": 0,  # errors are reported by this library
            "error_cb": self._refused,
        }

    def producer(self, settings: Mapping[str, Any]) -> Any:
        """Return a producer with these settings; the user's options override them. See ``consumer``."""
        common = {key: self._settings[key] for key in (*_OF_ANY_CLIENT, "reconnect.backoff.max.ms")}
        return self._client(self.kafka.Producer, {**common, **settings})

    def consumer(self, settings: Mapping[str, Any]) -> Any:
        """Return a consumer with these settings; the user's options override them.

        Raises:
            ConfigError: librdkafka refuses the settings, or a secret can't be read.
        """
        if "error_cb" in settings:
            self._hears = False
        return self._client(self.kafka.Consumer, {**self._settings, **settings})

    def _admin(self) -> Any:
        if self._administers is None:
            from confluent_kafka.admin import AdminClient

            self._administers = self._client(AdminClient, {key: self._settings[key] for key in _OF_ANY_CLIENT})
        return self._administers

    def _client(self, kind: Any, settings: Mapping[str, Any]) -> Any:
        options = {name: _revealed(name, value) for name, value in self._options.items()}
        try:
            return kind({**settings, **options})
        except self.kafka.KafkaException as problem:
            raise ConfigError(f"Kafka does not take the options: {problem.args[0].str()}") from problem

    def at(self, partition: int, *offset: int) -> Any:
        """Return a partition, or an offset in it, in the form that librdkafka's calls take."""
        return self.kafka.TopicPartition(self.name, partition, *offset)

    def partitions(self, consumer: Any, patience: float, before_start: bool = False) -> int:
        """Return the number of partitions, from a broker that may take ``patience`` seconds to answer.

        Before a topology starts, a broker that can be reached has longer: its machine may be busy.
        """
        found = self._listed(consumer, patience, _SLOW_SECS if before_start else 0.0).topics[self.name]
        if found.error is not None:
            raise self._error(f"{self.where} can't be used: {found.error.str()}; make the topic, or name another")
        return len(found.partitions)

    def identity(self, consumer: Any, patience: float) -> dict[str, str | None]:
        """Return the ids of the cluster and of the topic, which a topic that is made anew does not share.

        One that this version of the client, the broker or its access rules don't return is None.

        Raises:
            error: They can't be read now.
        """
        cluster = self._listed(consumer, patience).cluster_id
        try:
            from confluent_kafka import TopicCollection

            asked = self._admin().describe_topics(TopicCollection([self.name]), request_timeout=patience)[self.name]
            id = str(asked.result(patience).topic_id)
        except (ImportError, AttributeError):  # of a version of the client that asks for no ids
            id = _NO_ID
        except FutureTimeout:
            raise self._error(f"{self.where} does not return its id; is a broker running there?") from None
        except self.kafka.KafkaException as problem:
            if problem.args[0].name() not in _MAY_NOT_TELL:
                raise self._error(f"{self.where} does not return its id: {problem.args[0].str()}") from None
            id = _NO_ID
        return {"cluster": cluster, "topic id": None if id == _NO_ID else id}

    def ends(self, consumer: Any, partition: int, patience: float) -> tuple[int, int]:
        """Return the first offset that is there, and the one after the last."""
        at = self.at(partition)
        low, high = self._asked(consumer, lambda secs: consumer.get_watermark_offsets(at, timeout=secs), patience)
        return low, high

    def all_ends(self, consumer: Any, numbers: Sequence[int], patience: float) -> dict[int, tuple[int, int]]:
        """Return the ends of several partitions, see ``ends``, by two requests."""
        lows, highs = (
            self._offsets(consumer, "offsets_for_times", numbers, (logical,), patience)
            for logical in (self.kafka.OFFSET_BEGINNING, self.kafka.OFFSET_END)
        )
        return {number: (lows[number], highs[number]) for number in numbers}

    def committed(self, consumer: Any, numbers: Sequence[int], patience: float) -> dict[int, int]:
        """Return the offsets that the consumer's group has committed of partitions, below 0 where there is none."""
        return self._offsets(consumer, "committed", numbers, (), patience)

    def members(self, group: str, patience: float) -> dict[int, str] | None:
        """Return the member of a group that has each partition, or None while the group divides them.

        Raises:
            error: They can't be read now.
        """
        from confluent_kafka import ConsumerGroupState

        try:
            asked = self._admin().describe_consumer_groups([group], request_timeout=patience)[group]
            found = asked.result(patience)
        except FutureTimeout:
            raise self._error(f"group {group!r} of {self.where} does not return its members") from None
        except self.kafka.KafkaException as problem:
            raise self._error(
                f"group {group!r} of {self.where} does not return its members: {problem.args[0].str()}"
            ) from None
        if found.state != ConsumerGroupState.STABLE:
            return None
        return {
            each.partition: member.member_id
            for member in found.members
            for each in member.assignment.topic_partitions
            if each.topic == self.name
        }

    def row(self, message: Any, fields: Sequence[str]) -> list[Any]:
        """Return the values of the message's ``fields``; key and value are text."""
        return [self._part(message, field) for field in fields]

    def _part(self, message: Any, field: str) -> Any:
        value = getattr(message, field)()
        if field == "timestamp":
            return value[1]
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode()
        except UnicodeDecodeError as problem:
            raise self._error(
                f"the {field} of message {message.offset()}, partition {message.partition()} of {self.where}, is not UTF-8: "
                f"{problem.reason}; what crosses the wire is text, so write JSON or base64, not bytes"
            ) from None

    def _offsets(
        self, consumer: Any, call: str, numbers: Sequence[int], offset: tuple[int, ...], patience: float
    ) -> dict[int, int]:
        def ask(secs: float) -> dict[int, int]:
            found = getattr(consumer, call)([self.at(number, *offset) for number in numbers], timeout=secs)
            for each in found:
                if each.error is not None:
                    text = f"partition {each.partition}: {each.error.str()}"
                    raise self.kafka.KafkaException(self.kafka.KafkaError(each.error.code(), text))
            return {each.partition: each.offset for each in found}

        return self._asked(consumer, ask, patience)

    def _listed(self, consumer: Any, patience: float, if_there: float = 0.0) -> Any:
        return self._asked(consumer, lambda secs: consumer.list_topics(self.name, timeout=secs), patience, if_there)

    def _asked(self, consumer: Any, ask: Callable[[float], _Answer], patience: float, if_there: float = 0.0) -> _Answer:
        """Return what ``ask`` returns, which is called with the seconds that it may take. An answer that passes is asked for anew.

        ``if_there``: the patience with brokers that can be reached, if it is longer.
        """
        self._refusal, self._is_away = "", False
        begun = monotonic()
        deadline, latest = begun + _HASTE_SECS + patience, begun + if_there
        timeout, first = min(_HASTE_SECS, patience), True  # librdkafka itself would repeat the request after a refusal
        while True:
            try:
                return ask(timeout)
            except self.kafka.KafkaException as raised:
                problem = raised.args[0]
            if self._hears:  # a consumer whose errors go elsewhere reads messages, one of which this would take away
                consumer.poll(0)  # only this reports the reason of the refusal
            if self._refusal:
                raise self._error(f"{self.where} can't be used: {self._refusal}; see {KAFKA_OPTIONS}")
            passes = problem.name() in _PASSES
            if passes:
                sleep(_AGAIN_SECS)
            is_slow = problem.code() < 0 and not self._is_away and monotonic() < latest
            timeout = _HASTE_SECS if is_slow else deadline - monotonic()
            if timeout <= 0 or not (first or passes or is_slow):
                break
            first = False
        if passes or problem.code() >= 0:  # librdkafka's own errors are below 0, such as that no broker was heard
            raise self._error(f"{self.where} can't be used: {problem.str()}")
        raise self._error(f"{self.where} does not answer: {problem.str()}; is a broker running there?")

    def _refused(self, error: Any) -> None:
        of = self.kafka.KafkaError
        if error.code() in (of._AUTHENTICATION, of._SSL):
            self._refusal = " ".join(error.str().split())
        self._is_away |= error.code() in (of._TRANSPORT, of._RESOLVE, of._ALL_BROKERS_DOWN)


def _revealed(name: str, value: Any) -> Any:
    """Return the value that librdkafka takes; a name in a callback's place stays what it is."""
    if isinstance(value, Secret) or is_reference(value):
        return Secret(value, f"{name} of Kafka").reveal()
    return value
