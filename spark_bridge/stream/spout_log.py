"""A spout's tuples that Spark has not committed, in an SQLite file, so that a batch has the same rows after a crash."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from multilang.protocol.codec import dumps, loads
from multilang.state.sqlite_file import SqliteFile
from spark_bridge.job.errors import SparkJobError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Offset = dict[str, str | int]

_SCHEMA = """\
CREATE TABLE ends (log TEXT NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL);
CREATE TABLE positions (row INTEGER, task INTEGER, position TEXT NOT NULL, PRIMARY KEY (row, task));
CREATE TABLE rows (number INTEGER PRIMARY KEY, content TEXT NOT NULL);
"""

FILE = SqliteFile("spout log", 0x4D4C534C, 3, _SCHEMA, "the option log", {2: ""})  # "MLSL"


def positions_in(path: str, row: int) -> dict[int, Any]:
    """Return task index -> the spout's position at this row, where a batch ends.

    Another process may have claimed the log.
    """
    with closing(FILE.connected(path)) as connection:
        return _positions(connection, row)


def _positions(connection: sqlite3.Connection, row: int) -> dict[int, Any]:
    found = connection.execute("SELECT task, position FROM positions WHERE row = ? ORDER BY task", (row,))
    return {task: loads(position) for task, position in found}


@cache
def _drawn(process: int) -> str:
    return f"{process} {uuid4().hex}"


def _run() -> str:
    """Return a name for this process, under which a source that is opened again in it can claim the log once more.

    It is drawn at random: the numbers of processes, and the names of hosts, are used more than once.
    """
    return _drawn(os.getpid())


class SpoutLog:
    """The rows from ``first`` to ``next``, numbered from 0. One process has the log at a time.

    An offset is the log's own id and the number of the next row. Raises StateError for a file that is no log, or in
    use.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(os.path.expanduser(path))
        self._owned = FILE.claim(self.path, _run(), "a streaming query")
        try:
            self._connection = connection = FILE.open(self.path)
            with connection.writing(self._owned.epoch):
                connection.execute("CREATE TABLE IF NOT EXISTS spout (described TEXT NOT NULL)")  # not in older logs
                connection.execute(
                    "INSERT INTO ends SELECT ?, 0, 0 WHERE NOT EXISTS (SELECT * FROM ends)", (uuid4().hex,)
                )
            self.id: str
            self.id, self.first, self.next = connection.execute("SELECT * FROM ends").fetchone()
        except BaseException:
            self._owned.release()
            raise

    def belongs_to(self, spout: Mapping[str, Any]) -> None:
        """Store which spout's log this is, or compare it with what is stored.

        Raises SparkJobError for another spout.
        """
        found = self._connection.execute("SELECT described FROM spout").fetchone()
        if found is None:  # the log is new, or of a version that did not store it
            with self._connection.writing(self._owned.epoch):
                self._connection.execute("INSERT INTO spout VALUES (?)", (dumps(spout),))
            return
        before = loads(found[0])
        for key, value in spout.items():
            if before.get(key) != value:
                raise SparkJobError(
                    f"the spout log {self.path} is that of another spout: its {key} was {before.get(key)!r}, and is {value!r}. What "
                    "the log has, and where that spout was, belong together: go on with the spout as it was, or begin a new log "
                    "and a new checkpoint"
                )

    @property
    def begin(self) -> Offset:
        """The offset of the first row that no query has committed."""
        return self._offset(self.first)

    @property
    def end(self) -> Offset:
        """The offset behind the last row."""
        return self._offset(self.next)

    def positions(self) -> dict[int, Any]:
        """Return task index -> the spout's position behind the last row, if the spout has positions."""
        return _positions(self._connection, self.next)

    def append(self, rows: Sequence[Sequence[Any]], positions: Mapping[int, Any]) -> None:
        """Write rows and positions to the disk: all of them or, after a crash, nothing."""
        connection = self._connection
        following = self.next + len(rows)
        with connection.writing(self._owned.epoch):
            connection.executemany("INSERT INTO rows VALUES (?, ?)", enumerate(map(dumps, rows), self.next))
            connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)",
                ((following, task, dumps(each)) for task, each in positions.items()),
            )
            connection.execute("UPDATE ends SET next = ?", (following,))
        self.next = following

    def rows(self, start: Offset, end: Offset) -> list[list[Any]]:
        """Return the rows between two offsets, in their order."""
        where = self.number(start), self.number(end)
        found = self._connection.execute(
            "SELECT content FROM rows WHERE number >= ? AND number < ? ORDER BY number", where
        )
        return [loads(content) for (content,) in found]

    def forget(self, end: Offset) -> None:
        """Delete the rows before ``end``, which nobody will read any more."""
        number = self.number(end)
        connection = self._connection
        with connection.writing(self._owned.epoch):
            connection.execute("DELETE FROM rows WHERE number < ?", (number,))
            connection.execute("DELETE FROM positions WHERE row < ?", (number,))
            connection.execute("UPDATE ends SET first = ?", (number,))
        self.first = number

    def number(self, offset: Any) -> int:
        """Return the number of an offset's row. Raises SparkJobError for an offset that is not in this log."""
        if not isinstance(offset, dict) or offset.get("log") != self.id:
            raise SparkJobError(
                f"the checkpoint is not that of the spout log {self.path}, but of another one, or of another kind of source: "
                "name what this query read, or begin a new checkpoint"
            )
        number = int(offset["row"])
        if not self.first <= number <= self.next:
            raise SparkJobError(
                f"the checkpoint goes on at row {number}, and the spout log {self.path} has rows {self.first} to {self.next}: "
                "one of them is an older copy, or another query reads this log, too; begin a new checkpoint"
            )
        return number

    def close(self) -> None:
        """Release the log, so that another process may claim it."""
        self._connection.close()
        self._owned.release()

    def _offset(self, number: int) -> Offset:
        return {"log": self.id, "row": number}
