"""A key-value state in front of a store: what the task uses is in memory, and what changed is written at checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.api import KeyValueState, unheard
from multilang.state.errors import FencedError, StateError, StoreGoneError, WrongProviderError
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from multilang.state.serializers import Serializer

CACHED_KEYS = 100_000  # that are unchanged, unless the conf says otherwise (multilang.state.cache.keys)
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1


class Store(ABC):
    """Where the bytes of one namespace are: committed ones, and over them prepared ones (None: deleted).

    Whoever writes has claimed the namespace under an epoch. Each method that writes compares what was claimed, and the
    transactions that are stored, in the same atomic step as it writes, and raises FencedError when somebody else has
    claimed it since. So a process that was stopped between two of its steps can do no harm when it wakes up.
    """

    trace: Callable[[str], None] = staticmethod(unheard)
    largest: int = 2**62
    """Bytes that a value may have."""

    @abstractmethod
    def claim(self, epoch: int) -> None:
        """Take the namespace over: from here on nobody can write who claimed it before.

        Raises FencedError when it was claimed under a newer epoch or, where this store had claimed it already, by anybody
        else since.
        """

    @abstractmethod
    def txids(self) -> tuple[int | None, int | None]:
        """The transactions that were committed and prepared last."""

    @abstractmethod
    def count(self) -> int:
        """How many keys there are, about."""

    @abstractmethod
    def load(self, key: bytes) -> bytes | None:
        """The value of a key, prepared before committed."""

    @abstractmethod
    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys with their values, prepared before committed."""

    @abstractmethod
    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Save ``rows`` over what is prepared already. StateError when ``txid`` is committed: two topologies use the state."""

    @abstractmethod
    def commit(self, txid: int) -> None:
        """Make what is prepared with ``txid`` the committed state; nothing happens when that is committed already."""

    @abstractmethod
    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Save and commit ``rows`` at once, under no transaction."""

    @abstractmethod
    def rollback(self) -> None:
        """Forget what is prepared."""

    def close(self) -> None:  # noqa: B027  # not every store has something to close
        """The task ends."""


def check_prepare(namespace: str, txid: int, committed: int | None) -> None:
    """StateError for a transaction that can't be prepared where ``committed`` is the last that was committed."""
    if committed is not None and txid <= committed:
        raise StateError(
            f"transaction {txid} can't be prepared in {namespace!r}, where {committed} is committed already; "
            "two topologies may be using the same state"
        )


def check_commit(namespace: str, txid: int, committed: int | None, prepared: int | None) -> None:
    """StateError for a transaction that can't be committed where these two are."""
    if committed is not None and txid < committed:
        raise StateError(
            f"transaction {txid} can't be committed in {namespace!r}, where {committed} is committed already"
        )
    if prepared is not None and prepared < txid:
        raise StoreGoneError(  # since what is to be committed was prepared by all tasks, no repetition helps
            f"transaction {txid} can't be committed in {namespace!r}, where {prepared} is prepared: what all tasks had prepared is gone "
            "here, as when a store is put back to an older copy. Put back a copy that has the state of all tasks"
        )
    if prepared is not None and txid != prepared:
        raise StateError(f"transaction {txid} can't be committed in {namespace!r}, where {prepared} is prepared")


def fenced(namespace: str, where: str, mine: object, found: object) -> FencedError:
    """The error for a writer of ``namespace`` that claimed it as ``mine``, where it is claimed as ``found`` by now."""
    return FencedError(
        f"the state of {namespace!r} ({where}) was taken over by another task or topology meanwhile (claim {found}, and this "
        f"one has {mine}): nothing more is written here"
    )


def went_back(namespace: str, where: str, done: int, found: int) -> StoreGoneError:
    """The error for a store that has ``found`` as its last step where ``done`` was done, and nobody else has claimed it."""
    return StoreGoneError(
        f"the state of {namespace!r} ({where}) was put back to an older copy while it was in use: it has step {found}, and step "
        f"{done} was written. Nothing more is written to it. Start the topology again, which goes on from that copy"
    )


def count_of(store: Store) -> int:
    """Return how many keys a store has. WrongProviderError if it gives no number."""
    found: Any = store.count()
    if type(found) is not int:
        raise WrongProviderError(
            f"{class_of(store)}.count() returned {shown(found)}; return how many keys there are, about, a whole number"
        )
    return found


def loaded(store: Store, key: bytes) -> bytes | None:
    """Return the bytes of a key. WrongProviderError if the store gives something else."""
    found: Any = store.load(key)
    if found is not None and not isinstance(found, bytes):
        raise WrongProviderError(
            f"{class_of(store)}.load({key!r}) returned {shown(found)}; return the value's bytes as they were saved, or None"
        )
    return found


