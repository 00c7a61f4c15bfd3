"""The store of a topology's transactions, by its conf."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.settings import TRANSACTIONS, value
from multilang.state.providers import texts
from multilang.store import opening
from multilang.store.claims import check_free_for
from multilang.store.settings import own_store, place_of, state_file, store_url, stored_name
from multilang.transactional.names import ID, is_id
from multilang.transactional.state import TransactionalState, what_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.store.interface import Store

_SHORT = ("sqlite", "zookeeper")


def open_state(conf: Mapping[str, Any]) -> TransactionalState:
    """Return the state of the transactions of the topology of ``conf``."""
    return TransactionalState(_opened(conf), _id(conf), conf)


def check_state(conf: Mapping[str, Any]) -> None:
    """Check that the transactions can be used; nothing is claimed.

    Raises:
        ConfigError: The conf names no store.
        InUseError: Another run owns the transactions.
        StateError: The store can't be used now.
    """
    id, store = _id(conf), _opened(conf)
    try:
        store.check()
        check_free_for(conf, store, place_of("transactions", id), what_of(id))
    finally:
        store.close()


def named(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the setting and dotted name of each thing in the conf that is not this library's, to be shipped."""
    name = conf.get(TRANSACTIONS)
    own = opening.own_class(name) if isinstance(name, str) and ":" in name else name
    return texts([(TRANSACTIONS, own)], _SHORT)


def check_named(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError if something that the conf names can't be imported or has the wrong type. Nothing is opened."""
    store_class(conf)


def store_class(conf: Mapping[str, Any]) -> type[Store]:
    """Return the class of the store of the transactions. Nothing is opened.

    Raises:
        ConfigError: The conf names no store.
    """
    return opening.store_class(*store_of(conf))


def store_of(conf: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the URL of the store of the transactions, and the conf key that has it.

    Unless the conf names one, it is the topology's own SQLite file on the embedded cluster and on Spark, and ZooKeeper on Storm.
    """
    name = value(conf, TRANSACTIONS)
    if name is None:
        return store_url(conf) or ("zookeeper:", TRANSACTIONS)
    own = own_store(conf, TRANSACTIONS)
    if own is not None:
        return own, TRANSACTIONS
    if name == "sqlite":
        return f"sqlite://{state_file(stored_name(conf))}", TRANSACTIONS
    return (name if ":" in name else f"{name}:"), TRANSACTIONS


def _opened(conf: Mapping[str, Any]) -> Store:
    """Return the store of the transactions.

    Raises:
        ConfigError: The conf names none that several tasks see.
    """
    url, setting = store_of(conf)
    store = opening.open_store(url, conf, setting)
    if not store.durable:
        raise ConfigError(
            f"transactions are stored by several tasks, and {setting} names {store.describe()}: name another store in "
            f"{TRANSACTIONS}, such as sqlite:///FOLDER/FILE.sqlite"
        )
    return store


def _id(conf: Mapping[str, Any]) -> str:
    id = conf.get(ID)
    if not is_id(id):
        raise ConfigError(f"{ID} is {id!r}; use printable text without '/'")
    return str(id)
