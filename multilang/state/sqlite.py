"""State in an SQLite file: durable on one machine, with no server. The embedded cluster's default.

A checkpoint is one transaction for each phase and task. Whatever is killed at whatever instant, the file has the old state
or the new one.
"""

from __future__ import annotations

import os
import sqlite3

from multilang.component.errors import ConfigError
from multilang.state.api import StateProvider
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, cached_keys, check_members, state_file
from multilang.state.sqlite_file import SqliteFile
from multilang.state.stored import Store, StoredState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

_BATCH = 10_000  # rows read at once

_SCHEMA = """\
CREATE TABLE txids (namespace TEXT PRIMARY KEY, committed INTEGER, prepared INTEGER) WITHOUT ROWID;
CREATE TABLE data (namespace TEXT, key BLOB, value BLOB NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
CREATE TABLE prepared (namespace TEXT, key BLOB, value BLOB, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
"""

FILE = SqliteFile("state file", 0x4D4C5354, 1, _SCHEMA, CONFIG)  # "MLST"


class SqliteStateProvider(StateProvider):
    """``topology.state.provider.config``: ``{"path": "/var/lib/shop/state.sqlite"}``.

    Without a path it is the topology's own file in ``$MULTILANG_STATE_HOME``, or else in the user's folder for state.
    """

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        super().__init__(config, conf)
        check_members(self.config, "state in SQLite", ("path",))
        path = self.config.get("path")
        if path is None:
            path = state_file(str(self.conf.get("topology.name") or "topology"))
        elif not isinstance(path, str) or not path or "\0" in path:
            raise ConfigError(f"{CONFIG}: path is {path!r}; name a file")
        self.path = os.path.abspath(os.path.expanduser(path))
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)

    def new_state(self, namespace: str) -> StoredState:
        store = SqliteStore(FILE.open(self.path), namespace, self.path)
        return StoredState(namespace, store, self._keys, self._values, cached_keys(self.conf))

    def namespaces(self) -> list[str]:
        if not os.path.exists(self.path):
            return []
        connection = FILE.open(self.path)
        try:
            rows = connection.execute("SELECT namespace FROM txids UNION SELECT namespace FROM data ORDER BY 1")
            return [row[0] for row in rows]
        finally:
            connection.close()

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        store = SqliteStore(FILE.open(self.path), namespace, self.path)
        try:
            return store.txids()
        finally:
            store.close()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        connection = FILE.open(self.path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for namespace, content in states.items():
                for statement in (
                    "DELETE FROM data WHERE namespace = ?",
                    "DELETE FROM prepared WHERE namespace = ?",
                    "DELETE FROM txids WHERE namespace = ?",
                ):
                    connection.execute(statement, (namespace,))
                rows = ((namespace, self._keys.encode(k), self._values.encode(v)) for k, v in content.items())
                connection.executemany("INSERT INTO data VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def check(self) -> None:
        """Read the file once, if there is one."""
        if os.path.exists(self.path):
            FILE.open(self.path).close()

    def claim(self) -> None:
        """A lock on a file beside it, which the system takes back when the process dies."""
        FILE.claim(self.path, self)

    def close(self) -> None:
        FILE.release(self.path, self)

    def describe(self) -> str:
        return f"SQLite file {self.path}"


class SqliteStore(Store):
    """One namespace of a file."""

    def __init__(self, connection: sqlite3.Connection, namespace: str, path: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._path = path
        row = self._one("SELECT committed, prepared FROM txids WHERE namespace = ?")
        self._txids: tuple[int | None, int | None] = (None, None) if row is None else (row[0], row[1])

    def txids(self) -> tuple[int | None, int | None]:
        return self._txids

    def count(self) -> int:
        found = self._one("SELECT count(*) FROM data WHERE namespace = ?")
        return int(found[0]) if found else 0

    def load(self, key: bytes) -> bytes | None:
        for statement in (
            "SELECT value FROM prepared WHERE namespace = ? AND key = ?",
            "SELECT value FROM data WHERE namespace = ? AND key = ?",
        ):
            found = self._one(statement, key)
            if found is not None:
                return found[0]  # type: ignore[no-any-return]
        return None

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        cursor = self._connection.cursor()
        cursor.arraysize = _BATCH
        name = (self._namespace,)
        self._guarded(cursor.execute, "SELECT key, value FROM prepared WHERE namespace = ?", name)
        prepared = dict(cursor.fetchall())
        yield from ((key, value) for key, value in prepared.items() if value is not None)
        self._guarded(cursor.execute, "SELECT key, value FROM data WHERE namespace = ?", name)
        while rows := self._guarded(cursor.fetchmany):
            for key, value in rows:
                if key not in prepared:
                    yield key, value

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        name = self._namespace
        committed = self._txids[0]

        def write() -> None:
            execute = self._connection.executemany
            execute("INSERT OR REPLACE INTO prepared VALUES (?, ?, ?)", ((name, key, value) for key, value in rows))
            self._remember(committed, txid)

        self._transaction(write)
        self._txids = (committed, txid)

    def commit(self, txid: int) -> None:
        def write() -> None:
            execute = self._connection.execute
            name = (self._namespace,)
            execute(
                "INSERT OR REPLACE INTO data SELECT * FROM prepared WHERE namespace = ? AND value IS NOT NULL", name
            )
            execute(
                "DELETE FROM data WHERE namespace = ?1 AND key IN "
                "(SELECT key FROM prepared WHERE namespace = ?1 AND value IS NULL)",
                name,
            )
            execute("DELETE FROM prepared WHERE namespace = ?", name)
            self._remember(txid, txid)

        self._transaction(write)
        self._txids = (txid, txid)

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._transaction(lambda: self._write(rows))

    def write_if(self, key: bytes, before: bytes | None, rows: Sequence[tuple[bytes, bytes | None]]) -> bool:
        found = False

        def write() -> None:
            nonlocal found
            found = self.load(key) == before
            if found:
                self._write(rows)

        self._transaction(write)
        return found

    def rollback(self) -> None:
        committed = self._txids[0]

        def write() -> None:
            self._connection.execute("DELETE FROM prepared WHERE namespace = ?", (self._namespace,))
            self._remember(committed, committed)

        self._transaction(write)
        self._txids = (committed, committed)

    def close(self) -> None:
        self._connection.close()

    def _write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        for key, value in rows:
            if value is None:
                self._connection.execute("DELETE FROM data WHERE namespace = ? AND key = ?", (self._namespace, key))
            else:
                self._connection.execute("INSERT OR REPLACE INTO data VALUES (?, ?, ?)", (self._namespace, key, value))

    def _remember(self, committed: int | None, prepared: int | None) -> None:
        row = (self._namespace, committed, prepared)
        self._connection.execute("INSERT OR REPLACE INTO txids VALUES (?, ?, ?)", row)

    def _transaction(self, write: Callable[[], None]) -> None:
        connection = self._connection
        self.trace("write")
        self._guarded(connection.execute, "BEGIN IMMEDIATE")
        try:
            self._guarded(write)
            self.trace("sync")
            self._guarded(connection.execute, "COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.trace("synced")

    def _one(self, statement: str, *more: Any) -> Any:
        return self._guarded(lambda: self._connection.execute(statement, (self._namespace, *more)).fetchone())

    def _guarded(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except sqlite3.DatabaseError as problem:
            raise FILE.explained(problem, self._path) from problem
