"""The stored progress of spouts, from which they go on after a restart.

The rules of ``multilang.state.owner`` hold here, too. A task that reads partitions for a group claims them first. A
claim raises their epoch, and a write with an older epoch is refused. So a process that was taken for dead, and wakes
up, changes nothing.
"""

from __future__ import annotations

import os
import stat
from threading import Lock
from time import time

from multilang.protocol.codec import dumps, loads
from multilang.state.errors import FencedError, StateError
from multilang.state.owner import OwnedPlace, Owner, Ownership, claim
from spark_bridge.sources.errors import SourceError
from spark_bridge.sources.identity import Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from multilang.state.sqlite_file import SqliteConnection, SqliteFile

GROUP = "multilang.source.group"
STORE = "multilang.source.store"

_BUSY_SECS = 60.0  # longest wait for other tasks' writes
_APPLICATION = 0x4D4C574D  # "MLWM"
_LAYOUT = 2
_SCHEMA = (
    (
        "CREATE TABLE marks (grouped TEXT NOT NULL, partition INTEGER NOT NULL, watermark INTEGER NOT NULL, total INTEGER, "
        "source TEXT NOT NULL, epoch INTEGER NOT NULL, saved REAL NOT NULL, PRIMARY KEY (grouped, partition)) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE readers (grouped TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL, run TEXT NOT NULL, owner TEXT, "
        "beats INTEGER NOT NULL, lasting INTEGER NOT NULL) WITHOUT ROWID"
    ),
)
# This view has the name of layout 1's table, so that writes of a version without epochs are refused.
_OLD = "CREATE VIEW watermarks AS SELECT grouped, partition, watermark, saved FROM marks"


class GroupReader:
    """The run that reads a source for a group.

    Attributes:
        run: The topology's ``storm.id``. Several tasks of one run may read at once; another run waits until they have
            ended.
        topology: The topology's name, for messages.
        lasting: Whether a later run may go on with this group, which is kept for ever then.
        may_return: Whether a run that was replaced by another one may go on when that one has ended.
    """

    __slots__ = ("lasting", "may_return", "run", "topology")

    def __init__(self, run: str, topology: str, lasting: bool, may_return: bool = False) -> None:
        self.may_return = may_return
        self.run = run
        self.topology = topology
        self.lasting = lasting


