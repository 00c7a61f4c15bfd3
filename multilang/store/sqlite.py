"""Rows in an SQLite file: durable on one machine, without a server.

Each write is one transaction (``BEGIN IMMEDIATE``) that compares and writes, and is on the disk when it returns.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from contextlib import ExitStack, contextmanager, suppress
from threading import RLock
from time import monotonic, sleep
from urllib.parse import quote

from multilang.component.errors import ConfigError
from multilang.helpers import private
from multilang.store.errors import StateError, StoreGoneError, UnusableStateError
from multilang.store.interface import Store
from multilang.store.settings import is_on_cluster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.store.interface import Rows

WAIT_SECS = 60.0  # how long to wait for another task that is writing
LARGEST = 1_000_000_000 - 1000  # SQLite's limit for a row, less a key and the row's head
_APPLICATION = 0x4D4C5354  # "MLST": in the header, identifies our files
_LAYOUT = 4  # also in the header
_SCHEMA = (
    "CREATE TABLE tables (id INTEGER PRIMARY KEY, place TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (place, name))",
    "CREATE TABLE rows (part INTEGER, key BLOB, value BLOB NOT NULL, PRIMARY KEY (part, key)) WITHOUT ROWID",
)
_BATCH = 10_000  # rows read at once
_KEYS = 500  # rows that one statement asks for by their keys; SQLite may take no more than 999
_BESIDE = ("-wal", "-shm")  # SQLite's log of changes, and the log's index with the locks
_READ_BESIDE = ("-journal", *_BESIDE)  # what SQLite reads when it opens a file
_OCTAL = re.compile(rb"\\([0-7]{3})")


class SqliteStore(Store):
    """Rows in a file. Its URL is ``sqlite:///FOLDER/FILE``, or ``sqlite:FILE`` in the working folder.

    The file is made at the first write. Its name stands for one file: neither hard links nor a file that is mounted by itself are
    allowed, since those who use it under another name would not see each other's log of changes.
    """

    local = True
    largest = LARGEST

    def __init__(self, url: str, conf: Mapping[str, Any] | None = None, setting: str = "multilang.store") -> None:
        super().__init__(url, conf, setting)
        path = url.removeprefix("sqlite:").removeprefix("//")
        if not path or "\0" in path:
            raise ConfigError(f"{setting} is {url!r}, which names no file; use sqlite:///FOLDER/FILE.sqlite")
        path = os.path.expanduser(path)
        if not os.path.isabs(path) and is_on_cluster(self.conf):
            raise ConfigError(
                f"{setting} is {url!r}, which begins in the working folder, and that of a cluster's task ends with the topology: use "
                "sqlite:///FOLDER/FILE.sqlite"
            )
        self.path = os.path.abspath(path)
        self.url = f"sqlite://{self.path}"  # for processes with another working folder
        self._lock = RLock()
        self._connection: _Connection | None = None
        self._parts: dict[tuple[str, str], int] = {}  # the ids of tables that are there

    def get(self, place: str, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._reading() as connection:
            part = self._part(connection, place, table) if connection is not None else None
            return _values(connection, part, keys)

    def list(self, place: str, table: str) -> Iterator[tuple[bytes, bytes]]:
        # Each portion is a statement of its own: a long one would keep the connection at its old snapshot.
        rows: list[tuple[bytes, bytes]] = []
        while True:
            with self._reading() as connection:
                part = self._part(connection, place, table) if connection is not None else None
                if connection is None or part is None:
                    return
                statement = "SELECT key, value FROM rows WHERE part = ? AND key > ? ORDER BY key LIMIT ?"
                if rows:
                    rows = connection.execute(statement, (part, rows[-1][0], _BATCH)).fetchall()
                else:
                    rows = connection.execute(statement.replace(">", ">="), (part, b"", _BATCH)).fetchall()
            yield from rows
            if len(rows) < _BATCH:
                return

    def places(self, start: str) -> Sequence[str]:
        with self._reading() as connection:
            if connection is None:
                return []
            found = connection.execute(
                "SELECT DISTINCT place FROM tables WHERE substr(place, 1, ?) = ? "
                "AND EXISTS (SELECT 1 FROM rows WHERE part = tables.id)",
                (len(start), start),
            )
            return [place for (place,) in found]

    def tables(self, place: str) -> Sequence[str]:
        with self._reading() as connection:
            if connection is None:
                return []
            found = connection.execute(
                "SELECT name FROM tables WHERE place = ? AND EXISTS (SELECT 1 FROM rows WHERE part = tables.id)",
                (place,),
            )
            return [name for (name,) in found]

    def compare_and_write(
        self,
        place: str,
        expected: Rows,
        changes: Rows,
        cleared: Collection[str] = (),
        merged: tuple[str, str] | None = None,
    ) -> bool:
        self.trace("write")
        with self._writing() as connection:
            for table, rows in expected.items():
                part = self._part(connection, place, table)
                if _values(connection, part, [*rows]) != [*rows.values()]:
                    return False
            for table in cleared:
                connection.execute("DELETE FROM rows WHERE part = ?", (self._part(connection, place, table),))
            if merged is not None:
                self._merge(connection, *(self._part(connection, place, table, make=True) for table in merged))
            for table, rows in changes.items():
                part = self._part(connection, place, table, make=True)
                changed = ((part, key, value) for key, value in rows.items() if value is not None)
                removed = ((part, key) for key, value in rows.items() if value is None)
                connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", changed)
                connection.executemany("DELETE FROM rows WHERE part = ? AND key = ?", removed)
            self.trace("sync")
        self.trace("synced")
        return True

    def beat(self, place: str, fence: Rows, number: int) -> bool:
        """Write the number into a small file beside the rows, without a lock and without waiting for the disk."""
        ((table, rows),) = fence.items()
        if self.get(place, table, [*rows]) != [*rows.values()]:
            return False
        try:
            handle = private.open_file(self._beats(place), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                os.write(handle, b" ".join((b"%d" % number, *rows)))
            finally:
                os.close(handle)
        except OSError as problem:
            raise self._no_beats(place, "written", problem) from None
        return True

    def beats(self, place: str) -> object:
        try:
            with open(private.open_file(self._beats(place), os.O_RDONLY), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._no_beats(place, "read", problem) from None

    def end_beats(self, place: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._beats(place))

    def check(self) -> None:
        with self._reading():
            pass

    def describe(self) -> str:
        return f"the SQLite file {self.path}"

    def close(self) -> None:
        super().close()
        with self._lock:
            connection, self._connection = self._connection, None
            self._parts.clear()
            if connection is not None:
                connection.close()

    # ---- one step ----

    @contextmanager
    def _reading(self) -> Iterator[_Connection | None]:
        """Yield the connection; None while there is no file."""
        with self._lock:
            if self._connection is None and not os.path.exists(self.path):
                yield None
                return
            connection = self._open()
            try:
                yield connection
            except sqlite3.DatabaseError as problem:
                connection.check_place()
                raise self._error(problem) from None

    @contextmanager
    def _writing(self) -> Iterator[_Connection]:
        """Make one transaction of the body's writes: all of them are done and on the disk, or none."""
        with self._lock:
            if self._connection is None:
                self._make()
            connection = self._open()
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    before = connection.total_changes
                    yield connection
                    connection.check_place()
                    connection.execute("COMMIT" if connection.total_changes != before else "ROLLBACK")
                except BaseException:
                    self._parts.clear()  # ids that were given in this transaction are not there
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.DatabaseError as problem:
                connection.check_place()
                raise self._error(problem) from None

    def _part(self, connection: _Connection, place: str, table: str, make: bool = False) -> int | None:
        """Return the id of a table of a place; None if there is no such table yet."""
        part = self._parts.get((place, table))
        if part is None:
            query = "SELECT id FROM tables WHERE place = ? AND name = ?"
            found = connection.execute(query, (place, table)).fetchone()
            if found is None and make:
                connection.execute("INSERT INTO tables (place, name) VALUES (?, ?)", (place, table))
                found = connection.execute(query, (place, table)).fetchone()
            if found is None:
                return None
            part = self._parts[place, table] = int(found[0])
        return part

    @staticmethod
    def _merge(connection: _Connection, source: int | None, target: int | None) -> None:
        for statement in (
            "INSERT OR REPLACE INTO rows SELECT ?2, key, value FROM rows WHERE part = ?1 AND length(value) > 0",
            "DELETE FROM rows WHERE part = ?2 AND key IN (SELECT key FROM rows WHERE part = ?1 AND length(value) = 0)",
            "DELETE FROM rows WHERE part = ?1 AND ?2 NOT NULL",
        ):
            connection.execute(statement, (source, target))

    # ---- the file ----

    def _open(self) -> _Connection:
        """Return the connection, opened at its first use to a file that is there.

        Raises:
            StateError: The file is damaged, or another's.
        """
        if self._connection is None:
            self._check_names()
            self._check_strangers()
            real = os.path.realpath(self.path)  # SQLite puts its other files beside this one, not beside a link to it
            try:
                connection = sqlite3.connect(
                    real, timeout=WAIT_SECS, isolation_level=None, check_same_thread=False, factory=_Connection
                )
            except sqlite3.DatabaseError as problem:
                raise self._error(problem) from None
            try:
                connection.belongs_to(self, real)
                self._prepare(connection)
            except sqlite3.DatabaseError as problem:
                connection.close()
                raise self._error(problem) from None
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: _Connection) -> None:
        """Make the tables of a new file, or check that it is one of ours, and turn on the log of changes."""
        connection.execute("BEGIN")  # one transaction for both numbers, since another task may be making the file
        found = _header(connection)
        connection.execute("COMMIT")
        if found == (0, 0):
            connection.execute("BEGIN IMMEDIATE")
            # Look again under the lock, since another task may have been faster.
            if _header(connection) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION:d}")
                connection.execute(f"PRAGMA user_version = {_LAYOUT:d}")
            connection.execute("COMMIT")
            found = _header(connection)
        if found[0] != _APPLICATION:
            raise StateError(f"{self.path} is an SQLite file, but no store; name another in {self.setting}")
        if found[1] != _LAYOUT:
            raise StateError(
                f"{self.path} has layout {found[1]}, and this version knows {_LAYOUT}; use the version that wrote it, or name another in "
                f"{self.setting}"
            )
        damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise self._damaged(damage)
        _to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk, not only in the system's memory
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # so that SQLite has opened the log and its index
        connection.note(*_BESIDE)

    def _make(self) -> None:
        """Make the file, if it is missing, and its folder, so that this user alone may read them."""
        try:
            private.check_owners(self.path)
            private.make_folder(os.path.dirname(self.path))
            private.make_file(os.path.realpath(self.path))  # SQLite gives the files beside it the same rights
        except OSError as problem:
            fix = _fix(problem, f"name another in {self.setting}")
            raise UnusableStateError(f"{self.describe()} can't be made: {problem}; {fix}") from None

    def _check_names(self) -> None:
        # Each name has its own log of changes (-wal) and its own heartbeat, which users of another name don't see.
        names = os.stat(self.path).st_nlink if os.path.isfile(self.path) else 1
        if names > 1:
            raise StateError(
                f"{self.describe()} has {names} names (hard links), and its users under one name don't see those under "
                "another: keep one name and make the others copies (cp), or symbolic links (ln -s)"
            )
        if os.path.realpath(self.path) in _mount_points():
            raise StateError(
                f"{self.describe()} is mounted by itself (mount --bind, or a container's volume of one file), and its "
                "users there don't see the users of the original, nor the files that SQLite keeps beside it (-wal): "
                "mount its folder instead"
            )

    def _check_strangers(self) -> None:
        real = os.path.realpath(self.path)
        try:
            private.check_owners(self.path, must_exist=True)
            if private.is_open_to_all(real) and os.path.exists(real):
                _take_names(real)
        except FileNotFoundError:
            raise self.lost_file() from None
        except OSError as problem:
            fix = _fix(problem, f"name another in {self.setting}")
            raise UnusableStateError(f"{self.describe()} can't be used: {problem}; {fix}") from None

    # ---- messages ----

    def lost_file(self, part: str = "") -> StoreGoneError:
        """Return the error for a file that was deleted, renamed, emptied or replaced while it was used.

        Args:
            part: The suffix of SQLite's file beside it, if that one is meant.
        """
        return StoreGoneError(
            f"{self.describe()}{part} was deleted, renamed, emptied or replaced while it was in use: what was written to it since is not "
            "there. Restore it with the files beside it, or restart the topology, which then resumes from what the file has"
        )

    def _error(self, problem: sqlite3.DatabaseError) -> StateError:
        """Return the StateError for an error of SQLite's."""
        code = getattr(problem, "sqlite_errorcode", None)  # from Python 3.11 on
        text = str(problem)
        if "no such table" in text:
            return self.lost_file()
        if code in (11, 26) or "malformed" in text or "not a database" in text:  # SQLITE_CORRUPT, SQLITE_NOTADB
            return self._damaged(text)
        fix = ""
        if "unable to open" in text and (limit := _limit_on_files()):
            fix = f": {limit}"
        elif "unable to open" in text or "readonly" in text:
            fix = f"; it has to be a file that can be written, in a folder that can be written, or name another in {self.setting}"
        elif "is full" in text:
            fix = "; what was committed is stored: free space on its disk, and restart the topology if it has ended"
        elif "disk I/O" in text:
            fix = (
                f"{f' ({name})' if (name := getattr(problem, 'sqlite_errorname', '')) else ''}: its disk fails, or this process may not "
                "make a file so large (ulimit -f); what was committed is stored"
            )
        elif "locked" in text:
            fix = (
                f": another process has been writing to it for {WAIT_SECS:g} s, and is stopped, perhaps: resume it, or end it "
                f"(fuser {self.path} names it)"
            )
        kind = UnusableStateError if "unable to open" in text else StateError
        return kind(f"{self.describe()} can't be used: {text}{fix}")

    def _damaged(self, how: str) -> StoreGoneError:
        return StoreGoneError(
            f"{self.describe()} is damaged ({' '.join(how.split())}): restore a copy of it, or move it away to start from "
            "nothing. It is not changed"
        )

    def _beats(self, place: str) -> str:
        folder, base = os.path.split(os.path.realpath(self.path))  # the same for every symbolic link to the file
        return os.path.join(folder, private.short_name(f"{base}.{quote(place, safe='')}.owner", 255))

    def _no_beats(self, place: str, how: str, problem: OSError) -> StateError:
        path = self._beats(place)
        fix = _fix(problem, "make it a file that this user can write, or remove it")
        return StateError(f"{path}, the heartbeat of an owner in {self.describe()}, can't be {how}: {problem}; {fix}")


