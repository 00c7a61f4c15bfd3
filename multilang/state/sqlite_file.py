"""SQLite files that are durable, shared by the tasks of one topology, recognized by their header, and owned.

All that this library keeps in SQLite is written through ``SqliteConnection.writing``: one transaction
(``BEGIN IMMEDIATE``) that compares the epoch of the file's owner, or in which the caller compares a number that was claimed
under it. See ``multilang.state.owner``. Each such transaction is counted, in the file and beside it, so that a file that
lacks some of them is refused when it is opened. See ``multilang.state.commits``.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import sqlite3
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic, sleep
from urllib.parse import quote

from multilang import private
from multilang.state.commits import SUFFIX, CommitNotes, last_commit
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.owner import OwnedPlace, Owner, claim, wait_until_free

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from multilang.state.owner import Ownership

    R = TypeVar("R")

WAIT_SECS = 60.0  # how long to wait for another task that is writing
_BESIDE = ("-wal", "-shm")  # SQLite's log of changes, and the log's index with the locks
_READ_BESIDE = ("-journal", *_BESIDE)  # what SQLite reads when it opens a file

# Said of an older copy. The next start refuses it, and names the way to go on from it.
PUT_BACK = "Put back the newest one; a topology that is started refuses the older one, and says how to go on from it"

_OCTAL = re.compile(rb"\\([0-7]{3})")
_OWNERS = "CREATE TABLE owners (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL) WITHOUT ROWID"
_COMMITS = "CREATE TABLE commits (count INTEGER NOT NULL)"  # one row

log = logging.getLogger(__name__)


class SqliteFile:
    """A kind of SQLite file.

    Args:
        what: Its name in messages.
        application: The number in the header that tells it from other SQLite files.
        layout: The number of its layout, also in the header.
        schema: The statements that make its tables, with ``;`` and a line's end between two. The table of owners and
            that of the number of commits are added.
        setting: The conf key that names another file.
        upgrades: By an older layout, the statements that turn it into the next one.
    """

    def __init__(
        self,
        what: str,
        application: int,
        layout: int,
        schema: str,
        setting: str,
        upgrades: Mapping[int, str] | None = None,
    ) -> None:
        self.what = what
        self.setting = setting
        self._application = application
        self._layout = layout
        self._schema = schema
        self._upgrades = upgrades or {}

    def open(self, path: str) -> SqliteConnection:
        """Return a connection to the file, which is made if it is not there.

        Raises:
            StateError: It is damaged, or no file of this kind, or lacks commits that were made to it.
        """
        self.make(path)
        noted = self._noted(path)  # before the file is read, since others may be writing
        try:
            connection = self.connected(path)
        except sqlite3.DatabaseError as problem:
            raise self.state_error(problem, path) from None
        try:
            self._check(connection, path, noted)
            _to_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk, not only in the system's memory
            connection.execute(
                "SELECT 1 FROM sqlite_master"
            ).fetchone()  # so that SQLite has opened the log and its index
            connection.note(*_BESIDE)
        except sqlite3.DatabaseError as problem:
            connection.close()
            raise self.state_error(problem, path) from None
        except StateError:
            connection.close()
            raise
        return connection

    def connected(self, path: str, wait_secs: float | None = None) -> SqliteConnection:
        """Return a connection that remembers which file it opened, for ``check_place``. The file is not read."""
        self._check_names(path)
        self._check_strangers(path)
        # A connection is used by one thread at a time, but not always the same: several may wait for one topology.
        real = os.path.realpath(path)  # SQLite puts its other files beside this one, not beside a link to it
        connection = sqlite3.connect(
            real,
            timeout=WAIT_SECS if wait_secs is None else wait_secs,
            isolation_level=None,
            check_same_thread=False,
            factory=SqliteConnection,
        )
        connection.belongs_to(self, path, real)
        if connection.files[""] is None:
            connection.close()
            raise self.gone(path)
        return connection

    def state_error(self, problem: sqlite3.DatabaseError, path: str) -> StateError:
        """Return the StateError that says what SQLite's error means."""
        code = getattr(problem, "sqlite_errorcode", None)  # from Python 3.11 on
        text = str(problem)
        if code in (11, 26) or "malformed" in text or "not a database" in text:  # SQLITE_CORRUPT, SQLITE_NOTADB
            return self._damaged(path, text)
        fix = ""
        if "unable to open" in text and (limit := _limit_on_files()):
            fix = f": {limit}"
        elif "unable to open" in text or "readonly" in text:
            fix = f"; it has to be a file that can be written, in a folder that can be written, or name another in {self.setting}"
        elif "is full" in text:
            fix = "; what was committed is kept: make room on its disk, and start the topology again if it has ended"
        elif "disk I/O" in text:
            fix = (
                f"{f' ({name})' if (name := getattr(problem, 'sqlite_errorname', '')) else ''}: its disk fails, or this process may not "
                "make a file so large (ulimit -f); what was committed is kept"
            )
        elif "locked" in text:
            fix = (
                f": another process has been writing to it for {WAIT_SECS:g} s, and is stopped, perhaps: let it go on, or end it "
                f"(fuser {path} names it)"
            )
        return StateError(f"the {self.what} {path} can't be used: {text}{fix}")

    def place(
        self,
        path: str,
        name: str = "",
        check: Callable[[Owner], None] = lambda _: None,
        written: Callable[[SqliteConnection], int] = lambda _: 0,
    ) -> SqlitePlace:
        """Return the place that a topology owns: the file, or the entry ``name`` in it.

        Args:
            path: The file.
            name: The entry in the file; empty: the file itself.
            check: Called with the former owner inside the step that replaces it. It raises if the former owner must not
                be replaced.
            written: Returns the highest epoch that what is stored in the file tells of.
        """
        return SqlitePlace(self, path, name, check, written)

    def claim(
        self,
        path: str,
        run: str,
        topology: str,
        name: str = "",
        warn: Callable[[str], None] = lambda _: None,
        may_return: bool = True,
    ) -> Ownership:
        """Become the owner of the file, or of the entry ``name`` in it; see ``multilang.state.owner.claim``."""
        return claim(self.place(path, name), run, topology, warn, may_return)

    def check_free(self, path: str, run: str, name: str = "") -> None:
        """Raise InUseError while another run's owner beats. Nothing is claimed, and no file is made."""
        if not os.path.exists(path):
            return
        place = self.place(path, name)
        try:
            wait_until_free(place, run)
        finally:
            place.close()

    def gone(self, path: str, part: str = "") -> StoreGoneError:
        """Return the error for a file that was deleted, renamed, emptied or replaced while it was used.

        ``part`` is the suffix of SQLite's file beside it, if that one is meant.
        """
        return StoreGoneError(
            f"the {self.what} {path}{part} was deleted, renamed, emptied or replaced while it was in use: what was written to it since is not there. "
            "Put it back with the files beside it, or start the topology again, which then goes on from what the file has, unless that "
            "lacks commits"
        )

    def make(self, path: str) -> None:
        """Make the file, if it is missing, and its folder, so that this user alone may read them. Raises StateError."""
        try:
            private.check_owners(path)
            private.make_folder(os.path.dirname(path))
            private.make_file(os.path.realpath(path))  # SQLite gives the files beside it the same rights
        except OSError as problem:
            raise StateError(
                f"the {self.what} {path} can't be made: {problem}; {_fix(problem, f'name another in {self.setting}')}"
            ) from None

    def _check_names(self, path: str) -> None:
        # Each name has its own log of changes (-wal) and its own heartbeat, which users of another name don't see.
        names = os.stat(path).st_nlink if os.path.isfile(path) else 1
        if names > 1:
            raise StateError(
                f"the {self.what} {path} has {names} names (hard links), and its users under one name don't see those under "
                "another: keep one name and make the others copies (cp), or symbolic links (ln -s)"
            )
        if os.path.realpath(path) in _mount_points():
            raise StateError(
                f"the {self.what} {path} is mounted by itself (mount --bind, or a container's volume of one file), and its "
                "users there don't see the users of the original, nor the files that SQLite keeps beside it (-wal): "
                "mount its folder instead"
            )

    def _check_strangers(self, path: str) -> None:
        real = os.path.realpath(path)
        try:
            private.check_owners(path, must_exist=True)
            if private.is_open_to_all(real) and os.path.exists(real):
                _take_names(real)
        except FileNotFoundError:
            raise self.gone(path) from None
        except OSError as problem:
            raise StateError(
                f"the {self.what} {path} can't be used: {problem}; {_fix(problem, f'name another in {self.setting}')}"
            ) from None

    def _noted(self, path: str) -> int:
        real = os.path.realpath(path)
        try:
            return last_commit(real)
        except OSError as problem:
            raise StateError(
                f"{real}{SUFFIX}, which has the number of the last commit to the {self.what}, can't be read: {problem}; "
                f"{_fix(problem, 'make it a file that this user can read, or remove it')}"
            ) from None

    def _check(self, connection: SqliteConnection, path: str, noted: int) -> None:
        # One transaction for both numbers, since another task may be making the file.
        connection.execute("BEGIN")
        application, layout = _header(connection)
        connection.execute("COMMIT")
        if (application, layout) == (0, 0):
            connection.execute("BEGIN IMMEDIATE")
            # Look again under the lock, since another task may have been faster.
            if _header(connection) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                _run(connection, self._schema)
                connection.execute(_OWNERS)
                connection.make_count(noted)  # not from 0, so that a copy of a former file is behind
                if noted:
                    log.warning(
                        "the %s %s is made anew, although %d commits were made to a former one (see %s%s)",
                        self.what,
                        path,
                        noted,
                        os.path.realpath(path),
                        SUFFIX,
                    )
                connection.execute(f"PRAGMA application_id = {self._application:d}")
                connection.execute(f"PRAGMA user_version = {self._layout:d}")
            connection.execute("COMMIT")
            application, layout = _header(connection)
        if application != self._application:
            raise StateError(f"{path} is an SQLite file, but no {self.what}; name another in {self.setting}")
        self._check_commits(connection, path, noted)
        while layout in self._upgrades:
            connection.execute("BEGIN IMMEDIATE")
            if _header(connection)[1] == layout:  # another task may have been faster
                _run(connection, self._upgrades[layout])
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'owners'").fetchone():
                    connection.execute(_OWNERS)
                connection.execute(f"PRAGMA user_version = {layout + 1:d}")
            connection.execute("COMMIT")
            layout = _header(connection)[1]
        if layout != self._layout:
            raise StateError(
                f"{path} has layout {layout}, and this version knows {self._layout}; use the version that wrote it"
            )
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise self._damaged(path, found)
        if connection.count() is None:  # a file of an earlier version
            connection.execute("BEGIN IMMEDIATE")
            if connection.count() is None:  # another task may have been faster
                connection.make_count(0)
            connection.execute("COMMIT")
        connection.counts = True

    def _check_commits(self, connection: SqliteConnection, path: str, noted: int) -> None:
        """Raise StoreGoneError if the file has fewer commits than were noted beside it. Nothing is changed."""
        missing = noted - (connection.count() or 0)
        if missing > 0:
            raise StoreGoneError(
                f"the {self.what} {path} lacks the last {missing} of {noted} commits that were made to it: its -wal was left behind, or "
                "an older copy was put back. Stop the topology and put back the file together with its -wal (sqlite3's .backup makes "
                f"one file of both); to go on from this older one, remove {os.path.realpath(path)}{SUFFIX}"
            )

    def _damaged(self, path: str, how: str) -> StoreGoneError:
        return StoreGoneError(
            f"the {self.what} {path} is damaged ({' '.join(how.split())}): put back a copy of it, or move it away to start from "
            "nothing. It is not changed"
        )


