"""A topic of Kafka as the source of a plain topology: a consumer group divides its partitions and stores its offsets.

For each partition of a group, Kafka stores one offset: all messages before it are done. So the offset after a message is
committed when the tuple trees of that message and of all earlier ones in its partition are done. A late message holds
back the offset, but not the other messages.

A task has a partition until the group takes it away (a *rebalance*). From then on, the next owner emits what was in
flight: it begins at the committed offset, and a late ack commits nothing. A task that was stopped and is resumed may
still take itself for the owner after the group has excluded it. Its commit carries an old generation of the group, and
Kafka refuses it.
"""

from __future__ import annotations

from collections import deque
from threading import Thread

from multilang.component.errors import ConfigError
from multilang.component.reliable import ReliableSpout
from multilang.queues.kafka_group import Rest
from multilang.settings import KAFKA_OPTIONS
from multilang.state.kafka_client import REQUIRES, Topic, check_fields, with_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context

PATIENCE_SECS = 5.0  # with brokers that don't answer
_WAIT_SECS = 0.05  # for a message in next_tuple, unless all partitions are at their end
_LISTEN_SECS = 1.0  # between two looks for news of the group, while no message can be emitted
_REFRESH_SECS = 10  # until the topic is asked for further partitions
_QUIET_SECS = 10.0  # before the same error is reported again
_SILENCE_SECS = 300.0  # until the group excludes a task that asks for nothing
_LONGEST_SILENCE_SECS = 86_400.0  # the most that librdkafka takes
_OURS = (
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "error_cb",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "on_commit",
    "partition.assignment.strategy",
    "session.timeout.ms",
)


class _TopicError(Exception):
    """The topic, or a message, can't be read."""


class _Partition:
    """A partition that the task has: its offsets in flight, in order, and how much of it was committed."""

    __slots__ = ("asked", "at_end", "in_flight", "next", "serial")

    def __init__(self, serial: int) -> None:
        self.serial = serial  # differs each time that this task gets the partition
        self.in_flight: dict[int, None] = {}
        self.next: int | None = None  # the offset after the last message that was read
        self.asked: int | None = None  # the last offset that Kafka was asked to commit, and has not refused
        self.at_end = False

    @property
    def done(self) -> int | None:
        """The offset before which everything is done; None if nothing is known yet."""
        return next(iter(self.in_flight), self.next)


