"""The common part of both maps: read a batch's keys, change them by the map's rule, put them if nobody changed them.

The laws of ``multilang.store.interface`` hold. A map belongs to the owner of transactions (``TransactionAttempt.owner``) and
stores its name, its epoch and the map's kind in a row of its own, ``$owner``, which is the fence. The first update makes it,
and the first one of a higher epoch raises that. Each put compares the row, too, so that the store itself refuses every owner
but the newest. The row is in the same place as the values, and is removed with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from functools import partial
from typing import ClassVar

from multilang.protocol.codec import dumps, loads, reason_against
from multilang.state.serializers import JsonKeySerializer
from multilang.store.errors import StateError, StoreGoneError, UnusableStateError
from multilang.store.interface import ignore
from multilang.transactional.maps.backing import Backing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.maps.backing import Row

    Change: TypeAlias = int | float | Callable[[Any], Any]
    Stored: TypeAlias = dict[str, Any]  # {"value": 3, "txid": 7, "attempt": 123}

_OWNER = b"$owner"  # no key's name: a text's is quoted
TRIES = 50  # of a batch whose keys others change between its read and its write

_encode_key = JsonKeySerializer().encode


class UpdateMap(ABC):
    """Values by key, to which each transaction is applied once. See TransactionalMap and OpaqueMap.

    Keys are strings, integers or tuples of these. Values are anything that JSON can express; None means no value. Each
    value is stored as a JSON object, with the transaction and the attempt that wrote it.

    Args:
        backing: Where the values are stored: a store's URL, such as ``sqlite:///var/lib/counts.sqlite``, or a Backing.
        name: The map's name there, if that is given by its URL.

    Attributes:
        trace: Called with each step of an update: "read", "put" and "done"; see ``multilang.state.steps``.
    """

    kind: ClassVar[str]
    """The name of the map's rule, as it is stored."""

    trace: Callable[[str], None] = staticmethod(ignore)

    same_batches = False
    """Whether a transaction that is repeated must have the batch that it had."""

    _record: bytes | None = None
    """The name under which the map stores data about itself. It is no key's name."""

    _seen: tuple[str, int] | None = None
    """The owner and epoch of the map's row when this process updated it last."""

    def __init__(self, backing: Backing | str, name: str = "map") -> None:
        given: object = backing
        if not isinstance(given, Backing | str):
            raise TypeError(
                f'a map is made of where its values are, {type(self).__name__}(SqliteBacking("counts.sqlite")) or '
                f'{type(self).__name__}("sqlite:counts.sqlite"), not of {given!r}'
            )
        self.backing = Backing(backing, name) if isinstance(backing, str) else backing

    def get(self, key: Hashable, default: Any = None) -> Any:
        """Return the value of ``key``.

        Args:
            key: A string, an integer, or a tuple of these.
            default: Returned when the key has no value.
        """
        return self.multi_get([key]).get(key, default)

    def multi_get(self, keys: Iterable[Hashable]) -> dict[Any, Any]:
        """Return the values of those keys that have one, in one round trip.

        Args:
            keys: Strings, integers, or tuples of these.
        """
        _, record, texts = self._read(_names(keys))
        found = {key: self._current(loads(text), record) for key, text in texts.items() if text is not None}
        return {key: value for key, value in found.items() if value is not None}

    def update(self, attempt: TransactionAttempt, changes: Mapping[Any, Change]) -> dict[Any, Any]:
        """Apply the changes of a batch, once, whatever is replayed. It takes two round trips.

        Call it in ``finish_batch`` of a committer, with all changes of the batch. Only one task may update a key, once for
        each batch.

        Args:
            attempt: The batch's id, ``self.id`` in a BatchBolt.
            changes: By key, a number to be added (a missing value counts as 0), or a function that gets the current
                value (None: there is none) and returns the new one. The function may be called more than once.

        Returns:
            The new values by key.

        Raises:
            UnusableStateError: The map belongs to another transactional id.
            UnusableStateError: A later transaction has updated a key already.
            UnusableStateError: A key was updated twice in the batch; or a map of the other kind was here before; or the spout is
                opaque, and the map is not for such.
            StateError: The transactions were claimed again since.
            StoreGoneError: The map was deleted while it was in use.
            TypeError: A change is neither a number nor a function.
            ValueError: JSON can't express a new value.
        """
        txid, number = _numbers(attempt)
        if attempt.opaque:
            self.check_opaque()
        functions = {key: _function(key, change) for key, change in changes.items()}
        names = _names(changes)
        for _ in range(TRIES):
            self.trace("read")
            owner, record, texts = self._read(names)
            rows = [self._owner_row(owner, attempt), *self._next_record(record, txid, number)]
            results: dict[Any, Any] = {}
            for key, text in texts.items():
                before = None
                if text is not None:
                    stored = loads(text)
                    self._check(key, stored, txid, number)
                    if self._is_done(stored, txid):
                        results[key] = stored["value"]
                        continue
                    before = self._before(stored, txid, record)
                results[key] = functions[key](before)
                rows.append((names[key], text, _encoded(key, self._new(results[key], txid, number, before))))
            self.trace("put")
            attempt.updated = True
            if all(was == now for _, was, now in rows) or self.backing.multi_put(rows):
                self._seen = attempt.owner, attempt.epoch
                self.trace("done")
                return results
        raise StateError(
            f"{self.backing.describe()}: others changed the keys of transaction {txid} {TRIES} times between its read and its "
            "write; give each key one task (fields or global grouping), and each topology a map of its own"
        )

    def put(self, attempt: TransactionAttempt, values: Mapping[Any, Any]) -> None:
        """Set values, whatever they were before; see ``update``.

        Args:
            attempt: The batch's id, ``self.id`` in a BatchBolt.
            values: The new values by key.
        """
        self.update(attempt, {key: partial(_replaced, value) for key, value in values.items()})

    def check_opaque(self) -> None:
        """Check that the map is right for a spout that may repeat a transaction with another batch.

        Raises:
            UnusableStateError: It would leave the other batch out.
        """
        if self.same_batches:
            raise UnusableStateError(
                f"{self.backing.describe()}: a {type(self).__name__} leaves out a transaction that it has, and the topology's spout is "
                "opaque: it may repeat a transaction with other tuples, which would be lost. Use an OpaqueMap"
            )

    def check_owner(self, id: str | None) -> None:
        """Check that this map may be updated by these transactions. Called before the embedded cluster starts a topology.

        Args:
            id: The transactional id; None: it is not known.

        Raises:
            UnusableStateError: The map belongs to another transactional id.
            UnusableStateError: A map of the other kind was here before.
            StateError: The map can't be read.
        """
        owner, *_ = self._read({})
        if id is not None:
            self._check_owner(owner, f"{id}/")

    def close(self) -> None:
        """Close the backing's connection."""
        self.backing.close()

    def __deepcopy__(self, memo: object) -> UpdateMap:
        """Return the map itself: a batch bolt is copied for each batch, and all copies write to the same map."""
        return self

    @abstractmethod
    def _current(self, stored: Stored, record: Any) -> Any:
        """Return the value that counts."""

    @abstractmethod
    def _is_done(self, stored: Stored, txid: int) -> bool:
        """Return whether the changes of ``txid`` were applied already."""

    @abstractmethod
    def _before(self, stored: Stored, txid: int, record: Any) -> Any:
        """Return the value to which the changes of ``txid`` are applied."""

    @abstractmethod
    def _new(self, value: Any, txid: int, attempt: int, before: Any) -> Stored:
        """Return the object to be stored."""

    def _next_record(self, record: Any, txid: int, attempt: int) -> list[Row]:
        """Return the rows that the map must remember about this attempt."""
        return []

    def _read(self, names: Mapping[Any, bytes]) -> tuple[MapOwner, Any, dict[Any, bytes | None]]:
        """Return the map's owner, its record, and the texts of the keys."""
        beside = [_OWNER] if self._record is None else [_OWNER, self._record]
        found = self.backing.multi_get([*beside, *names.values()])
        owner = MapOwner(found[0])
        if owner.kind not in (None, self.kind):
            raise UnusableStateError(
                f"{self.backing.describe()} was stored by a map of the kind {owner.kind}, and this one is {type(self).__name__}, which "
                f"can't read it: use {owner.kind} as before, or give this map a name of its own and begin the transactions anew"
            )
        record = None if self._record is None else found[1]
        return owner, record, dict(zip(names, found[len(beside) :], strict=True))

    def _owner_row(self, found: MapOwner, attempt: TransactionAttempt) -> Row:
        """Return the row that claims the map for an attempt's owner, or compares the claim.

        Args:
            found: The map's owner as it was read.
            attempt: The attempt that updates the map.
        """
        if not attempt.owner:  # made by hand
            return _OWNER, found.text, found.text or found.followed_by(attempt, self.kind)
        if found.text is None and self._seen == (attempt.owner, attempt.epoch):
            raise StoreGoneError(
                f"{self.backing.describe()} lost its own rows ({_OWNER.decode()}) while it was in use, and perhaps values, too: restore it, "
                "or restart the topology, which then resumes from what is there"
            )
        self._check_owner(found, attempt.owner)
        if found.epoch > attempt.epoch:
            raise StateError(
                f"{self.backing.describe()}: the transactions of {found.id!r} were claimed again (epoch {found.epoch}), and this "
                f"attempt is an earlier one (epoch {attempt.epoch}), which changes nothing any more. If they were restored from an older "
                "copy, restore the map from a copy of the same moment"
            )
        return _OWNER, found.text, found.followed_by(attempt, self.kind)

    def _check_owner(self, found: MapOwner, owner: str) -> None:
        id, _, incarnation = owner.partition("/")
        if found.id not in (None, id):
            raise UnusableStateError(
                f"{self.backing.describe()} belongs to the transactional id {found.id!r}, and this topology's is {id!r}: each counts "
                "its transactions from 1 on, so that updates would be taken for others and be lost. Two topologies need two maps: "
                "give this one a map with another name"
            )
        if found.incarnation and incarnation and found.incarnation != incarnation:
            raise UnusableStateError(
                f"{self.backing.describe()} belongs to earlier transactions of {id!r}, which were removed or are stored elsewhere, and "
                "these began anew, from 1 on, so that updates would be taken for others and be lost: restore the earlier transactions, "
                "or give this topology a map with another name"
            )

    def _check(self, key: Any, stored: Stored, txid: int, attempt: int) -> None:
        if stored["txid"] > txid:
            raise self._too_late(repr(key), stored["txid"], txid)
        if stored["txid"] == txid and stored["attempt"] == attempt:
            raise UnusableStateError(
                f"{self.backing.describe()}: {key!r} was updated in this attempt of transaction {txid} already, and only the "
                "first update of a key counts: collect what a batch does to a key, and update it once, in finish_batch and "
                "in one task (fields or global grouping)"
            )

    def _too_late(self, what: str, stored: int, txid: int) -> UnusableStateError:
        return UnusableStateError(
            f"{self.backing.describe()}: transaction {txid} comes after {what} was updated by transaction {stored}, but "
            "updates are made in the order of transactions. Make the bolt a committer. If the topology began anew (its "
            "transactions were removed, or have another id), or another one writes here, give this map a name of its own"
        )


