"""Positions of spouts in an SQLite file."""

from __future__ import annotations

import os

from multilang.state.positions import PositionStore
from multilang.state.settings import POSITIONS
from multilang.state.sqlite_file import SqliteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.state.owner import OwnedPlace
    from multilang.state.sqlite_file import SqliteConnection

_SCHEMA = "CREATE TABLE positions (name TEXT PRIMARY KEY, position TEXT NOT NULL, epoch INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;\n"
_UPGRADES = {1: "ALTER TABLE positions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;\n"}
FILE = SqliteFile("position file", 0x4D4C504F, 2, _SCHEMA, POSITIONS, _UPGRADES)  # "MLPO"


class SqlitePositions(PositionStore):
    """Positions in a file, for the tasks of one machine."""

    form = "an SQLite file's path"

    def __init__(self, conf: Mapping[str, Any], name: str, place: str) -> None:
        super().__init__(conf, name, place)
        self._path = os.path.abspath(os.path.expanduser(place))
        self._where = f"{FILE.what} {self._path}"
        self._connection: SqliteConnection | None = None

    def close(self) -> None:
        super().close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _place(self) -> OwnedPlace:
        return FILE.place(self._path, self.name, written=self._written_epoch)

    def _load(self) -> str | None:
        self._connection = FILE.open(self._path)
        row = self._connection.row("SELECT position FROM positions WHERE name = ?", self.name)
        return None if row is None else str(row[0])

    def _save(self, text: str, epoch: int) -> None:
        assert self._connection is not None  # opened with the claim
        with self._connection.writing(epoch, self.name):
            self._connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (self.name, text, epoch))

    def _written_epoch(self, connection: SqliteConnection) -> int:
        row = connection.row("SELECT epoch FROM positions WHERE name = ?", self.name)
        return 0 if row is None else int(row[0])

    def _remove(self, epoch: int) -> None:
        assert self._connection is not None  # opened with the claim
        with self._connection.writing(epoch, self.name):
            self._connection.execute("DELETE FROM positions WHERE name = ?", (self.name,))

    def _all(self, start: str) -> dict[str, str]:
        if not os.path.exists(self._path):
            return {}
        connection = self._connection or FILE.open(self._path)
        try:
            found = connection.rows(
                "SELECT name, position FROM positions WHERE substr(name, 1, ?) = ?", len(start), start
            )
            return {str(name): str(text) for name, text in found}
        finally:
            if connection is not self._connection:
                connection.close()
