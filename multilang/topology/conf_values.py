"""The type and range of every conf key that is read here, or that Storm checks when a topology is submitted.

Storm's own table is in the annotations of org.apache.storm.Config. A key here takes what Storm takes, and fractions of
a second besides (see ``multilang.shipping.conf``, which refuses them for Storm).
"""

from __future__ import annotations

from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

NAME_TABOO = "/.:\\"  # Storm's Utils.validateTopologyName: the name becomes part of paths and keys


class Kind:
    """The values that a key may have.

    Attributes:
        allowed: The end of the sentence "use ...".
        takes: Returns whether a value is one of them; None, the default, is not asked.
    """

    __slots__ = ("allowed", "takes")

    def __init__(self, allowed: str, takes: Callable[[Any], bool]) -> None:
        self.allowed = allowed
        self.takes = takes


def check_values(conf: Mapping[Any, Any], what: str) -> None:
    """Raise TopologyError for a value of a wrong type or range; ``what`` says in the message whose conf it is.

    None stands for a key's default.
    """
    for key, value in conf.items():
        kind = KINDS.get(key)
        if kind is not None and value is not None and not kind.takes(value):
            from multilang.masked import masked

            raise TopologyError(f"{what}: {key} is {masked(value, key)!r}; use {kind.allowed}")


def check_whole(conf: Mapping[str, Any], what: str) -> None:
    """Raise TopologyError for a fraction where Storm takes a whole number."""
    for key, value in conf.items():
        if key in WHOLE_ON_STORM and isinstance(value, float):
            raise TopologyError(f"{what}: {key} is {value!r}; Storm takes whole numbers here, so write {_above(value)}")


def is_printable(text: object) -> bool:
    """Return whether a value is text that can be seen, and read again from a message."""
    return isinstance(text, str) and bool(text) and text.isprintable() and text == text.strip()


def _is_name(value: Any) -> bool:
    return is_printable(value) and not any(letter in NAME_TABOO for letter in value)


def _is_node(value: Any) -> bool:
    if not _is_text(value):
        return False
    parts = value.removeprefix("/").removesuffix("/").split("/")
    return value == "/" or (value[:1] == "/" and all(is_printable(part) and part not in (".", "..") for part in parts))


