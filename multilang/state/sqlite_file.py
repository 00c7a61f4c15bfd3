"""SQLite files of ours: durable, shared by the tasks of one topology, and never taken for another's."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from time import monotonic, sleep

from multilang.state.errors import StateError

CLAIM_SECS = 5.0
WAIT_SECS = 60.0  # for another task that is writing

_claims: dict[str, tuple[int, object, object]] = {}  # of this process: the lock, who took it last, of which topology


class SqliteFile:
    """A kind of file. ``what``: what to call it; ``setting``: the conf key that names another.

    ``application`` and ``layout`` are in the file's header, so that no other SQLite file is taken for one of these.
    ``schema``: the statements that make it, a line each.
    """

    def __init__(self, what: str, application: int, layout: int, schema: str, setting: str) -> None:
        self.what = what
        self.setting = setting
        self._application = application
        self._layout = layout
        self._schema = schema

    def open(self, path: str) -> sqlite3.Connection:
        """A connection to the file, which is made when there is none. StateError for what is no whole file of this kind."""
        self._make_folder(path)
        try:
            # Nothing here is shared between threads; a topology in this process may be waited for by one or another.
            connection = sqlite3.connect(path, timeout=WAIT_SECS, isolation_level=None, check_same_thread=False)
        except sqlite3.DatabaseError as problem:
            raise self.explained(problem, path) from problem
        try:
            self._check(connection, path)
            _to_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")  # what is committed is on the disk, not only in the system
        except sqlite3.DatabaseError as problem:
            connection.close()
            raise self.explained(problem, path) from problem
        except StateError:
            connection.close()
            raise
        return connection

    def explained(self, problem: sqlite3.DatabaseError, path: str) -> StateError:
        """What SQLite's error means."""
        code = getattr(problem, "sqlite_errorcode", None)  # from Python 3.11 on
        text = str(problem)
        if code in (11, 26) or "malformed" in text or "not a database" in text:  # SQLITE_CORRUPT, SQLITE_NOTADB
            return self._damaged(path, text)
        fix = ""
        if "unable to open" in text or "readonly" in text:
            fix = f"; it has to be a file that can be written, in a folder that can be written, or name another in {self.setting}"
        return StateError(f"the {self.what} {path} can't be used: {text}{fix}")

    def claim(self, path: str, owner: object, topology: object = None) -> None:
        """Let no other process claim it: a lock on a file beside it, which the system takes back when the process dies.

        Nor may another ``topology`` of this process.
        """
        # A task that was started again in this process takes over from what is left of it.
        lock, _, claimed_for = _claims.get(path) or (self._locked(path), None, topology)
        if claimed_for != topology:
            raise self._in_use(path)
        _claims[path] = (lock, owner, topology)

    def release(self, path: str, owner: object) -> None:
        """The owner, if it still is, claims it no longer."""
        lock, last, _ = _claims.get(path, (-1, None, None))
        if last is owner:
            del _claims[path]
            os.close(lock)

    def _make_folder(self, path: str) -> None:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as problem:
            raise self._unusable(path, problem) from problem

    def _locked(self, path: str) -> int:
        self._make_folder(path)
        try:
            lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise self._unusable(path, problem) from problem
        deadline = monotonic() + CLAIM_SECS  # a process of the same topology may be about to end
        while True:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except OSError as problem:
                if monotonic() > deadline:
                    os.close(lock)
                    raise self._in_use(path) from problem
                sleep(0.05)

    def _check(self, connection: sqlite3.Connection, path: str) -> None:
        # Both numbers of one moment: another task may be making the file meanwhile.
        connection.execute("BEGIN")
        application, layout = _header(connection)
        connection.execute("COMMIT")
        if (application, layout) == (0, 0):
            connection.execute("BEGIN IMMEDIATE")
            # Asked once more, since another task may have been faster.
            if _header(connection) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in self._schema.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._application:d}")
                connection.execute(f"PRAGMA user_version = {self._layout:d}")
            connection.execute("COMMIT")
            application, layout = _header(connection)
        if application != self._application:
            raise StateError(f"{path} is an SQLite file, but no {self.what}; name another in {self.setting}")
        if layout != self._layout:
            raise StateError(
                f"{path} has layout {layout}, and this version knows {self._layout}; use the version that wrote it"
            )
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise self._damaged(path, found)

    def _in_use(self, path: str) -> StateError:
        return StateError(
            f"the {self.what} {path} is in use by another topology or command; end that first, or name another file in "
            f"{self.setting}"
        )

    def _unusable(self, path: str, problem: OSError) -> StateError:
        return StateError(f"the {self.what} {path} can't be made: {problem}; name another in {self.setting}")

    def _damaged(self, path: str, how: str) -> StateError:
        return StateError(
            f"the {self.what} {path} is damaged ({' '.join(how.split())}): put back a copy of it, or move it away to start from "
            "nothing. It is not changed"
        )


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


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]