class MapOwner:
    """The owner of a map, as its row has it. ``text``: the row; None: there is none."""

    __slots__ = ("epoch", "id", "incarnation", "kind", "text")

    def __init__(self, text: bytes | None) -> None:
        found = {} if text is None else loads(text)
        self.text = text
        self.id: str | None = found.get("id")
        self.incarnation: str = found.get("incarnation", "")
        self.epoch: int = found.get("epoch", 0)
        self.kind: str | None = found.get("kind")

    def followed_by(self, attempt: TransactionAttempt, kind: str) -> bytes:
        id, _, incarnation = attempt.owner.partition("/")
        who = {"id": id, "incarnation": incarnation or self.incarnation, "epoch": attempt.epoch} if id else {"id": None}
        return dumps({**who, "kind": kind}).encode()


def _names(keys: Iterable[Any]) -> dict[Any, bytes]:
    return {key: _encode_key(key) for key in keys}


def _numbers(attempt: Any) -> tuple[int, int]:
    try:
        return attempt.txid, attempt.attempt
    except AttributeError:
        raise TypeError(
            f"a map is updated for a TransactionAttempt (self.id of a batch bolt), not for {attempt!r}"
        ) from None


def _function(key: Any, change: Change) -> Callable[[Any], Any]:
    if callable(change):
        return change
    if type(change) in (int, float):
        return lambda before: change if before is None else before + change
    raise TypeError(f"the change of {key!r} is {change!r}; use a number to be added, or a function of the value so far")


def _replaced(value: Any, _: Any) -> Any:
    return value


def _encoded(key: Any, stored: Stored) -> bytes:
    reason = reason_against(stored["value"])
    if reason is not None:
        raise ValueError(f"the new value of {key!r} can't be stored: {reason}")
    return dumps(stored).encode()


def move_maps(component: Any, store: str) -> None:
    """Give a task's component, in the place of its maps, empty ones in a simulated run's own store.

    Args:
        component: The component; maps of its classes are among its own then. Maps that live in memory anyway stay.
        store: The URL of the store.
    """
    for owner in (*reversed(type(component).__mro__), component):
        for name, found in [*getattr(owner, "__dict__", {}).items()]:
            if isinstance(found, UpdateMap) and found.backing.durable:
                moved = copy(found)
                moved.backing = found.backing.moved(store)
                setattr(component, name, moved)


def maps_of(component: Any) -> Iterator[UpdateMap]:
    """Yield the maps among the attributes of a component and of its classes."""
    for owner in (component, *type(component).__mro__):
        yield from (value for value in getattr(owner, "__dict__", {}).values() if isinstance(value, UpdateMap))
