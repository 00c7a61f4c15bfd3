"""A query of an SQLite database as a source: a position is the last key that was read.

The query returns the rows whose integer key, its first column, is above ``:after`` and not above ``:to``, in the order
of keys::

    SELECT id, source, target, amount FROM transfers WHERE id > :after AND id <= :to ORDER BY id

With ``partitions`` above 1, each partition has its own keys: the query must then also have ``AND id % :partitions =
:partition``. Keys only grow: a row that is added later than one with a greater key is not read.
"""

from __future__ import annotations

import os
import sqlite3

from multilang.component.errors import ConfigError, SourceUnavailable
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceSpout,
    TransactionalSourceSpout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

WAIT_SECS = 5.0  # how long to wait for another program that is writing
_LEAST, _GREATEST = -(2**63), 2**63 - 1


class _Sqlite(SourceSpout):
    def __init__(
        self,
        path: str | os.PathLike[str],
        query: str,
        fields: Sequence[str],
        batch_size: int = 1000,
        partitions: int = 1,
    ) -> None:
        super().__init__(fields, batch_size)
        if type(partitions) is not int or partitions < 1:
            raise ConfigError(f"partitions is {partitions!r}; use a number from 1")
        needed = [":after", ":to", *([":partition", ":partitions"] if partitions > 1 else [])]
        missing = [name for name in needed if name not in query.replace("(", " ").replace(")", " ").split()]
        if missing:
            raise ConfigError(f"the query of the spout has no {' and no '.join(missing)}: {query!r}; see {__name__}")
        self.path = os.path.abspath(os.path.expanduser(path))
        self.query = query
        self.partitions = partitions

    def open(self, conf: Mapping[str, Any]) -> SqliteSource:
        return SqliteSource(self.path, self.query, len(self.fields), self.partitions)


class TransactionalSqliteSpout(_Sqlite, TransactionalSourceSpout):
    """Rows of an SQLite query, the same in each replay.

    Args:
        path: The database file.
        query: The query, with ``:after`` and ``:to``; see the module.
        fields: The names of the query's columns.
        batch_size: The largest number of rows of a partition in one batch.
        partitions: The number of partitions.
    """


class OpaqueTransactionalSqliteSpout(_Sqlite, OpaqueTransactionalSourceSpout):
    """Rows of an SQLite query, which may differ in a replay.

    Its arguments are those of TransactionalSqliteSpout.
    """


class SqliteSource(Source):
    """The source of both spouts of SQLite. ``columns`` is the number of columns that the query must have."""

    forgets = True  # rows may be deleted when they are committed

    def __init__(self, path: str, query: str, columns: int, partitions: int) -> None:
        if not os.path.isfile(path):
            raise ConfigError(f"there is no database {path}, which the spout is to read; make it, or name another")
        self._path = path
        self._query = query
        self._partitions = partitions
        self._connection = sqlite3.connect(path, timeout=WAIT_SECS, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA query_only = ON")
            cursor = self._connection.execute(query, self._range(0, _LEAST, _LEAST))
        except sqlite3.Error as problem:
            self._connection.close()
            raise ConfigError(f"the spout's query can't be run in {path}: {problem}. It is {query!r}") from problem
        found = [each[0] for each in cursor.description]
        if len(found) != columns:
            self._connection.close()
            raise ConfigError(f"the spout has {columns} fields, and its query {len(found)} columns: {', '.join(found)}")

    def num_partitions(self) -> int:
        return self._partitions

    def first(self, partition: int) -> int:
        return _LEAST

    def describe(self) -> str:
        return f"database {self._path}"

    def identity(self, partition: int) -> dict[str, Any]:
        return {"partitions": self._partitions}

    def read(self, partition: int, position: int, most: int) -> tuple[list[list[Any]], int]:
        rows = self._rows(partition, position, _GREATEST, most)
        return rows, rows[-1][0] if rows else position

    def read_again(self, partition: int, start: int, end: int) -> list[list[Any]]:
        return self._rows(partition, start, end)

    def has_more(self, partition: int, position: int) -> bool:
        return bool(self._rows(partition, position, _GREATEST, 1))

    def close(self) -> None:
        self._connection.close()

    def _range(self, partition: int, after: int, to: int) -> dict[str, int]:
        return {"after": after, "to": to, "partition": partition, "partitions": self._partitions}

    def _rows(self, partition: int, after: int, to: int, most: int | None = None) -> list[list[Any]]:
        key = after
        try:
            cursor = self._connection.execute(self._query, self._range(partition, key, to))
            rows = [list(row) for row in (cursor.fetchall() if most is None else cursor.fetchmany(most))]
            cursor.close()  # an open cursor holds up writers
        except sqlite3.Error as problem:
            raise SourceUnavailable(f"the spout's query can't be run in {self._path}: {problem}") from problem
        for row in rows:
            if type(row[0]) is not int or row[0] <= key:
                raise SourceUnavailable(
                    f"the query's first column is to be an integer key that grows from row to row, and {row[0]!r} follows {key}: "
                    f"add ORDER BY, and put the key first. The query is {self._query!r}"
                )
            key = row[0]
        return rows