class _Connection(sqlite3.Connection):
    """A connection with the identities of the files that it opened."""

    _store: SqliteStore
    _real: str
    _is_link: bool
    _files: dict[str, tuple[int, int] | None]  # device and inode of the file and of those beside it, by suffix

    def belongs_to(self, store: SqliteStore, real: str) -> None:
        """Remember the file that was opened: its store, and its path without symbolic links."""
        self._store = store
        self._real = real
        self._is_link = store.path != real  # in its own name, or in that of a folder
        self._files = {}
        self.note("")
        if self._files[""] is None:
            raise store.lost_file()

    def note(self, *suffixes: str) -> None:
        """Remember the files with these suffixes as they are now."""
        self._files.update((suffix, _inode(f"{self._real}{suffix}")) for suffix in suffixes)

    def check_place(self) -> None:
        """Raise StoreGoneError if the store's path is no longer the file that was opened. Called before a commit.

        When the file was deleted, renamed or emptied, SQLite still writes to it, or to its log and the log's index,
        without an error. The next program that opens the file knows nothing of these writes.
        """
        try:
            found = os.lstat(self._real)
        except OSError:
            raise self._store.lost_file() from None
        this = found.st_dev, found.st_ino
        if not found.st_size or this != self._files[""] or (self._is_link and _inode(self._store.path) != this):
            raise self._store.lost_file()
        for suffix, known in self._files.items():
            if suffix and _inode(f"{self._real}{suffix}") != known:
                raise self._store.lost_file(suffix)


