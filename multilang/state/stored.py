"""A key-value state in front of a store: values in use are in memory, and changes are written at checkpoints."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from itertools import islice

from multilang.protocol.codec import dumps, loads
from multilang.state.api import KeyValueState, ignore
from multilang.state.serializers import JsonKeySerializer, JsonSerializer
from multilang.store.errors import FencedError, StateError, StoreGoneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from multilang.state.serializers import Serializer
    from multilang.store.interface import Rows, Store

CACHED_KEYS = 100_000  # unchanged keys in memory, unless the conf sets multilang.state.cache.keys
_READ_KEYS = 10_000  # of these, for a reader that does not claim
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_PLAIN = frozenset({str, int, float, bool})  # JSON gives these back as they are
_HEAD, _DATA, _PREPARED, _NEW = "head", "data", "prepared", "new"  # the tables of a namespace
_KEY = b"head"  # the only row of the first


class Saved(ABC):
    """The bytes of one namespace: committed values, and over them prepared ones (None: deleted).

    Attributes:
        trace: Called with the name of each step; see ``multilang.trace``.
        largest: The largest size of a key or value, in bytes.
        is_claimed: Whether this object has claimed the namespace.
    """

    trace: Callable[[str], None] = staticmethod(ignore)
    largest: int = 2**62
    is_claimed = False

    @abstractmethod
    def claim(self, epoch: int) -> None:
        """Take the namespace over under the epoch of the checkpoint spout. See ``State.claim``."""

    @abstractmethod
    def txids(self) -> tuple[int | None, int | None]:
        """Return the transactions that were committed and prepared last; None for one that there is not."""

    @abstractmethod
    def load(self, key: bytes) -> bytes | None:
        """Return the value of a key: the prepared one if there is one, otherwise the committed one; None: there is none."""

    @abstractmethod
    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all keys with their values: the prepared value if there is one, or else the committed one."""

    @abstractmethod
    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Save rows (None: the key is deleted) over what is prepared already, as part of transaction ``txid``."""

    @abstractmethod
    def commit(self, txid: int) -> None:
        """Make what was prepared with ``txid`` the committed state. Nothing happens if it is committed already."""

    @abstractmethod
    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Save and commit rows at once, without a transaction."""

    @abstractmethod
    def rollback(self) -> None:
        """Drop the prepared changes."""

    @abstractmethod
    def close(self) -> None:
        """Close connections: the task ends."""


class _Head:
    """The row with the progress of a namespace. Each write replaces it, and expects it as this task knows it.

    Attributes:
        epoch: The highest epoch under which the namespace was claimed.
        claim: Drawn at random by each claim.
        committed: The last committed transaction; None: there is none.
        prepared: The last prepared transaction; None: there is none.
        step: The number of the last write.
        replaced: The last replacement of the whole contents.
    """

    __slots__ = ("claim", "committed", "epoch", "prepared", "replaced", "step")

    def __init__(
        self,
        epoch: int = 0,
        claim: str = "",
        committed: int | None = None,
        prepared: int | None = None,
        step: int = 0,
        replaced: str = "",
    ) -> None:
        self.epoch = epoch
        self.claim = claim
        self.committed = committed
        self.prepared = prepared
        self.step = step
        self.replaced = replaced

    def after(self, **members: Any) -> _Head:
        """Return the head that the next write stores, with other ``members``."""
        return _Head(**{**{name: getattr(self, name) for name in self.__slots__}, "step": self.step + 1, **members})

    @classmethod
    def from_row(cls, row: bytes) -> _Head:
        """Return the head that ``row`` returned as it is stored.

        Raises:
            ValueError: It is no such row.
        """
        members = loads(row)
        if not isinstance(members, dict) or members.keys() != {*cls.__slots__}:
            raise ValueError(f"no head: {row!r}")
        numbers = [members[name] for name in ("epoch", "step")]
        texts = [members[name] for name in ("claim", "replaced")]
        txids = [each for each in (members["committed"], members["prepared"]) if each is not None]
        if {*map(type, numbers + txids)} != {int} or {*map(type, texts)} != {str}:
            raise ValueError(f"no head: {row!r}")
        return cls(**members)

    def row(self) -> bytes:
        """Return the head as it is stored."""
        return dumps({name: getattr(self, name) for name in self.__slots__}).encode()


