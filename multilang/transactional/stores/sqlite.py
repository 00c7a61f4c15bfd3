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

    def claim(self) -> None:
        FILE.claim(self.path, self)

    def get_data(self, path: str) -> Any:
        rows = self._execute("SELECT value FROM nodes WHERE path = ?", self._full(path))
        return loads(rows[0][0]) if rows else None

    def set_data(self, path: str, value: Any) -> None:
        self._execute("INSERT OR REPLACE INTO nodes VALUES (?, ?)", self._full(path), dumps(value))

    def delete(self, path: str) -> None:
        # What is deleted is read by nobody: it need not reach the disk before what is set next does.
        self._execute("PRAGMA synchronous = NORMAL")
        self._execute("DELETE FROM nodes WHERE path = ?", self._full(path))
        self._execute("PRAGMA synchronous = FULL")

    def list(self, path: str) -> Sequence[str]:
        full = self._full(path)
        below = f"{full}/"
        rows = self._execute("SELECT path FROM nodes WHERE path > ? AND path < ?", below, f"{full}{_AFTER_SLASH}")
        return [*dict.fromkeys(row[0][len(below) :].partition("/")[0] for row in rows)]

    def close(self) -> None:
        self._connection.close()
        FILE.release(self.path, self)

    def _full(self, path: str) -> str:
        return f"{self.id}/{path}"  # a file that was named may have served another topology before

    def _execute(self, statement: str, *values: str) -> Any:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as problem:
            raise FILE.explained(problem, self.path) from problem
