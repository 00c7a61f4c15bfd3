"""Rows in this process: for tests, and for data that need not survive it."""

from __future__ import annotations

from threading import Lock
from weakref import WeakValueDictionary

from multilang.store.interface import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
    from typing import Any, ClassVar

    from multilang.store.interface import Rows


class MemoryStore(Store):
    """Rows in dicts of this object. Its URL is ``memory:``."""

    durable = False

    def __init__(self, url: str = "memory:", conf: Mapping[str, Any] | None = None, setting: str = "") -> None:
        super().__init__(url, conf, setting)
        self._lock = Lock()
        self._places: dict[str, dict[str, dict[bytes, bytes]]] = {}

    def get(self, place: str, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        rows = self._places.get(place, {}).get(table, {})
        return [rows.get(key) for key in keys]

    def list(self, place: str, table: str) -> Iterator[tuple[bytes, bytes]]:
        with self._lock:
            rows = [*self._places.get(place, {}).get(table, {}).items()]
        return iter(rows)

    def places(self, start: str) -> Sequence[str]:
        with self._lock:
            return [name for name, tables in self._places.items() if name.startswith(start) and any(tables.values())]

    def tables(self, place: str) -> Sequence[str]:
        with self._lock:
            return [name for name, rows in self._places.get(place, {}).items() if rows]

    def compare_and_write(
        self,
        place: str,
        expected: Rows,
        changes: Rows,
        cleared: Collection[str] = (),
        merged: tuple[str, str] | None = None,
    ) -> bool:
        with self._lock:
            tables = self._places.setdefault(place, {})
            for table, rows in expected.items():
                there = tables.get(table, {})
                if any(there.get(key) != value for key, value in rows.items()):
                    return False
            self.trace("write")
            for table in cleared:
                tables.pop(table, None)
            if merged is not None:
                source, target = merged
                into = tables.setdefault(target, {})
                for key, found in tables.pop(source, {}).items():
                    _put(into, key, found or None)
            for table, rows in changes.items():
                into = tables.setdefault(table, {})
                for key, value in rows.items():
                    _put(into, key, value)
            return True

    def describe(self) -> str:
        return "memory of this process"


class SimulatedStore(MemoryStore):
    """The rows of a simulated run: all of its tasks share them, and they end with it. ``simulated_url`` has its URL."""

    durable = True
    local = True
    _first: ClassVar[MutableMapping[str, SimulatedStore]] = WeakValueDictionary()

    def __init__(self, url: str, conf: Mapping[str, Any] | None = None, setting: str = "") -> None:
        super().__init__(url, conf, setting)
        self._shared = first = self._first.setdefault(url, self)
        self._lock, self._places = first._lock, first._places

    def describe(self) -> str:
        return "memory of the simulated run"


def simulated_url(run: int) -> str:
    """Return the URL of a simulated run's own store in this process. ``run``: the run's number."""
    return f"{SimulatedStore.__module__}.{SimulatedStore.__qualname__}:{run}"


def _put(rows: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value
