"""A key-value state in front of a store: values in use are in memory, and changes are written at checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.api import KeyValueState, unheard
from multilang.state.calls import class_of
from multilang.state.errors import FencedError, StateError, StoreGoneError, WrongProviderError
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from multilang.state.serializers import Serializer

CACHED_KEYS = 100_000  # unchanged keys in memory, unless the conf sets multilang.state.cache.keys
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_PLAIN = frozenset({str, int, float, bool})  # JSON gives these back as they are


class Store(ABC):
    """The bytes of one namespace: committed values, and over them prepared ones (None: deleted).

    A writer has claimed the namespace under an epoch. Each method that writes compares the claim and the stored
    transactions in the same atomic step as it writes, and raises FencedError if somebody else has claimed the namespace
    since. So a process that was stopped between two of its steps can do no harm when it wakes up.

    Attributes:
        trace: Called with the name of each step; see ``multilang.state.trace``.
        largest: The largest size of a value, in bytes.
    """

    trace: Callable[[str], None] = staticmethod(unheard)
    largest: int = 2**62

    @abstractmethod
    def claim(self, epoch: int) -> None:
        """Take the namespace over. From then on a previous owner can't write to it.

        Args:
            epoch: The epoch of the checkpoint spout.

        Raises:
            FencedError: The namespace was claimed with a newer epoch or, if this store had claimed it already, by
                anybody else since.
        """

    @abstractmethod
    def txids(self) -> tuple[int | None, int | None]:
        """Return the transactions that were committed and prepared last; None for one that there is not."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of keys, about."""

    @abstractmethod
    def load(self, key: bytes) -> bytes | None:
        """Return the value of a key: the prepared one if there is one, otherwise the committed one.

        Args:
            key: The key's bytes.

        Returns:
            The value's bytes; None if there is no such key.
        """

    @abstractmethod
    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all keys with their values: the prepared value if there is one, or else the committed one."""

    @abstractmethod
    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Save rows over what is prepared already.

        Args:
            txid: The transaction.
            rows: Keys with their values; None: the key is deleted.

        Raises:
            FencedError: Somebody else has claimed the namespace.
            StateError: The transaction is committed already, so two topologies use the state; see ``check_prepare``.
        """

    @abstractmethod
    def commit(self, txid: int) -> None:
        """Make what was prepared with ``txid`` the committed state. Nothing happens if it is committed already.

        Args:
            txid: The transaction.

        Raises:
            FencedError: Somebody else has claimed the namespace.
            StateError: Another transaction is prepared or committed; see ``check_commit``.
        """

    @abstractmethod
    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Save and commit rows at once, without a transaction.

        Args:
            rows: Keys with their values; None: the key is deleted.

        Raises:
            FencedError: Somebody else has claimed the namespace.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Forget what is prepared.

        Raises:
            FencedError: Somebody else has claimed the namespace.
        """

    def close(self) -> None:  # noqa: B027  # not every store has something to close
        """Close connections: the task ends."""


def check_prepare(namespace: str, txid: int, committed: int | None) -> None:
    """Raise StateError if a transaction can't be prepared now.

    Args:
        namespace: The namespace, for the message.
        txid: The transaction to be prepared.
        committed: The last committed transaction; None: there is none.
    """
    if committed is not None and txid <= committed:
        raise StateError(
            f"transaction {txid} can't be prepared in {namespace!r}, where {committed} is committed already; "
            "two topologies may be using the same state"
        )


def check_commit(namespace: str, txid: int, committed: int | None, prepared: int | None) -> None:
    """Raise an error if a transaction can't be committed now.

    Args:
        namespace: The namespace, for the message.
        txid: The transaction to be committed.
        committed: The last committed transaction; None: there is none.
        prepared: The last prepared transaction; None: there is none.

    Raises:
        StateError: A later transaction is committed, or another one is prepared.
        StoreGoneError: An earlier transaction is prepared, so the prepared changes are gone.
    """
    if committed is not None and txid < committed:
        raise StateError(
            f"transaction {txid} can't be committed in {namespace!r}, where {committed} is committed already"
        )
    if prepared is not None and prepared < txid:
        raise StoreGoneError(  # all tasks had prepared this transaction, so no repetition helps
            f"transaction {txid} can't be committed in {namespace!r}, where {prepared} is prepared: what all tasks had prepared is gone "
            "here, as when a store is put back to an older copy. Put back a copy that has the state of all tasks"
        )
    if prepared is not None and txid != prepared:
        raise StateError(f"transaction {txid} can't be committed in {namespace!r}, where {prepared} is prepared")


def fenced(namespace: str, where: str, mine: object, found: object) -> FencedError:
    """Return the error for a writer whose claim is no longer the newest.

    Args:
        namespace: The namespace.
        where: The store, in the words of a message.
        mine: The writer's claim.
        found: The newest claim.
    """
    return FencedError(
        f"the state of {namespace!r} ({where}) was taken over by another task or topology meanwhile (claim {found}, and this "
        f"one has {mine}): nothing more is written here"
    )


def went_back(namespace: str, where: str, done: int, found: int, then: str) -> StoreGoneError:
    """Return the error for a store at step ``found``, although this owner wrote step ``done``.

    ``then`` is what is to be done.
    """
    return StoreGoneError(
        f"the state of {namespace!r} ({where}) was put back to an older copy while it was in use: it has step {found}, and step "
        f"{done} was written. Nothing more is written to it. {then}"
    )


def count_of(store: Store) -> int:
    """Return the number of keys in a store, checked to be a number."""
    found: Any = store.count()
    if type(found) is not int:
        raise WrongProviderError(
            f"{class_of(store)}.count() returned {shown(found)}; return how many keys there are, about, a whole number"
        )
    return found


def loaded(store: Store, key: bytes) -> bytes | None:
    """Return the value of a key, checked to be bytes or None."""
    found: Any = store.load(key)
    if found is not None and not isinstance(found, bytes):
        raise WrongProviderError(
            f"{class_of(store)}.load({key!r}) returned {shown(found)}; return the value's bytes as they were saved, or None"
        )
    return found


def rows_of(store: Store) -> Iterator[tuple[bytes, bytes]]:
    """Yield all keys of a store with their values, checked to be bytes."""
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


def _check(store: object) -> None:
    if not isinstance(store, Store):
        raise WrongProviderError(
            f"{shown(store)} is not a store: write `class {type(store).__name__}(Store)`, of multilang.state, which says what is missing"
        )
    if type(store.largest) is not int or store.largest < 1:
        raise WrongProviderError(
            f"{class_of(store)}.largest is {shown(store.largest)}; write how many bytes a value may have, or leave it out"
        )


class _Encoded(bytes):
    """A value's bytes at the time of its put. A later change of the value in place is not saved."""

    __slots__ = ()


class StoredState(KeyValueState["Any", "Any"]):
    """A KeyValueState in front of a Store.

    At most ``cached`` unchanged keys are kept in memory. A store with no more keys than that is read whole at the
    start, so that a new key costs no question.

    Args:
        namespace: The namespace, for messages.
        store: The store of the namespace.
        keys: The serializer of keys; None: JSON.
        values: The serializer of values; None: JSON.
        cached: The number of unchanged keys to keep in memory.
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
        # With these, a plain text or number needs no check when it is put.
        self._json = type(values) is JsonSerializer
        self._json_keys = type(keys) is JsonKeySerializer
        self._cached = cached
        self._live: dict[Any, Any] = {}  # what was read and written; None: not there
        self._changed: dict[Any, Any] = {}  # what is to be prepared
        self._complete = False  # every key of the store is in ``live``
        self._is_read = False  # nothing may be read before the claim
        self._large = store.largest // 8  # a text with fewer characters is never too large, however JSON writes it

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
                f"None is not a value of a state: delete({key!r}) removes the key, and get(key, default) knows it is gone"
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
        """Empty a full cache, except for unwritten keys. Nobody knows which keys will be needed again."""
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
