"""The choice of the database that a URL names."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.dotted import by_dotted_name
from multilang.helpers.masked import masked_text
from multilang.settings import STORE
from multilang.store.interface import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


DATABASES: Mapping[str, str] = {
    "memory": "multilang.store.memory.MemoryStore",
    "sqlite": "multilang.store.sqlite.SqliteStore",
    "redis": "multilang.store.redis.RedisStore",
    "rediss": "multilang.store.redis.RedisStore",
    "zookeeper": "multilang.store.zookeeper.ZooKeeperStore",
}
"""The class for each scheme of a URL. A database of one's own has the dotted name of its class as its scheme."""


def own_class(url: Any) -> Any:
    """Return the dotted name of a user's class, which a URL has as its scheme; None if it has none."""
    scheme = url.partition(":")[0] if isinstance(url, str) and ":" in url else ""
    return scheme if "." in scheme and "/" not in scheme else None


_CARRIED: dict[str, type[Store]] = {}

FORMS = "sqlite:///FOLDER/FILE.sqlite, redis://HOST:PORT/DATABASE, zookeeper://HOST:PORT/PATH or memory:"


def store_class(url: object, setting: str = STORE) -> type[Store]:
    """Return the class for the database that a URL names. Nothing is opened.

    Args:
        url: The URL.
        setting: The conf key that has the URL, for messages.

    Raises:
        ConfigError: The URL names no database.
    """
    what = f"use {FORMS}, or the dotted name of a subclass of multilang.store.Store in the scheme's place"
    if not isinstance(url, str) or ":" not in url:
        raise ConfigError(f"{setting} is {masked_text(repr(url))}, which names no database; {what}")
    scheme = url.partition(":")[0]
    name = DATABASES.get(scheme, scheme)
    if "." not in name:
        raise ConfigError(f"{setting} is {masked_text(repr(url))}, and {scheme!r} is no database that is known; {what}")
    try:
        found: Any = _CARRIED.get(name) or by_dotted_name(name)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(f"{setting}: {name!r} can't be imported: {problem}; {what}") from problem
    if not isinstance(found, type) or not issubclass(found, Store):
        raise ConfigError(f"{setting}: {name!r} is not a subclass of multilang.store.Store; {what}")
    return found


def is_url(text: str) -> bool:
    """Return whether a text is a store's URL, and no file's path and no ``module:attr`` of a topology."""
    scheme, colon, rest = text.partition(":")
    if "://" in text:
        return True
    if not colon or "." not in scheme or scheme.endswith(".py") or not all(map(str.isidentifier, scheme.split("."))):
        return False
    if rest and not rest.isidentifier():
        return True
    if not scheme.rpartition(".")[2][0].isupper():
        return False
    try:
        store_class(text)
    except ConfigError:
        return False
    return True


def carry(kind: type[Store]) -> None:
    """Register a user's class by its name where it can't be imported: on an executor of Spark's, to which it was sent."""
    _CARRIED[f"{kind.__module__}.{kind.__qualname__}"] = kind


def open_store(url: str, conf: Mapping[str, Any] | None = None, setting: str = STORE) -> Store:
    """Return the store that a URL names. It connects at its first use. Close it.

    Args:
        url: The URL.
        conf: The topology's conf, for passwords, which belong into no URL.
        setting: The conf key that has the URL, for messages.

    Raises:
        ConfigError: The URL names no database, or its path or options are wrong.
        WrongProviderError: The class is a user's, and a method does not take the library's calls.
    """
    kind = store_class(url, setting)
    if kind.__module__.partition(".")[0] == "multilang":
        return kind(url, conf, setting)
    from multilang.store.calls import checked_store

    return checked_store(kind, url, conf, setting)
