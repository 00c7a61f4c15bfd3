"""State in an SQLite file: durable on one machine, without a server. The embedded cluster's default.

Each task uses one transaction for each phase of a checkpoint. So whatever is killed at whatever moment, the file has
the old state or the new one.
"""

from __future__ import annotations

import os

from multilang.component.errors import ConfigError
from multilang.state.api import unheard
from multilang.state.errors import StateError
from multilang.state.owner import Owner, wait_until_free
from multilang.state.provider import StateProvider
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, cached_keys, check_members
from multilang.state.sqlite_file import PUT_BACK, SqliteFile
from multilang.state.stored import Store, StoredState, check_commit, check_prepare, fenced, went_back
from multilang.store.settings import owner_of, state_file, stored_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.state.sqlite_file import SqliteConnection, SqlitePlace

_BATCH = 10_000  # rows read at once

_SCHEMA = """\
CREATE TABLE txids (namespace TEXT PRIMARY KEY, committed INTEGER, prepared INTEGER, \
epoch INTEGER NOT NULL DEFAULT 0, claim INTEGER NOT NULL DEFAULT 0, step INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE data (namespace TEXT, key BLOB, value BLOB NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
CREATE TABLE prepared (namespace TEXT, key BLOB, value BLOB, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
"""

_UPGRADES = {
    1: """\
ALTER TABLE txids ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE txids ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;
""",
    2: "ALTER TABLE txids ADD COLUMN step INTEGER NOT NULL DEFAULT 0;\n",
}

FILE = SqliteFile("state file", 0x4D4C5354, 3, _SCHEMA, CONFIG, _UPGRADES)  # "MLST"
LARGEST = 1_000_000_000 - 1000  # SQLite's limit for a row, less a key and the row's head


class SqliteStateProvider(StateProvider):
    """A provider of states in an SQLite file.

    ``topology.state.provider.config`` is ``{"path": "/var/lib/shop/state.sqlite"}``. Without a path it is the
    topology's own file in ``$MULTILANG_STATE_HOME`` or, without that, in the user's folder for state.
    """

    local = True

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        super().__init__(config, conf)
        check_members(self.config, "state in SQLite", ("path",))
        path = self.config.get("path")
        if path is None:
            path = state_file(stored_name(self.conf))
        elif not isinstance(path, str) or not path or "\0" in path:
            raise ConfigError(f"{CONFIG}: path is {path!r}; name a file")
        self.path = os.path.abspath(os.path.expanduser(path))
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)

    def portable_config(self) -> dict[str, Any]:
        return {**self.config, "path": self.path}

    def new_state(self, namespace: str) -> StoredState:
        store = SqliteStore(FILE.open(self.path), namespace, self.path)
        return StoredState(namespace, store, self._keys, self._values, cached_keys(self.conf))

    def namespaces(self) -> list[str]:
        if not os.path.exists(self.path):
            return []
        connection = FILE.open(self.path)
        try:
            rows = connection.rows(
                "SELECT namespace FROM txids WHERE committed NOT NULL OR prepared NOT NULL "
                "UNION SELECT namespace FROM data ORDER BY 1"
            )
            return [row[0] for row in rows]
        finally:
            connection.close()

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        store = SqliteStore(FILE.open(self.path), namespace, self.path)
        try:
            return store.txids()
        finally:
            store.close()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        connection = FILE.open(self.path)
        try:
            with connection.writing(self.epoch):
                self._replace(connection, states)
        finally:
            connection.close()

    def check(self) -> None:
        """Open the file once, if there is one."""
        if os.path.exists(self.path):
            FILE.open(self.path).close()

    def place(self) -> SqlitePlace:
        return FILE.place(self.path, check=self._check_topology, written=_written_epoch)

    def check_free(self) -> None:
        if not os.path.exists(self.path):
            return
        place = self.place()
        try:
            owner = wait_until_free(place, owner_of(self.conf)[0])
        finally:
            place.close()
        if owner is not None:
            self._check_topology(owner)

    def adopt(self) -> int:
        place = FILE.place(self.path)
        run, topology = owner_of(self.conf)
        try:
            me = Owner.after(wait_until_free(place, run), run, topology)
            me.ended = True
            place.replace(me.epoch - 1, me)
        finally:
            place.close()
        return len(self.namespaces())

    def _replace(self, connection: SqliteConnection, states: Mapping[str, Mapping[Any, Any]]) -> None:
        for namespace, content in states.items():
            for statement in (
                "DELETE FROM data WHERE namespace = ?1",
                "DELETE FROM prepared WHERE namespace = ?1",
                # The claim stays and is raised, so that an earlier writer is refused.
                "INSERT OR IGNORE INTO txids (namespace) VALUES (?1)",
                "UPDATE txids SET committed = NULL, prepared = NULL, claim = claim + 1 WHERE namespace = ?1",
            ):
                connection.execute(statement, (namespace,))
            rows = ((namespace, self._keys.encode(k), self._values.encode(v)) for k, v in content.items())
            connection.executemany("INSERT INTO data VALUES (?, ?, ?)", rows)

    def _check_topology(self, owner: Owner) -> None:
        """Raise StateError if the file has the state of another topology, whose tasks may have the same names."""
        mine = stored_name(self.conf)
        if "topology.name" in self.conf and owner.topology != mine:
            raise StateError(
                f"the {FILE.what} {self.path} has the state of topology {owner.topology!r}, and this one is {mine!r}: name another "
                f"file in {CONFIG}. If it is the same topology under a new name: multilang state adopt TOPOLOGY"
            )

    def describe(self) -> str:
        return f"SQLite file {self.path}"