def _above(value: float) -> int:
    return max(1, -int(-value // 1))


def _whole(least: int, most: float = float("inf")) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_secret(value: Any) -> bool:
    from multilang.masked import is_reference

    return isinstance(value, str) or is_reference(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value)


_FLAG = Kind("true or false", lambda value: isinstance(value, bool))
_TEXT = Kind("text, in quotation marks", _is_text)
_NAME = Kind(f"a name as a topology may have, printable text without {' '.join(NAME_TABOO)}", _is_name)
_DOTTED = Kind("a dotted name, as text", _is_text)
_SECRET = Kind('text, {"env": NAME} or {"file": PATH}', _is_secret)
_TEXTS = Kind("a list of texts", _is_texts)
_HOSTS = Kind('a list of hosts, ["host1", "host2"]', lambda value: _is_texts(value) and len(value) > 0)
_TEXT_OR_TEXTS = Kind("text, or a list of texts", lambda value: _is_text(value) or _is_texts(value))
_MAP = Kind("a map", lambda value: isinstance(value, dict))
_TEXT_MAP = Kind(
    "a map of texts to texts",
    lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
)
_NUMBER_MAP = Kind(
    "a map of texts to numbers",
    lambda value: isinstance(value, dict) and all(_is_number(item) for item in value.values()),
)
_REGISTRATIONS = Kind(
    "a list of class names, or of {class: serializer}",
    lambda value: (
        isinstance(value, dict)
        or (isinstance(value, list | tuple) and all(isinstance(item, str | dict) for item in value))
    ),
)
_REDIS_ACCESS = ("user", "password", "tls", "ca", "cert", "key")
_LIST = Kind("a list", lambda value: isinstance(value, list | tuple))
_FROM_0 = Kind("a whole number from 0", _whole(0))
_FROM_1 = Kind("a whole number from 1", _whole(1))
_WHOLE = Kind("a whole number", lambda value: type(value) is int)
_PORT = Kind("a port number from 1 to 65535", _whole(1, 65535))
_PORT_OR_0 = Kind("a port number, or 0 for any free one", _whole(0, 65535))
_NUMBER = Kind("a number", _is_number)
_NUMBER_FROM_0 = Kind("a number from 0", lambda value: _is_number(value) and value >= 0)
_NUMBER_ABOVE_0 = Kind("a number above 0", lambda value: _is_number(value) and value > 0)
_SECS_FROM_0 = Kind("seconds from 0", _NUMBER_FROM_0.takes)
_SECS = Kind("seconds above 0", _NUMBER_ABOVE_0.takes)
_MS_FROM_0 = Kind("a number of milliseconds from 0", _NUMBER_FROM_0.takes)
_WINDOW_MS = Kind("a whole number of milliseconds from 1", _whole(1))
_LEVELS = ("trace", "debug", "info", "warn", "warning", "error")


def _one_of(*texts: str) -> Kind:
    return Kind(f"{', '.join(map(repr, texts[:-1]))} or {texts[-1]!r}", lambda value: value in texts)


_STORMS = {
    _FLAG: """
        backpressure.enable debug disable.loadaware.messaging enable.message.timeouts enable.send.iconnection.metrics
        enable.v2.metrics.tick fall.back.on.java.serialization ras.one.component.per.worker ras.one.executor.per.worker
        ras.order.executors.by.proximity.needs serialized.message.size.metrics skip.missing.kryo.registrations
        testing.always.try.serialize worker.nimbus.thrift.client.use.tls
        """,
    _FROM_0: """
        acker.executors backpressure.wait.progressive.level1.count backpressure.wait.progressive.level2.count
        batch.flush.interval.millis bolt.wait.progressive.level1.count bolt.wait.progressive.level2.count
        eventlogger.executors executor.overflow.limit priority ras.acker.executors.per.worker spout.recvq.skips
        spout.wait.progressive.level1.count spout.wait.progressive.level2.count
        """,
    _FROM_1: """
        backpressure.check.millis executor.receive.buffer.size isolate.machines max.error.report.per.interval
        max.spout.pending max.task.parallelism producer.batch.size ras.constraint.max.state.search
        ras.constraint.max.time.secs shellbolt.max.pending tasks transfer.batch.size transfer.buffer.size
        trident.batch.emit.interval.millis trident.windowing.cache.tuple.limit v2.metrics.tick.interval.seconds
        worker.receiver.thread.count workers
        bolts.window.length.count bolts.window.sliding.interval.count
        """,
    _WHOLE: "builtin.metrics.bucket.size.secs error.throttle.interval.secs worker.shared.thread.pool.size",
    _WINDOW_MS: """
        bolts.watermark.event.interval.ms bolts.window.length.duration.ms bolts.window.sliding.interval.duration.ms
        """,
    Kind("a whole number of milliseconds from 0", _whole(0)): "bolts.tuple.timestamp.max.lag.ms",
    Kind("milliseconds, from 100 on", _NUMBER_ABOVE_0.takes): "state.checkpoint.interval.ms",  # less is taken as 100
    _SECS: "message.timeout.secs state.synchronization.timeout.secs subprocess.timeout.secs worker.timeout.secs",
    _SECS_FROM_0: "tick.tuple.freq.secs",
    _MS_FROM_0: "sleep.spout.wait.strategy.time.ms",
    _NUMBER: "max.replication.wait.time.sec min.replication.count",
    _NUMBER_FROM_0: """
        acker.cpu.pcore.percent acker.resources.offheap.memory.mb acker.resources.onheap.memory.mb
        backpressure.wait.park.microsec backpressure.wait.progressive.level3.sleep.millis bolt.wait.park.microsec
        bolt.wait.progressive.level3.sleep.millis component.cpu.pcore.percent component.resources.offheap.memory.mb
        component.resources.onheap.memory.mb metrics.consumer.cpu.pcore.percent
        metrics.consumer.resources.offheap.memory.mb metrics.consumer.resources.onheap.memory.mb
        spout.wait.park.microsec spout.wait.progressive.level3.sleep.millis
        """,
    _NUMBER_ABOVE_0: "localityaware.higher.bound localityaware.lower.bound stats.sample.rate worker.max.heap.size.mb",
    _TEXT: """
        backpressure.wait.strategy bolt.wait.strategy bolts.late.tuple.stream bolts.message.id.field.name kryo.factory
        logging.config multilang.log.handler multilang.serializer name scheduler.strategy spout.wait.strategy
        submitter.principal submitter.user transactional.id tuple.serializer version
        """,
    _DOTTED: "state.provider",
    _TEXTS: """
        auto-credentials auto.task.hooks kryo.decorators scheduler.favored.nodes scheduler.unfavored.nodes
        spread.components state.kryo.register
        """,
    _TEXT_OR_TEXTS: """
        classpath classpath.beginning groups readonly.groups readonly.users users worker.childopts worker.gc.childopts
        worker.logwriter.childopts
        """,
    _MAP: "blobstore.map",
    _TEXT_MAP: "environment worker.metrics",
    _NUMBER_MAP: "component.resources.map",
    _REGISTRATIONS: "kryo.register",
    _LIST: "event.logger.register metrics.consumer.register metrics.reporters",
    Kind("a map, or its JSON as text", lambda value: isinstance(value, str | dict)): "state.provider.config",
    _one_of("S0", "S1", "S2", "S3"): "logging.sensitivity",
}
_OURS = {
    _FLAG: "compat.mild direct.task.plain",
    _FROM_1: "exchange.tuples max.replays",
    _PORT_OR_0: "metrics.prometheus.port",
    _SECS: "metrics.interval.secs",
    _TEXT: """
        deployment drpc.service metrics.prometheus.host parent source.group source.secret.file source.store
        transactional.sqlite.path transactional.store
        """,
    _NAME: "state.name",
    _DOTTED: "state.trace transactional.trace",
    Kind("the URL of a source", _is_text): "source",
    Kind("the URL of a store", _is_text): "store",
    Kind("the URL of a store, or the path of an SQLite file", _is_text): "positions",
    _TEXTS: "input.files",
    _MAP: "batch exchange.edges kafka.options record",
    Kind(
        f"an object with any of {', '.join(_REDIS_ACCESS)}",
        lambda value: isinstance(value, dict) and set(value) <= set(_REDIS_ACCESS),
    ): "redis.access",
    _one_of("auto", "tuple", "root", "block"): "exchange",
    _one_of("at-least-once", "exact"): "state.alignment",
    Kind("a number of bytes above 0", _whole(1)): "buffer.max.bytes",
    Kind("a number of keys, from 0", _whole(0)): "state.cache.keys",
    Kind("seconds above 0, or 0 for no deadline", _NUMBER_FROM_0.takes): "process.timeout.secs",
    Kind("a list of dotted names", _is_texts): "middleware",
    Kind("a list of names", _is_texts): "metrics.registered",
    Kind(
        f"one of {', '.join(_LEVELS)}", lambda value: isinstance(value, str) and value.lower() in _LEVELS
    ): "log.level",
}
_OTHERS = {
    _FLAG: "nimbus.thrift.client.use.tls storm.zookeeper.ssl.enable",
    _PORT: """
        drpc.invocations.port drpc.port nimbus.thrift.port storm.zookeeper.port transactional.zookeeper.port
        """,
    Kind("a port number, or 0 for none", _whole(0, 65535)): "nimbus.thrift.tls.port",
    _FROM_1: "storm.zookeeper.connection.timeout storm.zookeeper.session.timeout",
    _SECS: "supervisor.worker.timeout.secs",
    _HOSTS: "drpc.servers nimbus.seeds storm.zookeeper.servers transactional.zookeeper.servers",
    _TEXT: """
        drpc.invocations.thrift.transport drpc.thrift.transport nimbus.thrift.tls.transport nimbus.thrift.transport
        storm.thrift.transport storm.zookeeper.superACL storm.zookeeper.topology.auth.scheme
        """,
    Kind('the path of a node, such as "/transactional"', _is_node): "transactional.zookeeper.root",
    _SECRET: "storm.zookeeper.topology.auth.payload",
}

KINDS = {
    f"{prefix}{key}": kind
    for prefix, table in (("topology.", _STORMS), ("multilang.", _OURS), ("", _OTHERS))
    for kind, keys in table.items()
    for key in keys.split()
}
KINDS["topology.ackers"] = _FROM_0
WHOLE_ON_STORM = frozenset(
    [
        "supervisor.worker.timeout.secs",
        *(f"topology.{key}" for kind in (_SECS, _SECS_FROM_0, _MS_FROM_0) for key in _STORMS[kind].split()),
        "topology.state.checkpoint.interval.ms",
    ]
)
