"""State in an SQLite file: durable on one machine, with no server. The embedded cluster's default.

A checkpoint is one transaction for each phase and task. Whatever is killed at whatever instant, the file has the old state
or the new one.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from time import monotonic, sleep

from multilang.component.errors import ConfigError
from multilang.state.api import StateProvider
from multilang.state.errors import StateError
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, cached_keys, check_members, state_home
from multilang.state.stored import Store, StoredState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

CLAIM_SECS = 5.0
WAIT_SECS = 60.0  # for another task that is writing
_APPLICATION = 0x4D4C5354  # "MLST", in the file's header: no other SQLite file is taken for state
_LAYOUT = 1
_BATCH = 10_000  # rows read at once

_claims: dict[str, tuple[int, SqliteStateProvider]] = {}  # of this process: the lock, and who took it last

_SCHEMA = """\
CREATE TABLE txids (namespace TEXT PRIMARY KEY, committed INTEGER, prepared INTEGER) WITHOUT ROWID;
CREATE TABLE data (namespace TEXT, key BLOB, value BLOB NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
CREATE TABLE prepared (namespace TEXT, key BLOB, value BLOB, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
"""


class SqliteStateProvider(StateProvider):
    """``topology.state.provider.config``: ``{"path": "/var/lib/shop/state.sqlite"}``.

    Without a path it is the topology's own file in ``$MULTILANG_STATE_HOME``, or else in the user's folder for state.
    """

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        super().__init__(config, conf)
        check_members(self.config, "state in SQLite", ("path",))
        path = self.config.get("path")
        if path is None:
            name = str(self.conf.get("topology.name") or "topology")
            path = os.path.join(
                state_home(), "".join(letter if letter.isalnum() else "_" for letter in name) + ".sqlite"
            )
        elif not isinstance(path, str) or not path:
            raise ConfigError(f"{CONFIG}: path is {path!r}; name a file")
        self.path = os.path.abspath(os.path.expanduser(path))
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)

    def new_state(self, namespace: str) -> StoredState:
        store = SqliteStore(_open(self.path), namespace, self.path)
        return StoredState(namespace, store, self._keys, self._values, cached_keys(self.conf))

    def namespaces(self) -> list[str]:
        if not os.path.exists(self.path):
            return []
        connection = _open(self.path)
        try:
            rows = connection.execute("SELECT namespace FROM txids UNION SELECT namespace FROM data ORDER BY 1")
            return [row[0] for row in rows]
        finally:
            connection.close()

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        store = SqliteStore(_open(self.path), namespace, self.path)
        try:
            return store.txids()
        finally:
            store.close()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        connection = _open(self.path)
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

    def claim(self) -> None:
        """A lock on a file beside it, which the system takes back when the process dies."""
        if self.path not in _claims:
            _claims[self.path] = (_locked(self.path), self)
        # A task that was started again in this process takes over from what is left of it.
        _claims[self.path] = (_claims[self.path][0], self)

    def close(self) -> None:
        lock, owner = _claims.get(self.path, (-1, None))
        if owner is self:
            del _claims[self.path]
            os.close(lock)

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
        def write() -> None:
            for key, value in rows:
                if value is None:
                    self._connection.execute("DELETE FROM data WHERE namespace = ? AND key = ?", (self._namespace, key))
                else:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO data VALUES (?, ?, ?)", (self._namespace, key, value)
                    )

        self._transaction(write)

    def rollback(self) -> None:
        committed = self._txids[0]

        def write() -> None:
            self._connection.execute("DELETE FROM prepared WHERE namespace = ?", (self._namespace,))
            self._remember(committed, committed)

        self._transaction(write)
        self._txids = (committed, committed)

    def close(self) -> None:
        self._connection.close()

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
            raise _explained(problem, self._path) from problem


def _make_folder(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as problem:
        raise _unusable(path, problem) from problem


def _unusable(path: str, problem: OSError) -> StateError:
    return StateError(f"the state file {path} can't be made: {problem}; name another in {CONFIG}")


def _locked(path: str) -> int:
    _make_folder(path)
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise _unusable(path, problem) from problem
    deadline = monotonic() + CLAIM_SECS  # a process of the same topology may be about to end
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as problem:
            if monotonic() > deadline:
                os.close(lock)
                raise StateError(
                    f"the state file {path} is in use by another topology or command; end that first, or name another file "
                    f"in {CONFIG}"
                ) from problem
            sleep(0.05)


def _open(path: str) -> sqlite3.Connection:
    """A connection to the state file, which is made when there is none. StateError for what is no whole state file."""
    _make_folder(path)
    try:
        # Nothing here is shared between threads; a topology in this process may be waited for by one or another.
        connection = sqlite3.connect(path, timeout=WAIT_SECS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as problem:
        raise StateError(f"the state file {path} can't be opened: {problem}") from problem
    try:
        _check(connection, path)
        _to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")  # what is committed is on the disk, not only in the system
    except sqlite3.DatabaseError as problem:
        connection.close()
        raise _explained(problem, path) from problem
    except StateError:
        connection.close()
        raise
    return connection


def _to_wal(connection: sqlite3.Connection) -> None:
    """Readers don't wait for writers then. Where several tasks turn to it at once, SQLite refuses some without waiting."""
    deadline = monotonic() + WAIT_SECS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or monotonic() > deadline:
                raise
            sleep(0.01)


def _check(connection: sqlite3.Connection, path: str) -> None:
    # Both numbers of one moment: another task may be making the file meanwhile.
    connection.execute("BEGIN")
    application, layout = _header(connection)
    connection.execute("COMMIT")
    if (application, layout) == (0, 0):
        connection.execute("BEGIN IMMEDIATE")
        # Asked once more, since another task may have been faster.
        if _header(connection) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION:d}")
            connection.execute(f"PRAGMA user_version = {_LAYOUT:d}")
        connection.execute("COMMIT")
        application, layout = _header(connection)
    if application != _APPLICATION:
        raise StateError(f"{path} is an SQLite file, but none of state; name another in {CONFIG}")
    if layout != _LAYOUT:
        raise StateError(f"{path} has layout {layout}, and this version knows {_LAYOUT}; use the version that wrote it")
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _damaged(path, found)


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def _explained(problem: sqlite3.DatabaseError, path: str) -> StateError:
    code = getattr(problem, "sqlite_errorcode", None)  # from Python 3.11 on
    text = str(problem)
    if code in (11, 26) or "malformed" in text or "not a database" in text:  # SQLITE_CORRUPT, SQLITE_NOTADB
        return _damaged(path, text)
    return StateError(f"the state file {path} can't be used: {text}")


def _damaged(path: str, how: str) -> StateError:
    return StateError(
        f"the state file {path} is damaged ({' '.join(how.split())}): put back a copy of it, or move it away to start from "
        "nothing. It is not changed"
    )