def _values(connection: _Connection | None, part: int | None, keys: Sequence[bytes]) -> list[bytes | None]:
    if connection is None or part is None:
        return [None] * len(keys)
    if len(keys) == 1:
        found = connection.execute("SELECT value FROM rows WHERE part = ? AND key = ?", (part, *keys)).fetchone()
        return [None if found is None else found[0]]
    rows: dict[bytes, bytes] = {}
    for start in range(0, len(keys), _KEYS):
        some = keys[start : start + _KEYS]
        marks = ", ".join("?" * len(some))
        query = f"SELECT key, value FROM rows WHERE part = ? AND key IN ({marks})"  # noqa: S608  # of marks alone
        rows.update(connection.execute(query, (part, *some)))
    return [rows.get(key) for key in keys]


def _take_names(real: str) -> None:
    """Make the files that SQLite looks for beside a file, where everybody could: it would take their content for its own.

    Raises:
        OSError: They can't be made, or another account made one.
    """
    for path in (f"{real}{suffix}" for suffix in _READ_BESIDE):
        if os.path.getsize(real):  # beside an empty one, SQLite removes them unread
            private.make_file(path)
        private.check_owner(path)


def _fix(problem: OSError, usual: str) -> str:
    """Return the fix for an error of the system's."""
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        return "let this process open more files (ulimit -n)"
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free space on its disk"
    return usual


def _limit_on_files() -> str:
    """Return the fix if this process can't open the files of a connection now; an empty text if it can."""
    with ExitStack() as opened:
        try:
            for _ in ("", *_BESIDE):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError as problem:
            return f"{problem.strerror}; {_fix(problem, '')}"
    return ""


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _mount_points() -> set[str]:
    """Return the paths on which something is mounted, if this system lists them."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return set()
    # Blanks and backslashes in a path are written as three octal digits.
    return {os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4])) for line in lines}


def _to_wal(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log, so that readers don't wait for writers.

    When several tasks do so at once, SQLite refuses some of them without waiting.
    """
    deadline = monotonic() + WAIT_SECS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or monotonic() > deadline:
                raise
            sleep(0.01)


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]
