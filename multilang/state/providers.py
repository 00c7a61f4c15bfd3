"""The choice of the state provider that the conf names."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.dotted import by_dotted_name
from multilang.protocol.codec import loads
from multilang.settings import MARKS, OWN_STORE, PARENT, POSITIONS, STORE, TRACE
from multilang.state.provider import StateProvider
from multilang.state.serializers import JsonSerializer, serializer
from multilang.state.settings import CONFIG, PROVIDER
from multilang.state.steps import traced
from multilang.store.errors import StateError
from multilang.store.opening import own_class, store_class
from multilang.store.settings import own_store, store_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from multilang.store.interface import Store

_STORE = "multilang.state.databases.StoreProvider"
MEMORY = "multilang.state.databases.MemoryStateProvider"
SQLITE = "multilang.state.databases.SqliteStateProvider"
_REDIS = "multilang.state.redis.RedisStateProvider"

# Short names, and the class names of Storm.
_OURS = {
    "memory": MEMORY,
    "sqlite": SQLITE,
    "redis": _REDIS,
    "org.apache.storm.state.InMemoryKeyValueStateProvider": MEMORY,
    "org.apache.storm.redis.state.RedisKeyValueStateProvider": _REDIS,
}
_STORES = (STORE, POSITIONS, MARKS)  # the keys with the URL of a store
_SERIALIZERS = ("keySerializerClass", "valueSerializerClass")


def provider_of(conf: Mapping[str, Any]) -> StateProvider:
    """Return the provider that ``topology.state.provider`` names.

    Without that setting the states are in ``multilang.store``. Without that they are in an SQLite file on the embedded
    cluster, and in memory on Storm. In a simulated run they are in its own store, unless it was given a provider.
    """
    return provider_from(provider_class(conf), conf)


def provider_class(conf: Mapping[str, Any]) -> type[StateProvider]:
    """Return the class of the provider that the conf names.

    Raises:
        ConfigError: The name is not that of a StateProvider.
    """
    name = conf.get(PROVIDER)
    if isinstance(name, str) and _OURS.get(name) != MEMORY and own_store(conf, PROVIDER, CONFIG):
        name = None
    if name is None:
        local = SQLITE if conf.get(PARENT) == "local" else MEMORY
        name = local if conf.get(STORE) is None and conf.get(OWN_STORE) is None else _STORE
    if not isinstance(name, str):
        raise ConfigError(f"{PROVIDER} is {name!r}; use a class by its dotted name, or one of {', '.join(_OURS)}")
    found = _load(_OURS.get(name, name))
    if not isinstance(found, type) or not issubclass(found, StateProvider):
        raise ConfigError(f"{PROVIDER} {name!r} is not a subclass of multilang.state.StateProvider")
    return found


def provider_from(kind: type[StateProvider], conf: Mapping[str, Any]) -> StateProvider:
    """Return a provider of this class, with the config in ``topology.state.provider.config``."""
    config = _config(conf)
    name = f"{kind.__module__}.{kind.__qualname__}"
    try:
        made = kind(config, conf)
    except (ConfigError, StateError):
        raise
    except Exception as problem:  # raised by a user's class
        raise ConfigError(f"{PROVIDER} {name!r} can't be made: {type(problem).__name__}: {problem}") from problem
    if not isinstance(made.__dict__.get("config"), dict) or not isinstance(made.__dict__.get("conf"), dict):
        raise ConfigError(
            f"{PROVIDER} {name!r} has no config or conf of its own: call super().__init__(config, conf) first in its __init__"
        )
    return made


def store_or_provider(conf: Mapping[str, Any]) -> type[Store | StateProvider]:
    """Return the class with the packages that workers need for the states: that of the store, or that of a provider.

    Raises:
        ConfigError: The conf names none.
    """
    found = provider_class(conf)
    url = store_url(conf) if found is by_dotted_name(_STORE) else None
    return found if url is None else store_class(*url)


def check_config(conf: Mapping[str, Any], durable: bool) -> None:
    """Check the conf's provider, as far as possible before the topology runs.

    Nothing is opened, and no user's provider is made.

    Args:
        conf: The conf, perhaps without what a cluster adds to it.
        durable: Whether the states must outlive their tasks.

    Raises:
        ConfigError: The provider will refuse its config, or is not durable enough.
    """
    name = conf.get(PROVIDER)
    if (name is None and conf.get(STORE) is None) or (isinstance(name, str) and name not in _OURS):
        _config(conf)
        return
    provider = provider_of(conf)
    if durable:
        check_durable(provider)


def check_durable(provider: StateProvider) -> None:
    """Raise ConfigError if the provider's states end with their tasks, so that exact alignment can't use them."""
    if not provider.durable:
        raise ConfigError(
            f"exact alignment needs states that outlive their tasks, and they are in {provider.describe()}: "
            f"name another place in {STORE}"
        )


def named(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the setting and dotted name of each thing in the conf that is not this library's, to be shipped."""
    config = _config(conf)
    given = [
        (PROVIDER, conf.get(PROVIDER)),
        *((each, own_class(conf.get(each))) for each in _STORES),
        *((each, config.get(each)) for each in _SERIALIZERS),
        (TRACE, conf.get(TRACE)),
    ]
    return texts(given, _OURS)


def texts(given: Sequence[tuple[str, Any]], ours: Collection[str]) -> list[tuple[str, str]]:
    """Return the settings that have a value which is not in ``ours``.

    Raises:
        ConfigError: A value is no text.
    """
    for setting, name in given:
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"{setting} is {name!r}; use a dotted name, 'package.module.Name'")
    return [(setting, name) for setting, name in given if name is not None and name not in ours]


def check_named(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError if something that the conf names can't be imported or has the wrong type. Nothing is opened."""
    store_or_provider(conf)
    for setting in _STORES:
        if own_class(conf.get(setting)) is not None:
            store_class(conf[setting], setting)
    config = _config(conf)
    for member in _SERIALIZERS:
        serializer(config, member, JsonSerializer)
    traced(conf)


def _config(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``topology.state.provider.config``, which is an object or, as in Storm, JSON text."""
    value = conf.get(CONFIG)
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError as problem:
            raise ConfigError(f"{CONFIG} is not JSON: {problem}") from None
    if not isinstance(value, dict):
        raise ConfigError(f'{CONFIG} is a JSON object, such as {{"path": "state.sqlite"}}, not {value!r}')
    if own_store(conf, PROVIDER, CONFIG):
        return {member: each for member, each in value.items() if member in _SERIALIZERS}
    return value


def _load(name: str) -> Any:
    try:
        return by_dotted_name(name)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(
            f"{PROVIDER} {name!r} can't be imported: {problem}; use a class by its dotted name, "
            f"or one of {', '.join(_OURS)}"
        ) from problem
