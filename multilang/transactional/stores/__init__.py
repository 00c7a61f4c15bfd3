"""Where the state of transactions is: a SQLite file on one machine, ZooKeeper on a cluster."""

from __future__ import annotations

from importlib import import_module

from multilang.component.errors import ConfigError
from multilang.transactional.names import ID, STORE
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_OURS = {
    "sqlite": "multilang.transactional.stores.sqlite.SqliteTransactionalState",
    "zookeeper": "multilang.transactional.stores.zookeeper.ZooKeeperTransactionalState",
}


def open_state(conf: Mapping[str, Any]) -> TransactionalState:
    """The state of the topology of ``conf``; unless it says where, in SQLite here or on Spark, and in ZooKeeper on Storm."""
    return _kind(conf)(conf, _id(conf))


def check_state(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError or StateError when it can't be opened now."""
    _kind(conf).check(conf, _id(conf))


def _kind(conf: Mapping[str, Any]) -> type[TransactionalState]:
    name = conf.get(STORE)
    if name is None:
        name = "sqlite" if conf.get("multilang.parent") in ("local", "spark") else "zookeeper"
    what = (
        f"use a subclass of multilang.transactional.TransactionalState by its dotted name, or one of {', '.join(_OURS)}"
    )
    if not isinstance(name, str):
        raise ConfigError(f"{STORE} is {name!r}; {what}")
    module, _, attribute = _OURS.get(name, name).rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as problem:
        raise ConfigError(f"{STORE} {name!r} can't be imported: {problem}; {what}") from problem
    if not isinstance(found, type) or not issubclass(found, TransactionalState):
        raise ConfigError(f"{STORE} {name!r} is no subclass of TransactionalState; {what}")
    return found


def _id(conf: Mapping[str, Any]) -> str:
    id = conf.get(ID)
    if not isinstance(id, str) or not id or "/" in id:
        raise ConfigError(f"{ID} is {id!r}; use a name without '/'")
    return id
