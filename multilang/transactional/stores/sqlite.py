"""The state of transactions in an SQLite file: durable on one machine, without a server.

The embedded cluster's default.
"""

from __future__ import annotations

import logging
import os

from multilang.component.closing import close_all
from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.state.errors import StoreGoneError
from multilang.state.owner import Owner, claim
from multilang.state.sqlite_file import PUT_BACK, SqliteFile
from multilang.store.settings import owner_of, state_file
from multilang.transactional.names import EPOCH
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.state.owner import Ownership

PATH = "multilang.transactional.sqlite.path"

_SCHEMA = "CREATE TABLE nodes (path TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
# Since layout 2 the epoch of an id is its owner's; before, it was a node, which no write compared.
_UPGRADES = {
    1: """\
CREATE TABLE owners (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO owners SELECT replace(path, '/coordinator/starts', ''), CAST(value AS INTEGER), \
'{"earlier":[],"ended":true,"host":"","process":[0],"run":"","since":"","topology":"","epoch":' || value || '}' FROM nodes WHERE path LIKE '%/coordinator/starts';
DELETE FROM nodes WHERE path LIKE '%/coordinator/starts'
"""
}
FILE = SqliteFile("file of transactions", 0x4D4C5458, 2, _SCHEMA, PATH, _UPGRADES)  # "MLTX"
_AFTER_SLASH = chr(ord("/") + 1)

log = logging.getLogger(__name__)


class SqliteTransactionalState(TransactionalState):
    """The state of transactions in an SQLite file.

    ``multilang.transactional.sqlite.path`` names the file; without it, it is the topology's own file in the state
    folder. One file may have the transactions of several topologies, each under its id. The epoch is that of the id's
    owner.
    """

    def __init__(self, conf: Mapping[str, Any], id: str) -> None:
        super().__init__(conf, id)
        self.path = _path(conf, id)
        self._owned: Ownership | None = None
        self._written: dict[str, Any] = {}  # by the last write; nobody else changes these values in the same epoch
        self._connection = FILE.open(self.path)

    @classmethod
    def check(cls, conf: Mapping[str, Any], id: str) -> None:
        FILE.check_free(_path(conf, id), owner_of(conf)[0], id)
        cls(conf, id).close()

    def claim(self, waits: bool = True, again: bool = False) -> int:
        self._release()
        self._written.clear()  # others may have written since
        run, topology = owner_of(self.conf)
        self.trace("look")
        if again:
            FILE.check_free(self.path, "", self.id)
        self.trace("claim")
        place = FILE.place(self.path, self.id, written=lambda _: self.highest_epoch())
        self._owned = claim(place, run, topology, log.warning, may_return=not waits)
        self.trace("claimed")
        return self._write_as(self._owned.epoch)

    def enter(self, epoch: int, writer: str) -> None:
        self._written.clear()  # another instance of the task may have written since
        super().enter(epoch, writer)

    def get_data(self, path: str) -> Any:
        if path == EPOCH:
            rows = self._connection.rows("SELECT epoch FROM owners WHERE name = ?", self.id)
            return rows[0][0] if rows else None
        rows = self._connection.rows("SELECT value FROM nodes WHERE path = ?", self._full(path))
        return loads(rows[0][0]) if rows else None

    def compare_and_write(
        self, expected: Mapping[str, Any], values: Mapping[str, Any], deleted: Iterable[str] = ()
    ) -> bool:
        connection = self._connection
        rows = [(self._full(path), dumps(value)) for path, value in values.items()]
        with connection.writing():
            found = all(self.get_data(path) == value for path, value in expected.items())
            if found:
                self._check_written()
                connection.executemany("INSERT OR REPLACE INTO nodes VALUES (?, ?)", rows)
                connection.executemany("DELETE FROM nodes WHERE path = ?", [(self._full(path),) for path in deleted])
        if found:
            self._written = {path: loads(text) for path, (_, text) in zip(values, rows, strict=True)}
        return found

    def list(self, path: str) -> Sequence[str]:
        return [*dict.fromkeys(below.partition("/")[0] for below, _ in self._below(path))]

    def newest_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, tuple[int, Any]]:
        last: dict[str, tuple[int, str]] = {}
        for below, value in self._below(path):
            name, _, txid = below.partition("/")
            if int(txid) <= last_txid:
                last[name] = max((int(txid), value), last.get(name, (0, "")))
        return {name: (txid, loads(value)) for name, (txid, value) in last.items()}

    def describe(self) -> str:
        return f"the transactional id {self.id!r} in the {FILE.what} {self.path}"

    def owner(self) -> object:
        rows = self._connection.rows("SELECT owner FROM owners WHERE name = ?", self.id)
        return Owner.from_text(rows[0][0]) if rows else None

    def close(self) -> None:
        close_all(self._connection.close, self._release)

    def _check_written(self) -> None:
        for path, value in self._written.items():
            if self.get_data(path) != value:
                raise StoreGoneError(
                    f"{self.describe()} was put back to an older copy while it was in use: {path!r} is not what was written there last. "
                    f"Nothing more is written to it. {PUT_BACK}, with maps of the same moment"
                )

    def _release(self) -> None:
        owned, self._owned, self._fence = self._owned, None, None
        if owned is not None:
            owned.release()

    def _full(self, path: str) -> str:
        return f"{self.id}/{path}"  # several topologies may use one file

    def _below(self, path: str) -> Any:
        full = self._full(path)
        statement = "SELECT substr(path, ?), value FROM nodes WHERE path > ? AND path < ?"
        return self._connection.rows(statement, len(full) + 2, f"{full}/", f"{full}{_AFTER_SLASH}")


def _path(conf: Mapping[str, Any], id: str) -> str:
    path = conf.get(PATH)
    if path is None:
        path = state_file(id, "transactional")
    elif not isinstance(path, str) or not path:
        raise ConfigError(f"{PATH} is {path!r}; name a file")
    return os.path.abspath(os.path.expanduser(path))
