"""The checks of a conf where it is given: a misspelt key and a value of a wrong type or range are refused by name.

Storm's keys are in ``storm_keys.json``, each with the annotations of Storm's own Config or DaemonConfig and its value in
Storm's defaults.yaml; ``scripts/storm_keys.py`` makes that file. A key takes what Storm takes, and fractions of a second besides
(see ``multilang.shipping.conf``, which refuses them for Storm).
"""

from __future__ import annotations

from functools import cache

from multilang import settings
from multilang.helpers import near
from multilang.settings import Kind, fault, is_number, is_printable, is_text, is_texts, whole
from multilang.topology import importing
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_PAGE = "docs/configuration.md, or multilang config keys"
# Storm's page on guaranteed processing still has these; since 0.9 they have had other names.
_FORMER = {"topology.ackers": "topology.acker.executors"}
# Settings that ``build`` reads, because components and streams depend on them.
_AT_BUILD = (settings.ALIGNMENT,)
_NEAR = 0.85  # the part of two keys' letters that must be the same
_VERY_NEAR = 0.9  # for any other key, which may be a user's own


def check_keys(keys: Iterable[str], what: str) -> None:
    """Raise TopologyError for a key that is almost a known one, or that would be one of this library's and is none.

    Args:
        keys: The keys.
        what: The owner of the keys, for the message.
    """
    for key in keys:
        if key in known():
            continue
        instead = settings.REMOVED.get(key)
        if instead is not None:
            raise TopologyError(f"{what}: {key!r} was removed; {instead}")
        meant = nearest(key)
        if meant is not None:
            raise TopologyError(f"{what}: {key!r} is read by nobody; did you mean {meant!r}?")
        if key.startswith("multilang."):
            raise TopologyError(
                f"{what}: {key!r} is read by nobody; the keys that begin with 'multilang.' are in {_PAGE}"
            )


def check_values(conf: Mapping[Any, Any], what: str) -> None:
    """Raise TopologyError for a value of a wrong type or range; ``what`` names the conf's owner in the message.

    None means a key's default.
    """
    for key, value in conf.items():
        kind = kinds().get(key)
        if kind is not None and value is not None and not kind.takes(value):
            raise TopologyError(f"{what}: {fault(key, value, kind)}")


def check_whole(conf: Mapping[str, Any], what: str) -> None:
    """Raise TopologyError for a fraction where Storm takes a whole number."""
    for key, value in conf.items():
        if isinstance(value, float) and "IsInteger" in _storms().get(key, _NOTHING)[0]:
            raise TopologyError(f"{what}: {key} is {value!r}; Storm takes whole numbers here, so write {_above(value)}")


