"""The stores of transactions: an SQLite file on one machine, ZooKeeper on a cluster."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.dotted import by_dotted_name
from multilang.state.old_databases import DATABASES
from multilang.state.providers import texts
from multilang.state.steps import traced
from multilang.transactional.names import ID, STORE, TRACE, is_id
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_OURS = {name: row.transactions for name, row in DATABASES.items() if row.transactions}


def open_state(conf: Mapping[str, Any]) -> TransactionalState:
    """Return the state of the transactions of the topology of ``conf``.

    Unless the conf names a store, it is SQLite on the embedded cluster and on Spark, and ZooKeeper on Storm.
    """
    return store_class(conf)(conf, _id(conf))


def check_state(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError or StateError if the state can't be opened now."""
    store_class(conf).check(conf, _id(conf))


def named(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the setting and dotted name of each thing in the conf that is not this library's, to be shipped."""
    given = [(STORE, conf.get(STORE)), (TRACE, conf.get(TRACE))]
    return texts(given, _OURS)


def check_named(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError if something that the conf names can't be imported or has the wrong type. Nothing is opened."""
    store_class(conf)
    traced(conf, TRACE)


def store_class(conf: Mapping[str, Any]) -> type[TransactionalState]:
    """Return the class of the store that the conf names.

    Raises:
        ConfigError: The name is not that of a TransactionalState.
    """
    name = conf.get(STORE)
    if name is None:
        name = "sqlite" if conf.get("multilang.parent") in ("local", "spark") else "zookeeper"
    what = (
        f"use a subclass of multilang.transactional.TransactionalState by its dotted name, or one of {', '.join(_OURS)}"
    )
    if not isinstance(name, str):
        raise ConfigError(f"{STORE} is {name!r}; {what}")
    try:
        found = by_dotted_name(_OURS.get(name, name))
    except (ImportError, AttributeError, ValueError) as problem:
        raise ConfigError(f"{STORE} {name!r} can't be imported: {problem}; {what}") from problem
    if not isinstance(found, type) or not issubclass(found, TransactionalState):
        raise ConfigError(f"{STORE} {name!r} is not a subclass of TransactionalState; {what}")
    return found


def _id(conf: Mapping[str, Any]) -> str:
    id = conf.get(ID)
    if not is_id(id):
        raise ConfigError(f"{ID} is {id!r}; use printable text without '/'")
    return str(id)
