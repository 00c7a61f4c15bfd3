"""Where a spout keeps how far it is, so that it goes on there after a restart."""

from __future__ import annotations

import os
from time import time

from spark_bridge.sources.errors import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

_FORGOTTEN_SECS = 90 * 24 * 3600.0  # a run that has told nothing for so long won't go on
_BUSY_SECS = 60.0  # that other tasks' writing is waited for


class WatermarkStore:
    """The seam: watermarks by group and partition. A group is one run's reading of one source.

    Used by one task's process, in one thread; other tasks of the spout keep other partitions in the same group.
    """

    def load(self, group: str) -> dict[int, int]:
        """Partition -> how many of its rows are acked without a gap."""
        raise NotImplementedError

    def save(self, group: str, watermarks: Mapping[int, int]) -> None:
        """Keep these, if they are further than what is kept: a process that was taken for dead does no harm."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what it holds."""


class SQLiteStore(WatermarkStore):
    """A SQLite file, by default one for all topologies of this user on this machine, in the folder for temporary files.

    It must be on a disk of this machine; processes of several machines need a store of their own kind.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def load(self, group: str) -> dict[int, int]:
        rows = self._open().execute("SELECT partition, watermark FROM watermarks WHERE grouped = ?", (group,))
        return dict(rows.fetchall())

    def save(self, group: str, watermarks: Mapping[int, int]) -> None:
        connection = self._open()
        now = time()
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO watermarks (grouped, partition, watermark, saved) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (grouped, partition) DO UPDATE SET watermark = excluded.watermark, saved = excluded.saved "
                "WHERE excluded.watermark > watermark",
                [(group, partition, watermark, now) for partition, watermark in watermarks.items()],
            )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __reduce__(self) -> tuple[type[SQLiteStore], tuple[str | None]]:
        return SQLiteStore, (self.path,)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            import sqlite3

            path = self.path if self.path is not None else _usual_path()
            try:
                connection = sqlite3.connect(path, timeout=_BUSY_SECS, isolation_level=None, check_same_thread=False)
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS watermarks (grouped TEXT NOT NULL, partition INTEGER NOT NULL, "
                        "watermark INTEGER NOT NULL, saved REAL NOT NULL, PRIMARY KEY (grouped, partition)) WITHOUT ROWID"
                    )
                    connection.execute("DELETE FROM watermarks WHERE saved < ?", (time() - _FORGOTTEN_SECS,))
            except sqlite3.Error as error:
                raise SourceError(
                    f"{path} can't keep how far the spout is: {error}; name another file with SQLiteStore(path)"
                ) from None
            self._connection = connection
        return self._connection


def _usual_path() -> str:
    """In a folder that is this user's alone, as the folder for temporary files is everyone's."""
    from tempfile import gettempdir

    folder = os.path.join(gettempdir(), f"storm-multilang-{os.getuid()}")
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    status = os.lstat(folder)
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or os.path.islink(folder):
        raise SourceError(f"{folder} is not this user's alone; name a file for the progress with SQLiteStore(path)")
    return os.path.join(folder, "watermarks.sqlite")