class SqlitePlace(OwnedPlace):
    """A place whose owner is in the file's table ``owners``. Its heartbeat is a file beside it, without locks."""

    def __init__(
        self,
        file: SqliteFile,
        path: str,
        name: str,
        check: Callable[[Owner], None],
        written: Callable[[SqliteConnection], int],
    ) -> None:
        self.elsewhere = f"{self.elsewhere} in {file.setting}"
        self._file = file
        self._path = path
        self._name = name
        self._check = check
        self._written = written
        real = os.path.realpath(path)  # the same for every symbolic link to the file
        folder, base = os.path.split(real)
        self._beats_path = os.path.join(
            folder, private.short_name(f"{base}.{quote(name, safe='')}.owner" if name else f"{base}.owner", 255)
        )
        self._connection: SqliteConnection | None = None

    def owner(self) -> Owner | None:
        row = self._row()
        return None if row is None else Owner.from_text(row[1])

    def beats(self) -> bytes | None:
        try:
            with open(private.open_file(self._beats_path, os.O_RDONLY), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._unusable("read", problem) from None

    def written_epoch(self) -> int:
        return max(self._beaten()[0], self._written(self._open()))

    def replace(self, epoch: int, owner: Owner) -> bool:
        connection = self._open()
        with connection.writing():
            row = self._row()
            replaced = (0 if row is None else row[0]) == epoch
            if replaced:
                if row is not None:
                    self._check(Owner.from_text(row[1]))
                values = (self._name, owner.epoch, owner.text())
                connection.execute("INSERT OR REPLACE INTO owners VALUES (?, ?, ?)", values)
        if replaced and not owner.ended:
            try:
                self._write_beats(owner.epoch, 0)
            except StateError as problem:  # the epoch protects the place, and the next beat is tried soon
                log.warning("%s. Until it can, another run takes the owner for dead", problem)
        elif replaced:
            with suppress(FileNotFoundError):
                os.unlink(self._beats_path)
        return replaced

    def beat(self, epoch: int) -> bool:
        known, beats = self._beaten()
        if known > epoch:
            return False
        self._write_beats(epoch, beats + 1)
        return True

    def describe(self) -> str:
        return f"the {self._file.what} {self._path}"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _beaten(self) -> tuple[int, int]:
        """Return the epoch and number of the last beat. A text that was written half tells of none."""
        known, _, beats = (self.beats() or b"").partition(b" ")
        return (int(known), int(beats)) if known.isdigit() and beats.isdigit() else (0, 0)

    def _write_beats(self, epoch: int, beats: int) -> None:
        try:
            handle = private.open_file(self._beats_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                os.write(handle, f"{epoch} {beats}".encode())
            finally:
                os.close(handle)
        except OSError as problem:
            raise self._unusable("written", problem) from None

    def _unusable(self, how: str, problem: OSError) -> StateError:
        return StateError(
            f"{self._beats_path}, the heartbeat of the owner of the {self._file.what}, can't be {how}: {problem}; "
            f"{_fix(problem, 'make it a file that this user can write, or remove it')}"
        )

    def _row(self) -> Any:
        return self._open().row("SELECT epoch, owner FROM owners WHERE name = ?", self._name)

    def _open(self) -> SqliteConnection:
        if self._connection is None:
            self._connection = self._file.open(self._path)
        return self._connection


class SqliteConnection(sqlite3.Connection):
    """A connection to a file of some kind. It raises StateError for SQLite's errors, and remembers which file it opened.

    Its own methods do so; those of ``sqlite3.Connection`` do not, except inside ``writing``.

    Attributes:
        kind: The kind of file.
        path: The file's path, for messages.
        files: The device and inode of the file and of those beside it, by suffix, as they were when they were opened.
        counts: Whether ``writing`` counts its commits.
    """

    kind: SqliteFile
    path: str
    counts: bool
    _last: int  # the highest number of a commit that this connection has seen
    _warned: bool  # whether it was told that the number of the last commit could not be written beside the file

    def belongs_to(self, kind: SqliteFile, path: str, real: str) -> None:
        """Remember the file that was opened.

        Args:
            kind: Its kind.
            path: Its path, for messages.
            real: Its path without symbolic links.
        """
        self.kind = kind
        self.path = path
        self._real = real
        self._is_link = os.path.abspath(path) != real  # in its own name, or in that of a folder
        self._beside: list[tuple[str, str]] = []  # the files of which the inode is compared: their suffixes and paths
        self._notes = CommitNotes(real)
        self.counts = False
        self._last = 0
        self._warned = False
        self.files: dict[str, tuple[int, int] | None] = {}
        self.note("")

    def note(self, *suffixes: str) -> None:
        """Remember the files with these suffixes as they are now."""
        self.files.update((suffix, _inode(f"{self._real}{suffix}")) for suffix in suffixes)
        self._beside = [(suffix, f"{self._real}{suffix}") for suffix in self.files if suffix]

    def close(self) -> None:
        """Close the file, and that with the number of its last commit."""
        self._notes.close()
        super().close()

    def row(self, statement: str, *values: Any) -> Any:
        """Execute a statement, and return the first row of its result; None if it has none."""
        try:
            return self.execute(statement, values).fetchone()
        except sqlite3.DatabaseError as problem:
            raise self.state_error(problem) from None

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Execute a statement, and return all rows of its result."""
        try:
            return self.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as problem:
            raise self.state_error(problem) from None

    @contextmanager
    def writing(self, epoch: int | None = None, name: str = "") -> Iterator[None]:
        """Make one transaction of what the body writes: all of it is done or, after an error or a crash, nothing.

        It is committed, and on the disk, when the body has ended. The body may roll it back.

        Args:
            epoch: The epoch of the writer's claim, which is compared with that of the stored owner in this transaction.
                None: the body compares what it has claimed, or nothing is owned.
            name: The entry in the file that is owned; empty: the file itself.

        Raises:
            FencedError: The owner has another epoch; nothing was written.
            StoreGoneError: The file is no longer the one that was opened; nothing was written.
            StateError: SQLite can't write it.
        """
        number = 0
        try:
            self.execute("BEGIN IMMEDIATE")
            try:
                before = self.total_changes
                if epoch is not None:
                    self._check_owner(epoch, name)
                yield
                if self.counts and self.in_transaction and self.total_changes != before:
                    number = self._count_commit()
                self.check_place()
                if self.in_transaction:
                    self.execute("COMMIT")
            except BaseException:
                if self.in_transaction:
                    self.execute("ROLLBACK")
                raise
            if number:
                self._note_commit(number)
        except sqlite3.DatabaseError as problem:
            raise self.state_error(problem) from None

    def count(self) -> int | None:
        """Return the number of commits that were made to the file; None if they are not counted."""
        if not self.execute("SELECT 1 FROM sqlite_master WHERE name = 'commits'").fetchone():
            return None
        found: int = self.execute("SELECT coalesce(max(count), 0) FROM commits").fetchone()[0]
        self._last = max(self._last, found)
        return found

    def make_count(self, number: int) -> None:
        """Begin to count commits, inside a transaction that writes.

        Args:
            number: How many were made.
        """
        self.execute(_COMMITS)
        self.execute("INSERT INTO commits VALUES (?)", (number,))

    def check_place(self) -> None:
        """Raise StoreGoneError if ``path`` is no longer the file that was opened. Call it before a commit.

        When the file was deleted, renamed or emptied, SQLite goes on writing to it, or to its log and the log's index,
        without an error. The next program that opens the file knows nothing of these writes.
        """
        try:
            found = os.lstat(self._real)
        except OSError:
            raise self.kind.gone(self.path) from None
        this = found.st_dev, found.st_ino
        if not found.st_size or this != self.files[""] or (self._is_link and _inode(self.path) != this):
            raise self.kind.gone(self.path)
        for suffix, path in self._beside:
            if _inode(path) != self.files[suffix]:
                raise self.kind.gone(self.path, suffix)

    def state_error(self, problem: sqlite3.DatabaseError) -> StateError:
        """Return the StateError that says what SQLite's error means; that of ``check_place`` comes before all others."""
        self.check_place()
        if "no such table" in str(problem):
            return self.kind.gone(self.path)
        return self.kind.state_error(problem, self.path)

    def _count_commit(self) -> int:
        """Count the commit of the present transaction, and return its number, to be noted beside the file after it.

        Raises:
            StoreGoneError: The file lacks commits that were made to it. So no commit makes an older copy look like the
                newest.
        """
        row = self.execute("SELECT count FROM commits").fetchone()
        if row is None:
            raise self.kind.gone(self.path)
        number: int = row[0] + 1
        made = self._last
        try:
            made = max(made, self._notes.found(number))
        except OSError as problem:
            self._warn(problem)
        if made >= number:
            raise StoreGoneError(
                f"the {self.kind.what} {self.path} was put back to an older copy while it was in use: it has {row[0]} commits, and "
                f"{made} were made. Nothing more is written to it. {PUT_BACK}"
            )
        self.execute("UPDATE commits SET count = ?", (number,))
        self._last = row[0]  # and one more when it is committed
        return number

    def _note_commit(self, number: int) -> None:
        self._last = number
        try:
            self._notes.write(number)
            self._warned = False
        except OSError as problem:  # the commit is made all the same
            self._warn(problem)

    def _warn(self, problem: OSError) -> None:
        if not self._warned:
            log.warning(
                "%s%s can't be written: %s. Until it can, a copy of the %s that lacks its last commits is not recognized",
                self._real,
                SUFFIX,
                problem,
                self.kind.what,
            )
        self._warned = True

    def _check_owner(self, epoch: int, name: str) -> None:
        row = self.execute("SELECT epoch, owner FROM owners WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise self.kind.gone(self.path)
        if row[0] != epoch:
            raise FencedError(
                f"the {self.kind.what} {self.path} was taken over by {Owner.from_text(row[1])} (epoch {row[0]}; this one has "
                f"{epoch}): nothing more is written here"
            )


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
    """Return what to do about an error of the system's."""
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        return "let this process open more files (ulimit -n)"
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on its disk"
    return usual


def _limit_on_files() -> str:
    """Return what to do if this process can't open the files of a connection now; an empty text if it can."""
    with ExitStack() as opened:
        try:
            for _ in ("", *_BESIDE):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError as problem:
            return f"{problem.strerror}; {_fix(problem, '')}"
    return ""


def _run(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _mount_points() -> set[str]:
    """Return the paths on which something is mounted, as far as this system tells."""
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
