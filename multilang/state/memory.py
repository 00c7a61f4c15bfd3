"""State in the task's own memory: nothing survives the task (Storm's InMemoryKeyValueStateProvider)."""

from __future__ import annotations

from multilang.state.provider import StateProvider
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import check_members
from multilang.state.stored import Store, StoredState, check_commit, check_prepare, fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


class MemoryStateProvider(StateProvider):
    """A provider that keeps one state for each namespace in this object. Nothing survives the task."""

    durable = False

    def __init__(self, config: Mapping[str, Any] | None = None, conf: Mapping[str, Any] | None = None) -> None:
        super().__init__(config or {}, conf or {})
        check_members(self.config, "the in-memory state", ())
        self._states: dict[str, StoredState] = {}

    def new_state(self, namespace: str) -> StoredState:
        if namespace not in self._states:
            self._states[namespace] = StoredState(
                namespace,
                MemoryStore(namespace),
                serializer(self.config, "keySerializerClass", JsonKeySerializer),
                serializer(self.config, "valueSerializerClass", JsonSerializer),
                float("inf"),
            )
        return self._states[namespace]

    def describe(self) -> str:
        return "memory: each task has its own state, which ends with it"


class MemoryStore(Store):
    """A store in two dicts, which only the task itself uses.

    A new epoch means a new checkpoint spout, which counts transactions from the beginning.
    """

    def __init__(self, namespace: str = "") -> None:
        self._namespace = namespace
        self._epoch = 0
        self._committed: dict[bytes, bytes] = {}
        self._prepared: dict[bytes, bytes | None] = {}
        self._txids: tuple[int | None, int | None] = (None, None)

    def claim(self, epoch: int) -> None:
        if epoch < self._epoch:
            raise fenced(self._namespace, "memory", epoch, self._epoch)
        if epoch > self._epoch:
            self._epoch = epoch
            self._txids = (None, None)

    def txids(self) -> tuple[int | None, int | None]:
        return self._txids

    def count(self) -> int:
        return len(self._committed)

    def load(self, key: bytes) -> bytes | None:
        return self._prepared[key] if key in self._prepared else self._committed.get(key)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        for key, value in {**self._committed, **self._prepared}.items():
            if value is not None:
                yield key, value

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        check_prepare(self._namespace, txid, self._txids[0])
        self._prepared.update(rows)
        self._txids = (self._txids[0], txid)

    def commit(self, txid: int) -> None:
        check_commit(self._namespace, txid, *self._txids)
        self._merge(self._prepared.items())
        self._prepared.clear()
        self._txids = (txid, txid)

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._merge(rows)

    def rollback(self) -> None:
        self._prepared.clear()
        self._txids = (self._txids[0], self._txids[0])

    def _merge(self, rows: Any) -> None:
        for key, value in rows:
            if value is None:
                self._committed.pop(key, None)
            else:
                self._committed[key] = value
