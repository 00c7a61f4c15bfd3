"""The table of databases names classes that are there, and what a conf may name follows from it."""

from __future__ import annotations

import pytest

from multilang.component.errors import ConfigError
from multilang.dotted import by_dotted_name
from multilang.state import StateProvider
from multilang.state.old_databases import DATABASES
from multilang.state.providers import provider_class
from multilang.transactional.maps import Backing
from multilang.transactional.state import TransactionalState
from multilang.transactional.stores import store_class

KINDS = {
    "states": StateProvider,
    "transactions": TransactionalState,
    "maps": Backing,
}


@pytest.mark.parametrize("database", DATABASES)
def test_each_class_of_a_row_is_one_of_its_kind(database):
    row = DATABASES[database]
    found = {column: by_dotted_name(name) for column in KINDS if (name := getattr(row, column))}
    assert found
    for column, kind in found.items():
        assert issubclass(kind, KINDS[column])
        assert f"{kind.__module__}.{kind.__qualname__}" == getattr(row, column)


@pytest.mark.parametrize("database", DATABASES)
def test_a_conf_names_a_database_by_its_row_or_is_told_the_rows_that_there_are(database):
    row = DATABASES[database]
    for name in filter(None, (row.states and database, row.java, row.states)):
        assert provider_class({"topology.state.provider": name}) is by_dotted_name(row.states)
    if not row.states:
        with pytest.raises(ConfigError, match=r"or one of .*memory, sqlite, redis"):
            provider_class({"topology.state.provider": database})
    if row.transactions:
        assert store_class({"multilang.transactional.store": database}) is by_dotted_name(row.transactions)
    else:
        with pytest.raises(ConfigError, match="or one of sqlite, zookeeper"):
            store_class({"multilang.transactional.store": database})