def check_built(built: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
    """Raise TopologyError if ``conf`` changes a setting that a topology was built with."""
    for key in _AT_BUILD:
        before = settings.value(built, key)
        if key in conf and settings.value(conf, key) != before:
            raise TopologyError(
                f"{key} is {conf[key]!r}, and the topology was built for {before!r}: it can't change after build, so give it "
                f"there: build(conf={{{key!r}: {conf[key]!r}}})"
            )


def renamed(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return a conf with each key under its current name in Storm, and warn about keys with an old one.

    Raises:
        TopologyError: A key is there under both names, with different values.
    """
    if not any(key in conf for key in _FORMER):
        return dict(conf)
    found = {_FORMER.get(key, key): value for key, value in conf.items()}
    for old, new in _FORMER.items():
        if old in conf and conf.get(new, conf[old]) != conf[old]:
            raise TopologyError(
                f"conf {old!r}: {conf[old]!r} and {new!r}: {conf[new]!r} are the same setting; keep the second, which has its "
                "current name"
            )
        if old in conf and not importing.by_task:  # warn once when it is submitted, not in each task's log
            from logging import getLogger

            getLogger(__name__).warning("%s is the old name of %s in Storm, and is read as that", old, new)
    return found


def nearest(key: str) -> str | None:
    """Return the known key that an unknown one probably means: misspelt, or without its first word."""
    known = _by_plain()
    plain = _plain(key)
    if plain in known:
        return known[plain]
    whole = f"topology.{plain}"
    if whole in known and plain.count(".") > 1:
        return whole
    cutoff = _NEAR if plain.startswith(("topology.", "multilang.")) else _VERY_NEAR
    found = near.nearest(plain, known, cutoff)
    return None if found is None or plain.startswith(f"{found}.") else known[found]


@cache
def known() -> frozenset[str]:
    """Return all keys that are read: Storm's, this library's, and old names of Storm's."""
    return frozenset([*_FORMER, *_storms(), *settings.ROWS])


@cache
def kinds() -> dict[str, Kind]:
    """Return the values of each key that is checked: those of a topology, and what this library reads of others."""
    found = {
        key: _KINDS[annotations]
        for key, (annotations, _) in _storms().items()
        if annotations in _KINDS and (key.startswith("topology.") or key in _READ)
    }
    for kind, keys in _OTHERWISE.items():
        found.update(dict.fromkeys(keys.split(), kind))
    found.update({old: found[new] for old, new in _FORMER.items() if new in found})
    return {**found, **{key: row.kind for key, row in settings.ROWS.items()}}


def storm_default(key: str) -> Any:
    """Return a key's value in Storm's defaults.yaml; None if it is not there."""
    return _storms().get(key, _NOTHING)[1]


@cache
def _storms() -> Mapping[str, tuple[str, Any]]:
    from json import loads
    from pkgutil import get_data  # also from a zip

    found: Mapping[str, tuple[str, Any]] = loads(get_data(__package__, "storm_keys.json") or b"")
    return found


@cache
def _by_plain() -> dict[str, str]:
    return {_plain(each): each for each in known()}


def _plain(key: str) -> str:
    return key.lower().replace("_", ".").replace("-", ".")


def _above(value: float) -> int:
    return max(1, -int(-value // 1))


def _is_node(value: Any) -> bool:
    if not is_text(value):
        return False
    parts = value.removeprefix("/").removesuffix("/").split("/")
    return value == "/" or (value[:1] == "/" and all(is_printable(part) and part not in (".", "..") for part in parts))


def _is_secret(value: Any) -> bool:
    from multilang.helpers.masked import is_reference

    return is_text(value) or is_reference(value)


def _is_registrations(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list | tuple) and all(isinstance(item, str | dict) for item in value)
    )


def _is_map_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_map_of_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(is_number(item) for item in value.values())


_NOTHING: tuple[str, Any] = ("", None)
_FROM_0 = Kind("a whole number from 0", whole(0))
_LIST = Kind("a list", lambda value: isinstance(value, list | tuple))
# By the annotations of Storm's class.
_KINDS = {
    "IsBoolean": settings.FLAG,
    "IsInteger": Kind("a whole number", lambda value: type(value) is int),
    "IsInteger IsPositiveNumber": settings.FROM_1,
    "IsInteger IsPositiveNumber(includeZero)": _FROM_0,
    "IsNumber": Kind("a number", is_number),
    "IsPositiveNumber": Kind("a number above 0", lambda value: is_number(value) and value > 0),
    "IsPositiveNumber(includeZero)": Kind("a number from 0", lambda value: is_number(value) and value >= 0),
    "IsString": settings.TEXT,
    "IsImplementationOfClass IsString": settings.TEXT,
    "IsString(S0 S1 S2 S3)": settings.one_of("S0", "S1", "S2", "S3"),
    "IsStringList": settings.TEXTS,
    "IsStringOrStringList": Kind("text, or a list of texts", lambda value: is_text(value) or is_texts(value)),
    "CustomValidator(MapOfStringToMapOfStringToObject)": settings.MAP,
    "IsMapEntryType(String String)": Kind("a map of texts to texts", _is_map_of_texts),
    "IsMapEntryType(String Number)": Kind("a map of texts to numbers", _is_map_of_numbers),
    "IsKryoReg": Kind("a list of class names, or of {class: serializer}", _is_registrations),
    "IsListEntryCustom(EventLoggerRegistry)": _LIST,
    "IsListEntryCustom(MetricRegistry)": _LIST,
    "IsListEntryCustom(MetricReporters)": _LIST,
}
# Keys of Storm's that this library reads, although they are not of a topology.
_READ = frozenset(
    [
        "drpc.invocations.thrift.transport",
        "drpc.thrift.transport",
        "nimbus.thrift.client.use.tls",
        "nimbus.thrift.tls.transport",
        "nimbus.thrift.transport",
        "storm.thrift.transport",
        "storm.zookeeper.ssl.enable",
        "storm.zookeeper.superACL",
        "storm.zookeeper.topology.auth.scheme",
    ]
)
# Keys of Storm's that take other values here than in Storm's class.
_OTHERWISE = {
    settings.FLAG: "topology.ras.order.executors.by.proximity.needs",
    settings.FROM_1: """
        topology.tasks topology.worker.receiver.thread.count storm.zookeeper.connection.timeout
        storm.zookeeper.session.timeout
        """,
    settings.SECS: """
        supervisor.worker.timeout.secs topology.message.timeout.secs topology.state.synchronization.timeout.secs
        topology.subprocess.timeout.secs topology.worker.timeout.secs
        """,
    Kind("seconds from 0", lambda value: is_number(value) and value >= 0): "topology.tick.tuple.freq.secs",
    Kind(
        "a number of milliseconds from 0", lambda value: is_number(value) and value >= 0
    ): "topology.sleep.spout.wait.strategy.time.ms",
    # less is taken as 100
    Kind(
        "milliseconds, from 100 on", lambda value: is_number(value) and value > 0
    ): "topology.state.checkpoint.interval.ms",
    Kind("a whole number of milliseconds from 0", whole(0)): "topology.bolts.tuple.timestamp.max.lag.ms",
    Kind("a whole number of milliseconds from 1", whole(1)): """
        topology.bolts.watermark.event.interval.ms topology.bolts.window.length.duration.ms
        topology.bolts.window.sliding.interval.duration.ms
        """,
    settings.DOTTED: "topology.state.provider",
    Kind("a map, or its JSON as text", lambda value: isinstance(value, str | dict)): "topology.state.provider.config",
    Kind("a port number from 1 to 65535", whole(1, 65535)): """
        drpc.invocations.port drpc.port nimbus.thrift.port storm.zookeeper.port transactional.zookeeper.port
        """,
    Kind("a port number, or 0 for none", whole(0, 65535)): "nimbus.thrift.tls.port",
    Kind('a list of hosts, ["host1", "host2"]', lambda value: is_texts(value) and len(value) > 0): """
        drpc.servers nimbus.seeds storm.zookeeper.servers transactional.zookeeper.servers
        """,
    Kind('the path of a node, such as "/transactional"', _is_node): "transactional.zookeeper.root",
    Kind('text, {"env": NAME} or {"file": PATH}', _is_secret): "storm.zookeeper.topology.auth.payload",
}
