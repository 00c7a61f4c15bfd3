"""The stores of spouts' positions: an SQLite file or Redis, each with an owner.

The rules of ``multilang.state.owner`` hold: a task claims its position before it reads it, and each save compares the
claim in the same step. So a process that was stopped, and whose task was started again meanwhile, can't move the
position when it wakes up.

In Redis a position is a hash, ``$position:TOPOLOGY:COMPONENT/TASK``, with ``position``, ``epoch`` and ``owner``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from urllib.parse import urlsplit

from multilang.component.errors import ConfigError, NotSetError
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.owner import Owner, claim
from multilang.state.redis_client import REQUIRES, connect, place, translated_errors
from multilang.state.redis_place import RedisPlace
from multilang.state.settings import may_return, owner_of, state_file
from multilang.state.sqlite_file import SqliteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.state.owner import OwnedPlace, Ownership
    from multilang.state.sqlite_file import SqliteConnection

POSITIONS = "multilang.positions"
_SCHEMA = "CREATE TABLE positions (name TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;\n"
FILE = SqliteFile("position file", 0x4D4C504F, 1, _SCHEMA, POSITIONS)  # "MLPO"
SAVE_SECS = 2.0  # how long a save waits for Redis; what is not saved now is saved later
_SAVE = """\
local epoch, owner = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'owner'))
if not epoch then return {'gone'} end
if epoch ~= ARGV[1] then return {'fenced', owner} end
redis.call('HSET', KEYS[1], 'position', ARGV[2])
return {'done'}
"""


class PositionStore(ABC):
    """The stored position of one task. ``name`` is the task's: ``COMPONENT/0``."""

    def __init__(self, conf: Mapping[str, Any], name: str) -> None:
        self.conf = conf
        self.name = name
        self._owned: Ownership | None = None

    def claim(self, warn: Callable[[str], None]) -> str | None:
        """Become the owner of the position, and return the text that was saved last; None if nothing was saved.

        Raises:
            InUseError: Another run of the topology owns it.
        """
        run, topology = owner_of(self.conf)
        place = self._place()
        try:
            self._owned = claim(place, run, topology, warn, may_return(self.conf))
        except BaseException:
            place.close()
            raise
        return self._load()

    def save(self, text: str) -> None:
        """Replace the saved text, if this task still owns the position.

        Raises:
            FencedError: Another task owns it; nothing was saved.
        """
        if self._owned is None:
            raise StateError(f"the position of {self.name!r} is saved before it was claimed: call claim() first")
        self._save(text, self._owned.epoch)

    def close(self) -> None:
        """Release the position, so that another run may claim it without waiting."""
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.release()

    @abstractmethod
    def _place(self) -> OwnedPlace: ...

    @abstractmethod
    def _load(self) -> str | None: ...

    @abstractmethod
    def _save(self, text: str, epoch: int) -> None: ...

    def _fenced(self, by: object, where: str) -> FencedError:
        return FencedError(
            f"the position of {self.name!r} in {where} was taken over by {by} meanwhile: this task was stopped or cut off, and "
            "moves it no more"
        )

    def _gone(self, where: str) -> StoreGoneError:
        return StoreGoneError(
            f"the position of {self.name!r} in {where} was deleted while it was in use: put it back, or start the topology again, "
            "which then begins at the beginning"
        )


class SqlitePositions(PositionStore):
    """Positions in a file, for the tasks of one machine."""

    def __init__(self, conf: Mapping[str, Any], name: str, path: str) -> None:
        super().__init__(conf, f"{owner_of(conf)[1]}:{name}")
        self._path = os.path.abspath(os.path.expanduser(path))
        self._connection: SqliteConnection | None = None

    def close(self) -> None:
        super().close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _place(self) -> OwnedPlace:
        return FILE.place(self._path, self.name)

    def _load(self) -> str | None:
        self._connection = FILE.open(self._path)
        row = self._connection.row("SELECT position FROM positions WHERE name = ?", self.name)
        return None if row is None else str(row[0])

    def _save(self, text: str, epoch: int) -> None:
        assert self._connection is not None  # opened with the claim
        with self._connection.writing(epoch, self.name):
            self._connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", (self.name, text))


class RedisPositions(PositionStore):
    """Positions in Redis, which tasks on all machines reach."""

    requires: Mapping[str, str] = REQUIRES

    def __init__(self, conf: Mapping[str, Any], name: str, settings: Mapping[str, Any]) -> None:
        super().__init__(conf, f"{owner_of(conf)[1]}:{name}")
        self._settings = settings
        self._where = place(settings)
        self._key = f"$position:{self.name}"
        self._client: Any = None

    def close(self) -> None:
        super().close()
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connect(self, patience: float | None) -> Any:
        return connect(self._settings, "a spout's position in Redis", patience)

    def _place(self) -> OwnedPlace:
        keys = self._key, f"{self._key}$beats"
        return RedisPlace(keys, self._connect, f"the position of {self.name!r}", self._where, POSITIONS)

    def _load(self) -> str | None:
        self._client = self._connect(SAVE_SECS)
        with translated_errors(self._where, POSITIONS):
            found = self._client.hget(self._key, "position")
        return None if found is None else str(found.decode())

    def _save(self, text: str, epoch: int) -> None:
        with translated_errors(self._where, POSITIONS):
            said, *owner = self._client.eval(_SAVE, 1, self._key, epoch, text)
        if said == b"gone":
            raise self._gone(self._where)
        if said == b"fenced":
            raise self._fenced(Owner.from_text(owner[0]), self._where)


def open_positions(conf: Mapping[str, Any], name: str) -> PositionStore:
    """Return the store of the position of the task ``name``, as ``multilang.positions`` sets it.

    Raises:
        ConfigError: The setting is wrong, or missing on a cluster.
    """
    check_positions(conf, name)
    if conf.get(POSITIONS) is None:
        return SqlitePositions(conf, name, state_file(owner_of(conf)[1], "positions"))
    redis = _redis_of(conf)
    return SqlitePositions(conf, name, conf[POSITIONS]) if redis is None else RedisPositions(conf, name, redis)


def check_positions(conf: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError if the setting is one that ``open_positions`` would refuse; NotSetError if it is missing. Nothing is opened."""
    if conf.get(POSITIONS) is not None:
        _redis_of(conf)
    elif conf.get("multilang.parent") not in ("local", "spark"):
        raise NotSetError(
            f"the position of {name!r} has no place that every worker reaches: set {POSITIONS} to redis://HOST:PORT/DATABASE or, "
            "where there is one machine, to an SQLite file's path"
        )


def positions_class(conf: Mapping[str, Any]) -> type[PositionStore]:
    """Return the class of stores that ``multilang.positions`` names.

    Raises:
        ConfigError: The setting is wrong.
    """
    return SqlitePositions if conf.get(POSITIONS) is None or _redis_of(conf) is None else RedisPositions


def _redis_of(conf: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the address of the Redis that the setting names; None if it names a file."""
    given = conf[POSITIONS]
    what = f"{POSITIONS} is {given!r}; use an SQLite file's path, or redis://HOST:PORT/DATABASE"
    if not isinstance(given, str) or not given or "\0" in given:
        raise ConfigError(what)
    if "://" not in given:
        return None
    try:
        url = urlsplit(given)
        database = url.path.strip("/") or "0"
        if url.scheme != "redis" or not url.hostname or url.username or url.password or not database.isdecimal():
            raise ValueError
        return {"host": url.hostname, "port": url.port or 6379, "database": int(database)}
    except ValueError:
        raise ConfigError(f"{what} (a password belongs into the environment, MULTILANG_REDIS_PASSWORD)") from None