class KafkaSpout(ReliableSpout):
    """A spout of the messages of a topic, each at least once.

    A group begins with the first message that is there. A failed message is replayed without limit, unless
    ``max_replays`` is set; a message that is given up counts as done. The message id is ``PARTITION/OFFSET``, followed
    by a number of the task's own. Needs the extra ``kafka``.

    Args:
        servers: Brokers to ask first, ``"host:port,host:port"``.
        topic: The topic's name.
        group: The consumer group. Topologies with the same group divide the partitions; each further group gets all
            messages.
        fields: The parts of a message that are fields: ``value``, ``key``, ``timestamp`` (milliseconds), ``partition``,
            ``offset``. Key and value are text in UTF-8.
        session_secs: Seconds without a heartbeat from a task after which Kafka gives its partitions to others.
        options: Further settings of librdkafka, such as ``{"security.protocol": "SSL"}``, over those of the conf's
            ``multilang.kafka.options``. One that is secret may name its place: ``{"sasl.password": {"env": NAME}}``.

    Attributes:
        commit_secs: Seconds between two commits.
        max_replays: How often a failed message is replayed before it is given up; None: until it is acked.
    """

    emits_again = True
    commit_secs: float = 1.0
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        servers: str,
        topic: str,
        group: str,
        fields: Sequence[str] = ("value",),
        session_secs: float = 30.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        for name, value in (("servers", servers), ("topic", topic), ("group", group)):
            if type(value) is not str or not value:
                raise ConfigError(f"{name} is {value!r}; use text that is not empty")
        if not session_secs > 0:
            raise ConfigError(f"session_secs is {session_secs!r}; use seconds above 0")
        check_fields(fields)
        _check_options(options or (), "options")
        self.output_fields = list(fields)  # type: ignore[misc]
        self.servers = servers
        self.topic = topic
        self.group = group
        self.session_secs = session_secs
        self.options = dict(options or {})

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check once that the topic is there."""
        super().check_start(conf)
        topic = Topic(self.servers, self.topic, self._options(conf), ConfigError)
        consumer = topic.consumer({"group.id": self.group})
        try:
            topic.partitions(consumer, PATIENCE_SECS, before_start=True)
        finally:
            consumer.close()

    def source_id(self, tup_id: Any) -> Any:
        return str(tup_id).rsplit("/", 1)[0]

    @property
    def stored_elsewhere(self) -> tuple[str, ...]:
        """Always, by the group; a state is compared with it by a note where positions of spouts are, see ``multilang.state.witness``."""
        return ()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._topic = Topic(self.servers, self.topic, self._options(conf), _TopicError)
        self._fields = list(self.output_fields or ())
        self._partitions: dict[int, _Partition] = {}
        self._emitted: dict[str, tuple[_Partition, int]] = {}  # by message id
        self._missing: dict[int, int | None] = {}  # partition -> the offset that is not there; None: none was committed
        self._ahead: deque[Any] = deque()  # messages and events that arrived while no message could be emitted
        self._paused = False
        self._joined = False
        self._closing = False  # closing runs in a thread of its own, which can't log or report
        self._member: str | None = None
        self._serials = 0
        self._commit_at = self._listen_at = 0.0
        self._is_reported = False
        self._last_report, self._quiet_until = "", 0.0
        self._excluded = f"group {self.group!r} of {self._topic.where} has excluded this task"
        # While max.spout.pending tuples are in flight, next_tuple is not called, at most for as long as a tuple may take.
        silence = max(_SILENCE_SECS, self.session_secs, 3 * (conf.get("topology.message.timeout.secs") or 0))
        topic = Topic(self.servers, self.topic, self._options(conf), _TopicError)
        self._rest = Rest(topic, self.group, self.session_secs, self.clock, self.log)
        self._consumer = self._topic.consumer(
            {
                "group.id": self.group,
                # With it a rebalance leaves partitions that stay with their task, and their messages in flight.
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": int(self.session_secs * 1000),
                "heartbeat.interval.ms": max(int(min(self.session_secs / 5, 3.0) * 1000), 1),
                "max.poll.interval.ms": int(min(silence, _LONGEST_SILENCE_SECS) * 1000),
                "topic.metadata.refresh.interval.ms": _REFRESH_SECS * 1000,
                "on_commit": self._committed,
                "error_cb": self._broker_error,
            }
        )
        self._consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def next_tuple(self) -> None:
        if self.clock() >= self._commit_at:
            self._commit(self._partitions)
        if self._missing:
            self._place()
        if self._paused and not self._ahead:
            self._consumer.resume(self._consumer.assignment())
            self._paused = False
        wait_secs = 0.0 if self._at_end() else _WAIT_SECS
        while (message := self._ahead.popleft() if self._ahead else self._consumer.poll(wait_secs)) is not None:
            if message.error() is not None:
                self._process_event(message)
            elif self._give(message):
                return

    def ack(self, tup_id: Any) -> None:
        known = tup_id in self._sent
        super().ack(tup_id)
        if known:
            self._done(tup_id)

    def fail(self, tup_id: Any) -> None:
        known = tup_id in self._sent
        super().fail(tup_id)
        if known and tup_id not in self._sent:  # the message was given up
            self._done(tup_id)

    def replay(self) -> bool:
        busy = super().replay()
        if busy and self.clock() >= self._listen_at:
            self._listen()
        return busy

    def exhausted(self) -> bool | None:
        """Return None if the group has read what was there, in the partitions of other tasks too, else False."""
        if self._closing:
            return None  # the consumer is closed, so that Kafka can't be asked
        if self._ahead or not self._at_end() or any(each.in_flight for each in self._partitions.values()):
            return False
        if self._rest.is_due:
            self._commit(self._partitions)  # the other tasks look at what is committed
        try:
            return None if self._rest.is_read(self._partitions, self._consumer.memberid()) else False
        except _TopicError as problem:
            self._report_once(str(problem))
            return False

    def close(self) -> None:
        if hasattr(self, "_consumer"):
            self._closing = True
            self._rest.close()
            # close() gives the partitions back and waits for the last commit, which takes long without a broker.
            closing = Thread(target=self._consumer.close, daemon=True)
            closing.start()
            closing.join(PATIENCE_SECS)

    def _runner_gave_up(self) -> None:
        self.close()  # the group would wait for this member, or leave its partitions with it

    def _options(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        found = with_options(conf, self.options)
        _check_options(found, KAFKA_OPTIONS)
        return found

    # ---- messages ----

    def _give(self, message: Any) -> bool:
        number, offset = message.partition(), message.offset()
        partition = self._partitions.get(number)
        if partition is None:
            return False
        self._is_reported = partition.at_end = False
        partition.next = offset + 1
        try:
            values = self._topic.row(message, self._fields)
        except _TopicError as problem:
            self.report_error(f"{problem}; the message is left out")
            return False
        tup_id = f"{number}/{offset}/{partition.serial}"
        partition.in_flight[offset] = None
        self._emitted[tup_id] = partition, offset
        self.emit(values, tup_id)
        return True

    def _done(self, tup_id: Any) -> None:
        found = self._emitted.pop(tup_id, None)
        if found is not None:
            partition, offset = found
            del partition.in_flight[offset]
            if self.clock() >= self._commit_at:  # next_tuple is not called while the topology is deactivated
                self._commit(self._partitions)

    def _at_end(self) -> bool:
        return self._joined and not self._missing and all(each.at_end for each in self._partitions.values())

    def _listen(self) -> None:
        """Get news of the group while no message can be emitted: a task that never polls holds up a rebalance."""
        self._listen_at = self.clock() + _LISTEN_SECS
        if not self._paused:
            self._consumer.pause(self._consumer.assignment())
            self._paused = True
        message = self._consumer.poll(0)
        if message is not None:
            # An event of a partition, such as its end, counts behind the partition's messages that wait here.
            waits = any(each.partition() == message.partition() for each in self._ahead)
            if message.error() is None or (waits and not message.error().fatal()):
                self._ahead.append(message)
            else:
                self._process_event(message)
        if self.clock() >= self._commit_at:
            self._commit(self._partitions)

    def _process_event(self, message: Any) -> None:
        """Process an event that librdkafka gives in place of a message."""
        error, errors = message.error(), self._topic.kafka.KafkaError
        if error.fatal():
            raise _TopicError(f"{self._topic.where} can't be read any more: {error.str()}")
        partition = self._partitions.get(message.partition())
        if error.code() == errors._PARTITION_EOF:
            if partition is not None:
                partition.at_end = True
                partition.next = message.offset()  # the last offsets may be marks of Kafka's transactions
                self._is_reported = False
        elif error.code() == errors._AUTO_OFFSET_RESET:
            if partition is not None:
                offset = message.offset()
                self._missing[message.partition()] = offset if offset is not None and offset >= 0 else None
        elif error.code() == errors._MAX_POLL_EXCEEDED:
            self.log(f"{self._excluded}, which asked for no message for long: {error.str()}")
        else:
            self._report_once(f"{self._topic.where} can't be read: {error.str()}")

    def _place(self) -> None:
        """Resume from the first message in partitions whose next offset is missing."""
        for number, missing in list(self._missing.items()):
            start = self._topic.kafka.OFFSET_BEGINNING
            if missing is not None:
                try:
                    start, end = self._topic.ends(self._consumer, number, PATIENCE_SECS)
                except _TopicError as problem:
                    self._report_once(str(problem))
                    return
                where = f"partition {number} of {self._topic.where}"
                if missing < start:
                    self._partitions[number].next = start
                    self.report_error(
                        f"messages {missing} to {start - 1} of {where} were removed (retention.ms, retention.bytes) before they were "
                        "acked: those that were not in flight are lost"
                    )
                else:
                    self._drop([number])
                    self._partitions[number] = self._begun()
                    self.report_error(
                        f"{where} has offsets from {start} to {end}, and {missing} is to be read: the topic was made anew, or has "
                        "lost its end; it is read from its first message on"
                    )
            self._missing.pop(number, None)
            self._consumer.incremental_unassign([self._topic.at(number)])
            self._consumer.incremental_assign([self._topic.at(number, start)])

    # ---- the group ----

    def _commit(self, numbers: Iterable[int]) -> None:
        """Ask Kafka to commit the offsets up to which everything is done. ``_committed`` gets the answer."""
        self._commit_at = self.clock() + self.commit_secs
        news = []
        for number in numbers:
            partition = self._partitions.get(number)
            if partition is not None and (done := partition.done) is not None and done != partition.asked:
                news.append((partition, self._topic.at(number, done)))
        # An excluded task has no member id. Its commit would pass for one by a client without a group.
        if not news or self._consumer.memberid() != self._member:
            return
        try:
            self._consumer.commit(offsets=[offset for _, offset in news], asynchronous=True)
        except self._topic.kafka.KafkaException as problem:
            self._report_once(f"offsets of {self._topic.where} can't be committed: {problem.args[0].str()}")
            return
        for partition, offset in news:
            partition.asked = offset.offset

    def _committed(self, error: Any, offsets: Sequence[Any]) -> None:
        errors = self._topic.kafka.KafkaError
        refused = [each for each in offsets if error is not None or each.error is not None]
        for each in refused:
            partition = self._partitions.get(each.partition)
            if partition is not None:
                partition.asked = None  # so that it is committed again
        if self._closing:
            return
        if not refused:
            self._is_reported = False
            return
        why = error or refused[0].error
        what = f"offsets of {self._topic.where} can't be committed: {why.str()}"
        if why.code() in (errors.ILLEGAL_GENERATION, errors.UNKNOWN_MEMBER_ID):
            self.log(f"{what}; {self._excluded}, and others have its partitions")
        elif why.code() != errors.REBALANCE_IN_PROGRESS:
            self._report_once(what)

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._is_reported = False
        self._joined = True
        self._member = consumer.memberid()
        self._rest.changed()
        for each in partitions:
            self._partitions[each.partition] = self._begun()

    def _revoked(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        self._rest.changed()
        numbers = [each.partition for each in partitions]
        self._commit(numbers)  # it arrives before another task gets the partitions
        self._drop(numbers)

    def _lost(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        """Drop partitions: the group has excluded this task, or there is no group any more."""
        self._joined = False
        self._rest.changed()
        numbers = [each.partition for each in partitions]
        self._drop(numbers)
        if numbers and not self._closing:
            self.log(f"{self._excluded}; what it had in flight of partitions {sorted(numbers)} is replayed")

    def _begun(self) -> _Partition:
        self._serials += 1
        return _Partition(self._serials)

    def _drop(self, numbers: Sequence[int]) -> None:
        """Forget what is in flight in these partitions, without replay or commit: the next owner emits it again."""
        for number in numbers:
            self._missing.pop(number, None)
            partition = self._partitions.pop(number, None)
            for offset in partition.in_flight if partition is not None else ():
                tup_id = f"{number}/{offset}/{partition.serial}"  # type: ignore[union-attr]
                for known in (self._emitted, self._sent, self._due, self._held):
                    known.pop(tup_id, None)
        self._ahead = deque(each for each in self._ahead if each.partition() not in numbers)

    def _broker_error(self, error: Any) -> None:
        """Report an error of the brokers. One broken connection is ignored while there are other brokers."""
        errors = self._topic.kafka.KafkaError
        if error.code() == errors._ALL_BROKERS_DOWN:
            self._report_once(f"{self._topic.where} does not answer: start a broker there, or name another")
        elif error.code() not in (errors._TRANSPORT, errors._RESOLVE) and not error.fatal():
            self._report_once(f"{self._topic.where} can't be used: {error.str()}")

    def _report_once(self, text: str) -> None:
        now = self.clock()
        late = text == self._last_report and now < self._quiet_until  # librdkafka may report an error after it is over
        if not (self._is_reported or self._closing or late):
            self._is_reported = True
            self._last_report, self._quiet_until = text, now + _QUIET_SECS
            self.report_error(f"{text}; it is tried again until it works")


def _check_options(options: Iterable[str], what: str) -> None:
    for name in options:
        if name in _OURS:
            raise ConfigError(f"{what} has {name!r}, which the spout sets by itself; leave it out")
