"""The state of transactions in a SQLite file: durable on one machine, with no server. The embedded cluster's default."""

from __future__ import annotations

import os
import sqlite3

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.state.settings import state_file
from multilang.state.sqlite_file import SqliteFile
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PATH = "multilang.transactional.sqlite.path"

_SCHEMA = "CREATE TABLE nodes (path TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
FILE = SqliteFile("file of transactions", 0x4D4C5458, 1, _SCHEMA, PATH)  # "MLTX"
_AFTER_SLASH = chr(ord("/") + 1)


class SqliteTransactionalState(TransactionalState):
    """``multilang.transactional.sqlite.path``: the file; unless given, the topology's own beside the files of state."""

    def __init__(self, conf: Mapping[str, Any], id: str) -> None:
        super().__init__(conf, id)
        path = conf.get(PATH)
        if path is None:
            path = state_file(id, "transactional")
        elif not isinstance(path, str) or not path:
            raise ConfigError(f"{PATH} is {path!r}; name a file")
        self.path = os.path.abspath(os.path.expanduser(path))
        self._connection = FILE.open(self.path)
        self._deleted: list[tuple[str]] = []  # with the next value that is set: nobody waits for it

    def claim(self) -> None:
        FILE.claim(self.path, self)

    def get_data(self, path: str) -> Any:
        rows = self._rows("SELECT value FROM nodes WHERE path = ?", self._full(path))
        return loads(rows[0][0]) if rows else None

    def set_data(self, path: str, value: Any) -> None:
        self._write([(self._full(path), dumps(value))])

    def delete(self, path: str) -> None:
        self._deleted.append((self._full(path),))

    def list(self, path: str) -> Sequence[str]:
        full = self._full(path)
        below = f"{full}/"
        rows = self._rows("SELECT path FROM nodes WHERE path > ? AND path < ?", below, f"{full}{_AFTER_SLASH}")
        return [*dict.fromkeys(row[0][len(below) :].partition("/")[0] for row in rows)]

    def close(self) -> None:
        if self._deleted:
            self._write([])
        self._connection.close()
        FILE.release(self.path, self)

    def _full(self, path: str) -> str:
        return f"{self.id}/{path}"  # a file that was named may have served another topology before

    def _rows(self, statement: str, *values: str) -> Any:
        if self._deleted:
            self._write([])
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as problem:
            raise FILE.explained(problem, self.path) from problem

    def _write(self, rows: Sequence[tuple[str, str]]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM nodes WHERE path = ?", self._deleted)
            connection.executemany("INSERT OR REPLACE INTO nodes VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as problem:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise FILE.explained(problem, self.path) from problem
        self._deleted.clear()
