"""The storage of a map: a place of a store, ``map/NAME``, in which a batch is one read and one write."""

from __future__ import annotations

import os
from copy import copy

from multilang.store.opening import open_store
from multilang.store.settings import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from multilang.store.interface import Store

    Row: TypeAlias = tuple[bytes, bytes | None, bytes]  # a key, the value it had when it was read, the value to be put

_TABLE = "values"


class Backing:
    """The keys and values of a map in a store (Storm's IBackingMap).

    The store connects at its first use, so that a map can be declared with the topology and used in its tasks. If something
    can't be read or written, StateError names the place.

    Args:
        store: The URL of a store, such as ``sqlite:///var/lib/counts.sqlite``, or a store.
        name: The map's name there.
        conf: Settings that belong into no URL, such as ``multilang.redis.access``.
    """

    def __init__(self, store: str | Store, name: str = "map", conf: Mapping[str, Any] | None = None) -> None:
        self.store = open_store(store, conf, "the place of a map") if isinstance(store, str) else store
        self.name = name
        self._place = place_of("map", name)

    @property
    def durable(self) -> bool:
        """True if another process, and a later one, finds the values."""
        return self.store.durable

    @property
    def local(self) -> bool:
        """True if only this machine can reach the values, as with files. Executors of a Spark cluster can't use them then."""
        return self.store.local

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None if there is none.

        Args:
            keys: The keys.

        Raises:
            StateError: The values can't be read.
        """
        return self.store.get(self._place, _TABLE, keys)

    def multi_put(self, rows: Sequence[Row]) -> bool:
        """Put all rows at once, if each key still has the value that was read.

        Args:
            rows: Each a key, the value that was read (None: there was none), and the new value.

        Returns:
            False if a key has another value by now; then nothing was put.

        Raises:
            StateError: The values can't be written.
        """
        before = {key: was for key, was, _ in rows}
        changes = {key: value for key, was, value in rows if value != was}
        return self.store.compare_and_write(self._place, {_TABLE: before}, {_TABLE: changes})

    def moved(self, store: str) -> Backing:
        """Return a backing like this one in another store, at a place that no other map has there. ``store``: its URL."""
        moved = copy(self)
        moved.store = open_store(store)
        moved._place = place_of("map", self.store.url, self.name)
        return moved

    def check(self) -> None:
        """Check that the store can be used. Called before the embedded cluster starts a topology.

        Raises:
            StateError: It can't be used now.
        """
        self.store.close()  # an earlier run in this process may have used a file or server that is not there any more
        self.store.check()

    def describe(self) -> str:
        """Return the place in the words of a message."""
        return f"map {self.name!r} in {self.store.describe()}"

    def close(self) -> None:
        """Close the store. The next use opens it again."""
        self.store.close()

    def __deepcopy__(self, memo: object) -> Backing:
        """Return the backing itself: a batch bolt is copied for each batch, and all copies write to the same place."""
        return self


class MemoryBacking(Backing):
    """A map in this process: for tests, and for values that need not survive it."""

    def __init__(self) -> None:
        super().__init__("memory:")


class SqliteBacking(Backing):
    """A map in an SQLite file: durable on one machine, without a server.

    Args:
        path: The file, which may have several maps.
        name: The map's name in the file.
    """

    def __init__(self, path: str | os.PathLike[str], name: str = "map") -> None:
        super().__init__(f"sqlite://{os.path.abspath(os.path.expanduser(path))}", name)
