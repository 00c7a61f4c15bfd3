"""A map's values in an SQLite file: durable on one machine, without a server."""

from __future__ import annotations

import os

from multilang.protocol.codec import dumps
from multilang.state.errors import StoreGoneError
from multilang.state.sqlite_file import SqliteFile
from multilang.transactional.maps.backing import Backing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilang.state.sqlite_file import SqliteConnection
    from multilang.transactional.maps.backing import Row

_SCHEMA = "CREATE TABLE maps (map TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (map, key)) WITHOUT ROWID"
_FILE = SqliteFile("file of maps", 0x4D4C544D, 2, _SCHEMA, "the SqliteBacking", {1: ""})  # "MLTM"


class SqliteBacking(Backing):
    """A map in an SQLite file. A batch is one transaction, which is on the disk when the call returns.

    To look into it: ``sqlite3 PATH "SELECT key, value ->> 'value' FROM maps WHERE map = 'NAME'"``; the row
    ``$owner`` says whose the map is.

    Args:
        path: The file, which may have several maps.
        name: The map's name in the file.
    """

    local = True

    def __init__(self, path: str | os.PathLike[str], name: str = "map") -> None:
        self.path = os.path.abspath(os.path.expanduser(path))
        self.name = name

    def multi_get(self, keys: Sequence[str]) -> list[str | None]:
        statement = "SELECT key, value FROM maps WHERE map = ? AND key IN (SELECT value FROM json_each(?))"
        found = dict(self._connection().rows(statement, self.name, dumps(keys)))
        return [found.get(key) for key in keys]

    def multi_put(self, rows: Sequence[Row]) -> bool:
        new = [(self.name, key, value) for key, before, value in rows if before is None]
        changed = [(value, self.name, key, before) for key, before, value in rows if before is not None]
        db = self._connection()
        with db.writing():
            there = db.total_changes
            db.executemany("INSERT INTO maps VALUES (?, ?, ?) ON CONFLICT DO NOTHING", new)
            db.executemany("UPDATE maps SET value = ? WHERE map = ? AND key = ? AND value = ?", changed)
            done = db.total_changes - there == len(rows)
            if not done:
                db.execute("ROLLBACK")
        return done

    def check(self) -> None:
        _FILE.open(self.path).close()
        if self._opened is not None:
            try:
                self._opened.check_place()
            except StoreGoneError:  # an earlier run in this process used the file that is gone, and has reported it
                self._opened.close()
                self._opened = None

    def describe(self) -> str:
        return f"map {self.name!r} in {self.path}"

    def _connection(self) -> SqliteConnection:
        if self._opened is None:
            self._opened = _FILE.open(self.path)
        found: SqliteConnection = self._opened
        return found