class Namespace(Saved):
    """One namespace in a store.

    Every write expects the head of the namespace as this object left it, in the same atomic step. So a process that was
    stopped between two of its steps, and whose task was restarted meanwhile, changes nothing when it is resumed.

    Args:
        store: The store. It is closed with the namespace.
        place: The place in the store.
        name: The namespace, for messages.
    """

    def __init__(self, store: Store, place: str, name: str) -> None:
        self._store = store
        self._place = place
        self._name = name
        self._head = _Head()
        self._prepared: dict[bytes, bytes] | None = None  # None: not read yet; an empty value: deleted
        self.largest = store.largest

    def claim(self, epoch: int) -> None:
        while True:
            raw, found = self._read_head()
            if found.epoch > epoch or (self.is_claimed and found.claim != self._head.claim):
                raise self._fenced(found, epoch)
            claim = self._head.claim if self.is_claimed else os.urandom(8).hex()
            new = found.after(epoch=epoch, claim=claim)
            if not self._store.durable and epoch > found.epoch:
                new.committed = new.prepared = None  # a new checkpoint spout counts transactions from the beginning
            self._store.trace = ignore
            if self._store.compare_and_write(self._place, {_HEAD: {_KEY: raw}}, {_HEAD: {_KEY: new.row()}}):
                self._head, self._prepared, self.is_claimed = new, None, True
                return

    def epoch(self) -> int:
        """Return the highest epoch under which the namespace was claimed; 0 if it never was."""
        return self._read_head()[1].epoch

    def txids(self) -> tuple[int | None, int | None]:
        found = self._read_head()[1]
        return found.committed, found.prepared

    def load(self, key: bytes) -> bytes | None:
        prepared = self._overlay()
        if key in prepared:
            return prepared[key] or None
        return self._store.get(self._place, _DATA, [key])[0]

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        prepared = dict(self._overlay())
        yield from ((key, value) for key, value in prepared.items() if value)
        yield from (row for row in self._store.list(self._place, _DATA) if row[0] not in prepared)

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        committed = self._head.committed
        if committed is not None and txid <= committed:
            raise StateError(
                f"transaction {txid} can't be prepared in {self._name!r}, where {committed} is committed already; "
                "two topologies may be using the same state"
            )
        overlay = [(key, value or b"") for key, value in rows]
        known = self._prepared
        *firsts, last = self._store.portions(overlay)
        for part in firsts:
            self._step({_PREPARED: part})
        self._step({_PREPARED: last}, prepared=txid)
        if known is not None:
            known.update(overlay)
        self._prepared = known

    def commit(self, txid: int) -> None:
        committed, prepared = self._head.committed, self._head.prepared
        if committed is not None and txid < committed:
            raise StateError(
                f"transaction {txid} can't be committed in {self._name!r}, where {committed} is committed already"
            )
        if prepared is not None and prepared < txid:
            raise StoreGoneError(  # all tasks had prepared this transaction, so no repetition helps
                f"transaction {txid} can't be committed in {self._name!r}, where {prepared} is prepared: what all tasks had prepared is "
                "missing here, as when a store is restored from an older copy. Restore a copy that has the state of all tasks"
            )
        if prepared is not None and txid != prepared:
            raise StateError(f"transaction {txid} can't be committed in {self._name!r}, where {prepared} is prepared")
        self._step({}, merged=(_PREPARED, _DATA), committed=txid, prepared=txid)
        self._prepared = {}

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._step({_DATA: dict(rows)})

    def rollback(self) -> None:
        self._step({}, cleared=[_PREPARED], prepared=self._head.committed)
        self._prepared = {}

    def stage(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Write the rows of the new contents, beside the present ones; see ``swap``."""
        self._step({}, cleared=[_NEW])
        for part in self._store.portions(rows):
            self._step({_NEW: part})

    def swap(self, replacement: str) -> None:
        """Make the rows that were staged the whole contents, once for each name of a replacement.

        There are two steps, each of which may be begun again: a database may need several requests for one of them.
        """
        emptied = f"{replacement} is emptied"
        if self._head.replaced not in (emptied, replacement):
            self._step({}, cleared=[_DATA, _PREPARED], committed=None, prepared=None, replaced=emptied)
            self._prepared = {}
        if self._head.replaced != replacement:
            self._step({}, merged=(_NEW, _DATA), replaced=replacement)

    def is_empty(self) -> bool:
        """Return whether it has neither transactions nor keys."""
        return self.txids() == (None, None) and next(self.scan(), None) is None

    def close(self) -> None:
        self._store.close()

    def _overlay(self) -> dict[bytes, bytes]:
        if self._prepared is None:
            self._prepared = dict(self._store.list(self._place, _PREPARED))
        return self._prepared

    def _read_head(self) -> tuple[bytes | None, _Head]:
        (raw,) = self._store.get(self._place, _HEAD, [_KEY])
        try:
            return raw, _Head() if raw is None else _Head.from_row(raw)
        except ValueError:
            raise StoreGoneError(
                f"the state of {self._name!r} in {self._store.describe()} is not what was written: its head is {raw!r}. It was changed by "
                "hand, or damaged: restore it, or remove it to start from nothing"
            ) from None

    def _step(
        self,
        changes: Rows,
        cleared: Collection[str] = (),
        merged: tuple[str, str] | None = None,
        **members: Any,
    ) -> None:
        if not self.is_claimed:
            raise StateError(
                f"the state of {self._name!r} is written to before it was claimed: call claim(epoch) first"
            )
        new = self._head.after(**members)
        self._store.trace = self.trace
        expected = {_HEAD: {_KEY: self._head.row()}}
        if not self._store.compare_and_write(
            self._place, expected, {**changes, _HEAD: {_KEY: new.row()}}, cleared, merged
        ):
            raise self._refused()
        self._head = new

    def _refused(self) -> FencedError | StoreGoneError:
        raw, found = self._read_head()
        if raw is not None and found.claim != self._head.claim and found.epoch >= self._head.epoch:
            return self._fenced(found, self._head.epoch)
        what = "was deleted" if raw is None else f"has step {found.step}, and step {self._head.step} was written"
        return StoreGoneError(
            f"the state of {self._name!r} in {self._store.describe()} was changed by somebody else, or restored from an older copy, while it "
            f"was in use: it {what}. Nothing more is written to it. Restore the newest copy, or restart the topology, which then "
            "resumes from what is there"
        )

    def _fenced(self, found: _Head, epoch: int) -> FencedError:
        return FencedError(
            f"the state of {self._name!r} ({self._store.describe()}) was taken over by another task or topology meanwhile (epoch "
            f"{found.epoch}, and this one has {epoch}): nothing more is written here"
        )


class _Encoded(bytes):
    """A value's bytes at the time of its put. A later change of the value in place is not saved."""

    __slots__ = ()


class StoredState(KeyValueState["Any", "Any"]):
    """A KeyValueState in front of the bytes of a namespace.

    At most ``cached`` unchanged keys are held in memory. They are read at the start, so that a new key costs no request where
    there are no more than that.

    Args:
        namespace: The namespace, for messages.
        store: The bytes of the namespace.
        keys: The serializer of keys; None: JSON.
        values: The serializer of values; None: JSON.
        cached: The number of unchanged keys to hold in memory.
    """

    def __init__(
        self,
        namespace: str,
        store: Saved,
        keys: Serializer | None = None,
        values: Serializer | None = None,
        cached: int = CACHED_KEYS,
    ) -> None:
        keys, values = keys or JsonKeySerializer(), values or JsonSerializer()
        self.namespace = namespace
        self.store = store
        self._keys = keys
        self._values = values
        # With these, a plain text or number needs no check when it is put.
        self._json = type(values) is JsonSerializer
        self._json_keys = type(keys) is JsonKeySerializer
        self._cached = cached
        self._live: dict[Any, Any] = {}  # what was read and written; None: not there
        self._changed: dict[Any, Any] = {}  # to be prepared
        self._complete = False  # every key of the store is in ``live``
        self._is_read = False  # nothing may be read before the claim
        self._large = store.largest // 8  # a text with fewer characters is never too large, however JSON writes it

    # ---- the calls of a component ----

    def get(self, key: Any, default: Any = None) -> Any:
        value = self._live.get(key)
        if value is None:
            if not self._is_read:
                self._read()
                value = self._live.get(key)
            if value is None and not self._complete and key not in self._live:
                value = self._load(key)
            if value is None:
                return default
        return value

    def put(self, key: Any, value: Any) -> None:
        if not (type(key) is str and key.isascii() and self._json_keys and len(key) < self._large):
            self._check_key(key)
        kind = type(value)
        if self._json and (
            value.isascii() and len(value) < self._large
            if kind is str
            else kind is int and _MIN_INT <= value <= _MAX_INT
        ):
            self._changed[key] = value
        elif value is None:
            raise ValueError(
                f"None is not a value of a state: delete({key!r}) removes the key, and get(key, default) returns the default"
            )
        else:
            self._changed[key] = data = self._encode(key, value)
            if self._json and kind not in _PLAIN:
                value = self._values.decode(data)  # as the next task will find it, a tuple as a list
        self._live[key] = value

    def delete(self, key: Any) -> Any:
        value = self.get(key)
        if value is not None:
            self._live[key] = self._changed[key] = None
        return value

    def items(self) -> Iterator[tuple[Any, Any]]:
        if not self._is_read:
            self._read()
        live = self._live.copy()  # reads, puts and deletes during the iteration change the other dict
        if not self._complete:
            yield from (item for item in self._scan() if item[0] not in live)
        for key, value in live.items():
            if value is not None:
                yield key, value

    # ---- the calls of a checkpoint ----

    def claim(self, epoch: int) -> None:
        self.store.claim(epoch)

    def prepare_commit(self, txid: int) -> None:
        self.store.prepare(txid, self.changes())
        self._changed.clear()
        if len(self._live) > self._cached:
            self._forget()

    def commit(self, txid: int | None = None) -> None:
        if txid is None:
            self.store.write(self.changes())
            self._changed.clear()
            return
        self.store.commit(txid)

    def rollback(self) -> None:
        self.store.rollback()
        self._changed.clear()
        self._live = {}
        self._complete = self._is_read = False

    def close(self) -> None:
        self.store.close()

    # ---- changes that are made in one process and saved in another ----

    def changes(self) -> list[tuple[bytes, bytes | None]]:
        """Return the rows that were put or deleted (None) since the last prepare, encoded for the store."""
        key_of, encode = self._keys.encode, self._values.encode
        rows: list[tuple[bytes, bytes | None]] = []
        for key, value in self._changed.items():
            if value is not None and type(value) is not _Encoded:
                value = encode(value)
            rows.append((key_of(key), value))
        return rows

    def apply_changes(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Apply the rows that ``changes`` returned elsewhere, on top of the same committed state.

        Args:
            rows: Keys with their values; None: the key is deleted.
        """
        decode_key, decode = self._keys.decode, self._values.decode
        for raw, value in rows:
            key = decode_key(raw)
            self._live[key] = None if value is None else decode(value)
            self._changed[key] = None if value is None else _Encoded(value)

    # ---- inside ----

    def _read(self) -> None:
        self._is_read = True
        most = self._cached if self.store.is_claimed else min(self._cached, _READ_KEYS)
        found = dict(islice(self._scan(), most + 1))
        self._complete = len(found) <= most
        self._live = {**found, **self._live}

    def _scan(self) -> Iterator[tuple[Any, Any]]:
        decode_key, decode = self._keys.decode, self._values.decode
        for raw, value in self.store.scan():
            try:
                item = decode_key(raw), decode(value)
            except Exception as problem:
                raise self._undecoded(raw, value, problem) from problem
            yield item

    def _undecoded(self, key: bytes, value: bytes, problem: Exception) -> StateError:
        return StateError(
            f"{self.namespace!r} has the key {key[:80]!r} with the value {value[:80]!r}, which can't be read with "
            f"{type(self._keys).__name__} and {type(self._values).__name__} ({type(problem).__name__}: {problem}): it was written "
            "with other serializers (keySerializerClass, valueSerializerClass) or by another program"
        )

    def _load(self, key: Any) -> Any:
        raw_key = self._keys.encode(key)
        raw = self.store.load(raw_key)
        try:
            value = None if raw is None else self._values.decode(raw)
        except Exception as problem:
            raise self._undecoded(raw_key, raw or b"", problem) from problem
        if len(self._live) - len(self._changed) > self._cached:
            self._forget()
        self._live[key] = value
        return value

    def _forget(self) -> None:
        """Empty a full cache, except for unwritten keys."""
        live = self._live
        self._live = {key: live[key] for key in self._changed}
        self._complete = False

    def _check_key(self, key: Any) -> None:
        size = len(self._keys.encode(key))
        if size > self.store.largest:
            raise ValueError(
                f"a key in the state of {self.namespace!r} has {size:,} bytes, and the store takes keys of up to "
                f"{self.store.largest:,}; it begins with {str(key)[:40]!r}"
            )

    def _encode(self, key: Any, value: Any) -> _Encoded:
        data = _Encoded(self._values.encode(value))
        if len(data) > self.store.largest:
            raise ValueError(
                f"the value of {key!r} in the state of {self.namespace!r} has {len(data):,} bytes, and the store takes values "
                f"of up to {self.store.largest:,}: divide it among several keys"
            )
        if not data:
            raise ValueError(f"{type(self._values).__name__} makes no byte of {value!r}; a value has at least one")
        return data