class WatermarkStore:
    """The interface of a store of marks, by group and partition.

    A group is one reading of a source, by several runs in turn.

    A store is used by one task's process, in one thread at a time; other tasks of the spout have other partitions of
    the same group.
    """

    def claim(
        self,
        group: str,
        partitions: Collection[int],
        reader: GroupReader,
        formerly: str | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> int:
        """Make this task the only reader of these partitions, and return the claim's epoch, higher than any before.

        Args:
            group: The group to read for.
            partitions: The partitions of this task.
            reader: The task's run.
            formerly: The group's name in older versions. What is stored under it, and not under ``group``, is taken
                over.
            warn: Called with a text when the group is taken from a run that neither ended nor sends heartbeats.

        Raises:
            InUseError: Another run reads for this group.
        """
        raise NotImplementedError

    def load(self, group: str) -> dict[int, Mark]:
        """Return the marks of all partitions of a group, whichever task reads them.

        Args:
            group: The group.
        """
        raise NotImplementedError

    def save(self, group: str, marks: Mapping[int, Mark], epoch: int) -> None:
        """Store these marks, all or none.

        Args:
            group: The group.
            marks: Partition -> how far it was read.
            epoch: The epoch that ``claim`` returned.

        Raises:
            FencedError: One of the partitions was claimed again since ``epoch``.
        """
        raise NotImplementedError

    def components(self, group: str, topology: str) -> list[str]:
        """Return the components of a topology that have read something for a group; none unless overridden.

        Args:
            group: The group as the user named it, without a component.
            topology: The topology's name.
        """
        return []

    def close(self) -> None:
        """Free what the store holds; what was claimed may be claimed by another run."""


class SQLiteStore(WatermarkStore):
    """A store in an SQLite file, which must be on a disk of this machine.

    Processes on several machines need a store of another kind.

    Args:
        path: The file; None: one for all topologies of this user on this machine, in ``$MULTILANG_STATE_HOME`` or,
            without that, in the user's folder for state.

    Nothing is ever deleted from it: its rows are small, and no clock can tell that a submission has ended.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._connection: SqliteConnection | None = None
        self._claims: dict[str, tuple[str, Ownership | None]] = {}

    def claim(
        self,
        group: str,
        partitions: Collection[int],
        reader: GroupReader,
        formerly: str | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> int:
        ownership = None
        if reader.lasting and self.path is None:
            _refuse_left(group, self._open())
        if reader.lasting:  # otherwise the group has the name of a single submission, which nobody else can claim
            place = _Group(self.path, group)
            try:
                ownership = claim(place, reader.run, reader.topology, warn, reader.may_return)
            except BaseException:
                place.close()
                raise
        self._claims[group] = (reader.run, ownership)  # it sends heartbeats until it is released
        connection = self._open()
        with connection.writing():
            self._check_run(connection, group, reader.run)
            if ownership is None:
                connection.execute(
                    "INSERT INTO readers VALUES (?, 1, ?, NULL, 0, 0) ON CONFLICT (grouped) DO UPDATE SET epoch = epoch + 1, "
                    "lasting = 0",
                    (group, reader.run),
                )
                (epoch,) = connection.execute("SELECT epoch FROM readers WHERE grouped = ?", (group,)).fetchone()
            else:
                epoch = ownership.epoch  # not the stored one, which may be that of a later claim
                connection.execute("UPDATE readers SET lasting = 1 WHERE grouped = ?", (group,))
            if formerly is not None:
                connection.execute(  # but nothing of a group of today, whose name may be the same; epochs are each group's own
                    "UPDATE OR IGNORE marks SET grouped = ?, epoch = 0 WHERE grouped = ? "
                    "AND NOT EXISTS (SELECT 1 FROM readers WHERE readers.grouped = ?)",
                    (group, formerly, formerly),
                )
            for partition in partitions:
                done = connection.execute(
                    "INSERT INTO marks VALUES (?, ?, 0, 0, '{}', ?, ?) ON CONFLICT (grouped, partition) DO UPDATE SET "
                    "epoch = excluded.epoch, saved = excluded.saved WHERE epoch < excluded.epoch",
                    (group, partition, epoch, time()),
                )
                if done.rowcount != 1:
                    raise self._fenced(group, partition)
        return int(epoch)

    def load(self, group: str) -> dict[int, Mark]:
        rows = self._open().rows("SELECT partition, watermark, total, source FROM marks WHERE grouped = ?", group)
        return {partition: Mark(watermark, total, loads(source)) for partition, watermark, total, source in rows}

    def save(self, group: str, marks: Mapping[int, Mark], epoch: int) -> None:
        now = time()
        connection = self._open()
        with connection.writing():
            self._check_run(connection, group, self._claims.get(group, ("", None))[0])
            for partition, mark in marks.items():
                done = connection.execute(
                    "UPDATE marks SET watermark = ?, total = ?, source = ?, saved = ? "
                    "WHERE grouped = ? AND partition = ? AND epoch = ?",
                    (mark.watermark, mark.total, dumps(mark.source), now, group, partition, epoch),
                )
                if done.rowcount != 1:
                    raise self._fenced(group, partition)

    def components(self, group: str, topology: str) -> list[str]:
        start = f"{group}/"
        rows = self._open().rows(
            "SELECT grouped, owner FROM readers WHERE lasting AND owner NOT NULL AND substr(grouped, 1, ?) = ? AND grouped IN "
            "(SELECT grouped FROM marks WHERE watermark > 0) ORDER BY 1",
            len(start),
            start,
        )
        return [name[len(start) :] for name, owner in rows if Owner.from_text(owner).topology == topology]

    def rename(self, group: str, old: str, new: str, new_group: str | None = None) -> int:
        """Give the progress of a component that was renamed, or of its group, to the component of its new name.

        Args:
            group: The group. It may have a "/", as earlier versions allowed.
            old: The component's former name.
            new: Its name now.
            new_group: The group's new name; None: it keeps its name.

        Returns:
            The number of partitions.

        Raises:
            SourceError: There is no progress of ``old``, there is one of ``new``, or a topology reads it now.
        """
        target = group if new_group is None else new_group
        if "/" in target:
            raise SourceError(f"the group {target!r} has a '/', which no group may have: write another sign")
        before, after = f"{group}/{old}", f"{target}/{new}"
        connection = self._open()
        with connection.writing():
            self._check_idle(connection, before)
            self._check_idle(connection, after)
            if self._progress(connection, after):
                raise SourceError(
                    f"{_path(self.path)} has progress of {after!r} already: forget({target!r}, {new!r}) first"
                )
            count = self._progress(connection, before) + self._rename_former(connection, before, after)
            if not count:
                raise SourceError(f"{_path(self.path)} has no progress of {before!r}")
            connection.execute("DELETE FROM marks WHERE grouped = ?", (after,))
            self._rename_reader(connection, before, after)
            # No earlier reader of either name has the epoch -1.
            connection.execute("UPDATE marks SET grouped = ?, epoch = -1 WHERE grouped = ?", (after, before))
        return count

    def forget(self, group: str, component: str) -> int:
        """Remove the progress of a component, which begins at the beginning then.

        Args:
            group: The group.
            component: The component.

        Returns:
            The number of partitions.

        Raises:
            SourceError: A topology reads it now.
        """
        name = f"{group}/{component}"
        connection = self._open()
        with connection.writing():
            self._check_idle(connection, name)
            count = self._progress(connection, name)
            # The row of the readers stays with its epoch, so that an earlier reader that wakes up can write nothing.
            connection.execute(
                "UPDATE marks SET watermark = 0, total = 0, source = '{}', epoch = -1 WHERE grouped = ?", (name,)
            )
        return count

    def _rename_reader(self, connection: SqliteConnection, before: str, after: str) -> None:
        """Give the new name the last reader of the old one, whose row stays: the epoch of neither name ever falls."""
        query = "SELECT run, owner, beats, lasting FROM readers WHERE grouped = ?"
        found = connection.execute(query, (before,)).fetchone()
        if found is None:
            return
        run, text, beats, lasting = found
        epochs = connection.execute("SELECT max(epoch) FROM readers WHERE grouped IN (?, ?)", (before, after))
        (epoch,) = epochs.fetchone()
        if text is not None:
            owner = Owner.from_text(text)
            owner.epoch = epoch
            text = owner.text()
        row = (after, epoch, run, text, beats, lasting)
        connection.execute("INSERT OR REPLACE INTO readers VALUES (?, ?, ?, ?, ?, ?)", row)

    def _rename_former(self, connection: SqliteConnection, before: str, after: str) -> int:
        """Rename what versions without epochs stored, under GROUP/COMPONENT/SOURCE; return the number of partitions."""
        start = f"{before}/"
        done = connection.execute(
            "UPDATE marks SET grouped = ? || substr(grouped, ?) WHERE substr(grouped, 1, ?) = ? AND watermark > 0 AND NOT EXISTS "
            "(SELECT 1 FROM readers WHERE readers.grouped = marks.grouped)",
            (f"{after}/", len(start) + 1, len(start), start),
        )
        return done.rowcount

    def _progress(self, connection: SqliteConnection, name: str) -> int:
        query = "SELECT count(*) FROM marks WHERE grouped = ? AND watermark > 0"
        return int(connection.execute(query, (name,)).fetchone()[0])

    def _check_idle(self, connection: SqliteConnection, name: str) -> None:
        found = connection.execute("SELECT owner FROM readers WHERE grouped = ?", (name,)).fetchone()
        if found is None or found[0] is None:
            return
        owner = Owner.from_text(found[0])
        if not owner.ended and not owner.is_dead():
            raise SourceError(f"{name!r} in {_path(self.path)} is read by {owner}: end that one first")

    def close(self) -> None:
        claims, self._claims = self._claims, {}
        for _, ownership in claims.values():
            if ownership is not None:
                ownership.release()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __reduce__(self) -> tuple[type[SQLiteStore], tuple[str | None]]:
        return SQLiteStore, (self.path,)

    def __deepcopy__(self, memo: object) -> SQLiteStore:
        return SQLiteStore(self.path)

    def _check_run(self, connection: SqliteConnection, group: str, run: str) -> None:
        found = connection.execute("SELECT owner FROM readers WHERE grouped = ?", (group,)).fetchone()
        if found is None or found[0] is None:
            return
        owner = Owner.from_text(found[0])
        if owner.run != run and not owner.ended:
            raise FencedError(
                f"group {group!r} is read by {owner} by now: this run was stopped or cut off meanwhile, and what it has read since "
                "is not kept"
            )

    def _fenced(self, group: str, partition: int) -> FencedError:
        return FencedError(
            f"partition {partition} of group {group!r} is read by another task by now: this one was stopped or cut off "
            "meanwhile, and what it has read since is not kept"
        )

    def _open(self) -> SqliteConnection:
        if self._connection is None:
            self._connection = _connected(self.path)
        return self._connection


class _Group(OwnedPlace):
    """The row of a group in the file. It has a connection of its own for the heartbeats."""

    def __init__(self, path: str | None, group: str) -> None:
        self._group = group
        self._connection = _connected(path)
        self._lock = Lock()

    def owner(self) -> Owner | None:
        epoch, text, _ = self._row()
        if text is not None:
            return Owner.from_text(text)
        return Owner(epoch, "", "", "", [0], "", [], ended=True) if epoch else None

    def beats(self) -> int:
        return self._row()[2]

    def replace(self, epoch: int, owner: Owner) -> bool:
        connection = self._connection
        with self._lock, connection.writing():
            connection.execute("INSERT OR IGNORE INTO readers VALUES (?, 0, '', NULL, 0, 1)", (self._group,))
            done = connection.execute(
                "UPDATE readers SET epoch = ?, run = ?, owner = ? WHERE grouped = ? AND epoch = ?",
                (owner.epoch, owner.run, owner.text(), self._group, epoch),
            )
            return done.rowcount == 1

    def beat(self, epoch: int) -> bool:
        connection = self._connection
        with self._lock, connection.writing():
            done = connection.execute(
                "UPDATE readers SET beats = beats + 1 WHERE grouped = ? AND epoch = ?", (self._group, epoch)
            )
            return done.rowcount == 1

    def describe(self) -> str:
        return f"the group {self._group!r}"

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _row(self) -> tuple[int, str | None, int]:
        with self._lock:
            found = self._connection.row("SELECT epoch, owner, beats FROM readers WHERE grouped = ?", self._group)
        return found or (0, None, 0)


def _file() -> SqliteFile:
    """Return the checks and messages for this kind of file.

    The tables are made here, since layout 1 had no mark of its own.
    """
    from multilang.state.sqlite_file import SqliteFile

    return SqliteFile("file of watermarks", _APPLICATION, _LAYOUT, "", "SQLiteStore(path)")


def _path(path: str | None) -> str:
    return path if path is not None else _usual_path()


def _connected(path: str | None) -> SqliteConnection:
    """Connect to the file, which is made, or brought to the present layout, if necessary."""
    import sqlite3

    path = _path(path)
    try:
        _file().make(path)
        connection = _file().connected(path, _BUSY_SECS)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            _lay_out(connection, path)
    except StateError as error:
        raise SourceError(f"{path} can't keep how far the spout is: {error}") from None
    except sqlite3.Error as error:
        raise SourceError(
            f"{path} can't keep how far the spout is: {error}; name another file with SQLiteStore(path)"
        ) from None
    return connection


def _lay_out(connection: SqliteConnection, path: str) -> None:
    """Make the tables unless they exist. The marks of layout 1 are taken over without checksums."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, layout) == (_APPLICATION, _LAYOUT):
        return
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if (application, layout) != (0, 0) or tables - {"watermarks"}:
        what = (
            f"layout {layout}, and this version knows {_LAYOUT}" if application == _APPLICATION else "another's tables"
        )
        raise SourceError(
            f"{path} can't keep how far the spout is: it has {what}; name another file with SQLiteStore(path)"
        )
    for statement in _SCHEMA:
        connection.execute(statement)
    if tables:
        connection.execute(
            "INSERT INTO marks SELECT grouped, partition, watermark, NULL, '{}', 0, saved FROM watermarks"
        )
        connection.execute("DROP TABLE watermarks")
    connection.execute(_OLD)
    connection.execute(f"PRAGMA application_id = {_APPLICATION:d}")
    connection.execute(f"PRAGMA user_version = {_LAYOUT:d}")


def _usual_path() -> str:
    """Return the usual file, beside the files of state, in a folder for this user alone."""
    from multilang import private
    from multilang.store.settings import state_file, state_home

    path = state_file("watermarks", "sources")
    folder = os.path.dirname(path)
    fix = "name a file for the progress with multilang.source.store in the conf, or a folder with MULTILANG_STATE_HOME"
    try:
        private.make_folder(state_home())
        private.make_folder(folder)
    except OSError as error:
        raise SourceError(f"{folder} can't be made: {error}; {fix}") from None
    if not private.is_own_folder(folder):
        raise SourceError(f"{folder} is not this user's alone; {fix}")
    return path


def _is_own(file: str) -> bool:
    """Return whether this account made a file: in a folder for temporary files, another one could have."""
    try:
        found = os.lstat(file)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()


def _refuse_left(group: str, connection: SqliteConnection) -> None:
    """Refuse a group whose marks are in the former usual file alone, which was in the folder for temporary files.

    Otherwise all of its rows would be read again.
    """
    import sqlite3
    from tempfile import gettempdir

    former = os.path.join(gettempdir(), f"storm-multilang-{os.getuid()}", "watermarks.sqlite")
    if connection.row("SELECT 1 FROM marks WHERE grouped = ?", group) or not _is_own(former):
        return
    try:
        before = _file().connected(former, _BUSY_SECS)
        try:
            found = before.row("SELECT 1 FROM watermarks WHERE grouped = ?", group)  # a table of layout 1, now a view
        finally:
            before.close()
    except (sqlite3.Error, StateError):
        return
    if found:
        raise SourceError(
            f"the progress of the group {group!r} is in {former}, which is no longer the usual file because the system deletes "
            "such files: move it to a durable place, and name that with multilang.source.store in the conf"
        )
