"""From the conf to the provider that it names."""

from __future__ import annotations

from importlib import import_module

from multilang.component.errors import ConfigError
from multilang.protocol.codec import loads
from multilang.state.api import StateProvider
from multilang.state.errors import StateError
from multilang.state.serializers import JsonSerializer, serializer
from multilang.state.settings import CONFIG, PROVIDER, TRACE
from multilang.state.steps import traced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

MEMORY = "multilang.state.memory.MemoryStateProvider"
SQLITE = "multilang.state.sqlite.SqliteStateProvider"
REDIS = "multilang.state.redis.RedisStateProvider"

# Storm's own names of its classes, and short ones.
_OURS = {
    "org.apache.storm.state.InMemoryKeyValueStateProvider": MEMORY,
    "org.apache.storm.redis.state.RedisKeyValueStateProvider": REDIS,
    "memory": MEMORY,
    "sqlite": SQLITE,
    "redis": REDIS,
}
_SERIALIZERS = ("keySerializerClass", "valueSerializerClass")


def provider_of(conf: Mapping[str, Any]) -> StateProvider:
    """The provider of ``topology.state.provider``; unless given, SQLite in the embedded cluster and memory on Storm."""
    return provider_from(provider_class(conf), conf)


def provider_class(conf: Mapping[str, Any]) -> type[StateProvider]:
    """The class of the provider. Raises ConfigError for what is none."""
    name = conf.get(PROVIDER)
    if name is None:
        name = SQLITE if conf.get("multilang.parent") == "local" else MEMORY
    if not isinstance(name, str):
        raise ConfigError(f"{PROVIDER} is {name!r}; use a class by its dotted name, or one of {', '.join(_OURS)}")
    found = _load(_OURS.get(name, name))
    if not isinstance(found, type) or not issubclass(found, StateProvider):
        raise ConfigError(f"{PROVIDER} {name!r} is no subclass of multilang.state.StateProvider")
    return found


def provider_from(kind: type[StateProvider], conf: Mapping[str, Any]) -> StateProvider:
    """A provider of that class, with what ``topology.state.provider.config`` has for it."""
    config = _config(conf)
    name = f"{kind.__module__}.{kind.__qualname__}"
    try:
        made = kind(config, conf)
    except (ConfigError, StateError):
        raise
    except Exception as problem:  # of somebody's own
        raise ConfigError(f"{PROVIDER} {name!r} can't be made: {type(problem).__name__}: {problem}") from problem
    if not isinstance(made.__dict__.get("config"), dict) or not isinstance(made.__dict__.get("conf"), dict):
        raise ConfigError(
            f"{PROVIDER} {name!r} has no config or conf of its own: call super().__init__(config, conf) first in its __init__"
        )
    return made


def named(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the conf names beside the library's own, as (setting, dotted name): for whoever ships it."""
    config = _config(conf)
    given = [
        (PROVIDER, conf.get(PROVIDER)),
        *((each, config.get(each)) for each in _SERIALIZERS),
        (TRACE, conf.get(TRACE)),
    ]
    return texts(given, _OURS)


def texts(given: Sequence[tuple[str, Any]], ours: Collection[str]) -> list[tuple[str, str]]:
    """Those that are set, and not to one of ``ours``. Raises ConfigError for what is no name."""
    for setting, name in given:
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"{setting} is {name!r}; use a dotted name, 'package.module.Name'")
    return [(setting, name) for setting, name in given if name is not None and name not in ours]


def check_named(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError for what the conf names and is not there, or is something else; opens nothing."""
    provider_class(conf)
    config = _config(conf)
    for member in _SERIALIZERS:
        serializer(config, member, JsonSerializer)
    traced(conf, TRACE)


def _config(conf: Mapping[str, Any]) -> dict[str, Any]:
    """``topology.state.provider.config``: JSON text, as in Storm, or the object itself."""
    value = conf.get(CONFIG)
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError as problem:
            raise ConfigError(f"{CONFIG} is no JSON: {problem}") from None
    if not isinstance(value, dict):
        raise ConfigError(f'{CONFIG} is a JSON object, such as {{"path": "state.sqlite"}}, not {value!r}')
    return value


def _load(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(
            f"{PROVIDER} {name!r} can't be imported: {problem}; use a class by its dotted name, "
            f"or one of {', '.join(_OURS)}"
        ) from problem