def _written_epoch(connection: SqliteConnection) -> int:
    return connection.row("SELECT max(epoch) FROM txids")[0] or 0


class SqliteStore(Store):
    """One namespace of a file. Each transaction that writes also compares the claim and the transactions."""

    largest = LARGEST

    def __init__(self, connection: SqliteConnection, namespace: str, path: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._path = path
        self._claim: int | None = None
        self._step = self._done = 0  # the last step that was begun, and the last that is known to be done

    def txids(self) -> tuple[int | None, int | None]:
        row = self._one("SELECT committed, prepared FROM txids WHERE namespace = ?")
        return (None, None) if row is None else (row[0], row[1])

    def claim(self, epoch: int) -> None:
        mine = self._claim

        def write() -> tuple[int, int]:
            known, claim, step = self._one("SELECT epoch, claim, step FROM txids WHERE namespace = ?") or (0, 0, 0)
            if known > epoch or (mine is not None and claim != mine):
                raise fenced(self._namespace, self._path, f"{mine or 0} of epoch {epoch}", f"{claim} of epoch {known}")
            new: int = claim + 1 if mine is None else claim
            values = (self._namespace, epoch, new)
            self._connection.execute(
                "INSERT INTO txids (namespace, epoch, claim) VALUES (?1, ?2, ?3) "
                "ON CONFLICT (namespace) DO UPDATE SET epoch = ?2, claim = ?3",
                values,
            )
            return new, step

        self._claim, self._done = self._transaction(write, traced=False)
        self._step = self._done

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
        # Each portion is a statement of its own: one that is read on and on would keep this connection in the past, where
        # it can't write once another task has written.
        prepared = dict(self._all("SELECT key, value FROM prepared WHERE namespace = ?"))
        yield from ((key, value) for key, value in prepared.items() if value is not None)
        rows = self._all("SELECT key, value FROM data WHERE namespace = ? ORDER BY key LIMIT ?", _BATCH)
        while rows:
            for key, value in rows:
                if key not in prepared:
                    yield key, value
            rows = self._all(
                "SELECT key, value FROM data WHERE namespace = ? AND key > ? ORDER BY key LIMIT ?", rows[-1][0], _BATCH
            )

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        name = self._namespace

        def write() -> None:
            committed, _ = self._claimed()
            check_prepare(name, txid, committed)
            execute = self._connection.executemany
            execute("INSERT OR REPLACE INTO prepared VALUES (?, ?, ?)", ((name, key, value) for key, value in rows))
            self._remember(committed, txid)

        self._transaction(write)

    def commit(self, txid: int) -> None:
        def write() -> None:
            check_commit(self._namespace, txid, *self._claimed())
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

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        def write() -> None:
            self._claimed()
            self._write(rows)

        self._transaction(write)

    def rollback(self) -> None:
        def write() -> None:
            committed, _ = self._claimed()
            self._connection.execute("DELETE FROM prepared WHERE namespace = ?", (self._namespace,))
            self._remember(committed, committed)

        self._transaction(write)

    def close(self) -> None:
        self._connection.close()

    def _write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        for key, value in rows:
            if value is None:
                self._connection.execute("DELETE FROM data WHERE namespace = ? AND key = ?", (self._namespace, key))
            else:
                self._connection.execute("INSERT OR REPLACE INTO data VALUES (?, ?, ?)", (self._namespace, key, value))

    def _claimed(self) -> tuple[int | None, int | None]:
        """Begin a step, and return the committed and prepared transactions.

        Raises:
            FencedError: This is no longer the newest claim.
            StoreGoneError: The file lacks something that was written.
        """
        row = self._one("SELECT claim, committed, prepared, step FROM txids WHERE namespace = ?")
        if self._claim is None:
            raise StateError(
                f"the state of {self._namespace!r} is written to before it was claimed: call claim(epoch) first"
            )
        if row is None:
            raise FILE.gone(self._path)
        if row[0] != self._claim:
            raise fenced(self._namespace, self._path, self._claim, row[0])
        if row[3] < self._done:
            raise went_back(self._namespace, self._path, self._done, row[3], PUT_BACK)
        self._step += 1
        self._one("UPDATE txids SET step = ?2 WHERE namespace = ?1", self._step)
        return row[1], row[2]

    def _remember(self, committed: int | None, prepared: int | None) -> None:
        row = (committed, prepared, self._namespace)
        self._connection.execute("UPDATE txids SET committed = ?, prepared = ? WHERE namespace = ?", row)

    def _transaction(self, write: Callable[[], Any], traced: bool = True) -> Any:
        trace = self.trace if traced else unheard
        trace("write")
        with self._connection.writing():
            result = write()
            trace("sync")
        self._done = self._step
        trace("synced")
        return result

    def _all(self, statement: str, *more: Any) -> list[Any]:
        return self._connection.rows(statement, self._namespace, *more)

    def _one(self, statement: str, *more: Any) -> Any:
        return self._connection.row(statement, self._namespace, *more)
