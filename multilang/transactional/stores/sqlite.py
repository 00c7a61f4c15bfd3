"""The state of transactions in a SQLite file: durable on one machine, with no server. The embedded cluster's default."""

from __future__ import annotations

import os
import sqlite3

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.state.settings import owner_of, state_file
from multilang.state.sqlite_file import SqliteFile
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.state.owner import Ownership

PATH = "multilang.transactional.sqlite.path"

_SCHEMA = "CREATE TABLE nodes (path TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
FILE = SqliteFile("file of transactions", 0x4D4C5458, 2, _SCHEMA, PATH, {1: ""})  # "MLTX"
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
        self._owned: Ownership | None = None

    def claim(self) -> None:
        run, topology = owner_of(self.conf)
        self._owned = FILE.claim(self.path, run, topology, self.id)

    def get_data(self, path: str) -> Any:
        rows = self._rows("SELECT value FROM nodes WHERE path = ?", self._full(path))
        return loads(rows[0][0]) if rows else None

    def set_data(self, path: str, value: Any) -> None:
        self.update({path: value})

    def delete(self, path: str) -> None:
        self.update({}, [path])

    def update(self, values: Mapping[str, Any], deleted: Iterable[str] = ()) -> None:
        connection = self._connection
        rows = [(self._full(path), dumps(value)) for path, value in values.items()]
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO nodes VALUES (?, ?)", rows)
            connection.executemany("DELETE FROM nodes WHERE path = ?", [(self._full(path),) for path in deleted])
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as problem:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise FILE.explained(problem, self.path) from problem

    def list(self, path: str) -> Sequence[str]:
        return [*dict.fromkeys(below.partition("/")[0] for below, _ in self._below(path))]

    def last_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, Any]:
        last: dict[str, tuple[int, str]] = {}
        for below, value in self._below(path):
            name, _, txid = below.partition("/")
            if int(txid) <= last_txid:
                last[name] = max((int(txid), value), last.get(name, (0, "")))
        return {name: loads(value) for name, (_, value) in last.items()}

    def close(self) -> None:
        self._connection.close()
        if self._owned is not None:
            self._owned.release()

    def _full(self, path: str) -> str:
        return f"{self.id}/{path}"  # a file that was named may have served another topology before

    def _below(self, path: str) -> Any:
        full = self._full(path)
        statement = "SELECT substr(path, ?), value FROM nodes WHERE path > ? AND path < ?"
        return self._rows(statement, len(full) + 2, f"{full}/", f"{full}{_AFTER_SLASH}")

    def _rows(self, statement: str, *values: str | int) -> Any:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as problem:
            raise FILE.explained(problem, self.path) from problem