def rows_of(store: Store) -> Iterator[tuple[bytes, bytes]]:
    """Give all keys of a store with their values. WrongProviderError if it gives something else."""
    rows: Any = store.scan()
    if not hasattr(rows, "__iter__"):
        raise WrongProviderError(
            f"{class_of(store)}.scan() returned {shown(rows)}; give (key, value) one by one, both in bytes"
        )
    for row in rows:
        try:
            key, value = row
        except (TypeError, ValueError):
            key = value = None
        if not isinstance(key, bytes) or not isinstance(value, bytes):
            raise WrongProviderError(
                f"{class_of(store)}.scan() gives {shown(row)}; give (key, value) one by one, both in bytes as they were saved, and "
                "no key that was deleted"
            )
        yield key, value


def class_of(thing: object) -> str:
    """Return the name of a thing's class, for messages."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _check(store: object) -> None:
    if not isinstance(store, Store):
        raise WrongProviderError(
            f"{shown(store)} is no store: write `class {type(store).__name__}(Store)`, of multilang.state, which says what is missing"
        )
    if type(store.largest) is not int or store.largest < 1:
        raise WrongProviderError(
            f"{class_of(store)}.largest is {shown(store.largest)}; write how many bytes a value may have, or leave it out"
        )


class _Encoded(bytes):
    """A value's bytes as they were when it was put: what is done to it later is not saved by that."""

    __slots__ = ()


class StoredState(KeyValueState["Any", "Any"]):
    """``live``: what was read and written, None for what is not there; ``changed``: what is to be prepared.

    At most ``cached`` unchanged keys are kept in memory. A store of no more than that is read at the start, so that a key
    that was never seen costs no question.
    """

    def __init__(
        self,
        namespace: str,
        store: Store,
        keys: Serializer | None = None,
        values: Serializer | None = None,
        cached: float = CACHED_KEYS,
    ) -> None:
        _check(store)
        keys, values = keys or JsonKeySerializer(), values or JsonSerializer()
        self.namespace = namespace
        self.store = store
        self._keys = keys
        self._values = values
        # What these take without a look needs none when it is put.
        self._json = type(values) is JsonSerializer
        self._json_keys = type(keys) is JsonKeySerializer
        self._cached = cached
        self._live: dict[Any, Any] = {}
        self._changed: dict[Any, Any] = {}
        self._complete = False  # every key of the store is in ``live``
        self._is_read = False  # nothing is, before the claim
        self._large = store.largest // 8  # no text of so many characters is too large, whatever JSON makes of it

    # ---- what a component does ----

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
                f"None is no value of a state: delete({key!r}) removes the key, and get(key, default) knows it is gone"
            )
        else:
            self._changed[key] = self._encode(key, value)
        self._live[key] = value

    def delete(self, key: Any) -> Any:
        value = self.get(key)
        if value is not None:
            self._live[key] = self._changed[key] = None
        return value

    def items(self) -> Iterator[tuple[Any, Any]]:
        if not self._is_read:
            self._read()
        live = self._live.copy()  # what is read, put or deleted meanwhile changes the other
        if not self._complete:
            yield from (item for item in self._scan() if item[0] not in live)
        for key, value in live.items():
            if value is not None:
                yield key, value

    # ---- what checkpoints do ----

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

    # ---- what is processed in one place and saved in another ----

    def changes(self) -> list[tuple[bytes, bytes | None]]:
        """What was put (None: deleted) since the last prepare, as the store has it."""
        key_of, encode = self._keys.encode, self._values.encode
        rows: list[tuple[bytes, bytes | None]] = []
        for key, value in self._changed.items():
            if value is not None and type(value) is not _Encoded:
                value = encode(value)
            rows.append((key_of(key), value))
        return rows

    def lay(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Put what ``changes`` gave elsewhere, from the same committed state on."""
        decode_key, decode = self._keys.decode, self._values.decode
        for raw, value in rows:
            key = decode_key(raw)
            self._live[key] = None if value is None else decode(value)
            self._changed[key] = None if value is None else _Encoded(value)

    # ---- inside ----

    def _read(self) -> None:
        self._is_read = True
        self._complete = count_of(self.store) <= self._cached
        if self._complete:
            self._live = {**dict(self._scan()), **self._live}

    def _scan(self) -> Iterator[tuple[Any, Any]]:
        decode_key, decode = self._keys.decode, self._values.decode
        for raw, value in rows_of(self.store):
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
        raw = loaded(self.store, raw_key)
        try:
            value = None if raw is None else self._values.decode(raw)
        except Exception as problem:
            raise self._undecoded(raw_key, raw or b"", problem) from problem
        if len(self._live) - len(self._changed) > self._cached:
            self._forget()
        self._live[key] = value
        return value

    def _forget(self) -> None:
        """A full memory is emptied but for what is not written yet: which keys will be needed again nobody knows."""
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
