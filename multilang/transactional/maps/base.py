"""The common part of both maps: read a batch's keys, change them by the map's rule, put them if nobody changed them.

The rules of ``multilang.state.owner`` hold. A map belongs to the owner of transactions (``TransactionAttempt.owner``) and
keeps its name and epoch in a row of its own, ``$owner``. The first update claims it, and the first one of a higher epoch
raises it. Each put compares that row, too, so that the backing itself refuses who is not the newest owner. The row is where
the values are: who removes the map removes it, too. A map that an earlier version wrote has no such row, and belongs to
who updates it first. Another row, ``$last/BOLT``, tells an older copy; see ``registry``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from multilang.component.errors import UnrecoverableError
from multilang.protocol.codec import dumps, loads, reason_against
from multilang.state.api import unheard
from multilang.state.errors import StateError, StoreGoneError
from multilang.state.serializers import JsonKeySerializer
from multilang.transactional.maps.backing import Backing
from multilang.transactional.maps.registry import MapRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    from multilang.component.context import Context
    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.maps.backing import Row
    from multilang.transactional.maps.registry import MapNotes

    Change: TypeAlias = int | float | Callable[[Any], Any]
    Stored: TypeAlias = dict[str, Any]  # {"value": 3, "txid": 7, "attempt": 123}

_OWNER = "$owner"  # no key's name: a text's is quoted
_LAST = object()  # among the keys of a batch, stands for the row of the registry
_OTHERS = object()  # the same for the row below
OPAQUE_RECORD = "$transaction"
"""The row that an OpaqueMap has of its last transaction, and a TransactionalMap has not."""
TRIES = 50  # of a batch whose keys others change between its read and its write

_encode_key = JsonKeySerializer().encode


class NotOwnerError(StateError, UnrecoverableError):
    """A map belongs to other transactions, whose numbers mean other batches."""


class MapUseError(StateError, UnrecoverableError):
    """A map is used in a way that no replay makes right."""


class OrderError(StateError, UnrecoverableError):
    """A transaction comes to a map after a later one. However often it is replayed, it would come too late."""


class UpdateMap(ABC):
    """Values by key, to which each transaction is applied once. See TransactionalMap and OpaqueMap.

    Keys are strings, integers or tuples of these. Values are anything that JSON can express; None means no value. Each
    value is stored as a JSON object, with the transaction and the attempt that wrote it.

    Args:
        backing: The storage of the values.

    Attributes:
        trace: Called with each step of an update: "read", "put" and "done"; see ``multilang.transactional.steps``.
    """

    trace: Callable[[str], None] = staticmethod(unheard)

    same_batches = False
    """Whether a transaction that is repeated must have the batch that it had."""

    _record: str | None = None
    """The name under which the map stores data about itself. It is no key's name."""

    _seen: tuple[str, int] | None = None
    """The owner and epoch of the map's row when this process updated it last."""

    def __init__(self, backing: Backing) -> None:
        given: object = backing
        if not isinstance(given, Backing):
            raise TypeError(
                f'a map is made of where its values are, {type(self).__name__}(SqliteBacking("counts.sqlite")), not of {given!r}'
            )
        self.backing = backing

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
        found = {
            key: self._current(self._decoded(key, text), record) for key, text in texts.items() if text is not None
        }
        return {key: value for key, value in found.items() if value is not None}

    def update(self, attempt: TransactionAttempt, changes: Mapping[Any, Change]) -> dict[Any, Any]:
        """Apply what a batch changes, once, whatever is replayed. It takes two round trips.

        Call it in ``finish_batch`` of a committer, with all that the batch changes. Only one task may update a key,
        once for each batch.

        Args:
            attempt: The batch's id, ``self.id`` in a BatchBolt.
            changes: By key, a number to be added (a missing value counts as 0), or a function that gets the current
                value (None: there is none) and returns the new one. The function may be called more than once.

        Returns:
            The new values by key.

        Raises:
            NotOwnerError: The map belongs to another transactional id.
            OrderError: A later transaction has updated a key already.
            MapUseError: A key was updated twice in the batch, or was not stored by a map of this kind; or the spout is
                opaque, and the map is not for such.
            StateError: The transactions were claimed again since.
            StoreGoneError: The map's own rows were deleted, or it is an older copy.
            TypeError: A change is neither a number nor a function.
            ValueError: JSON can't express a new value.
        """
        txid, number = _numbers(attempt)
        if attempt.registry is not None and attempt.registry.opaque:
            self.check_opaque()
        registry: MapRegistry | None = attempt.registry if self.backing.durable else None
        is_first = registry is not None and self._seen != (attempt.owner, attempt.epoch)
        functions = {key: _function(key, change) for key, change in changes.items()}
        names = _names(changes)
        keeps_last = registry is not None and self._record is None
        names |= {} if registry is None else self._rows_beside(registry, is_first)
        tried: dict[Any, str] = {}  # texts that may be stored although the answer was lost
        for _ in range(TRIES):
            noted = registry.noted(self.backing.describe()) if registry is not None and is_first else None
            self.trace("read")
            owner, record, texts = self._read(names)
            mine = self._owner_row(owner, attempt)
            last, others = texts.pop(_LAST, None), texts.pop(_OTHERS, None)
            self._check_kind(last if is_first else None, others)
            if registry is not None and noted is not None:
                registry.compare(self.backing.describe(), noted, _epoch_in(owner), last)
            rows = self._next_record(record, txid, number)
            results: dict[Any, Any] = {}
            for key, text in texts.items():
                before = None
                if text is not None:
                    stored = self._decoded(key, text)
                    if text != tried.get(key):
                        self._check(key, stored, txid, number)
                    if text == tried.get(key) or self._is_done(stored, txid):
                        results[key] = stored["value"]
                        continue
                    before = self._before(stored, txid, record)
                results[key] = functions[key](before)
                tried[key] = _encoded(key, self._new(results[key], txid, number, before))
                rows.append((names[key], text, tried[key]))
            is_kept = registry is not None and keeps_last and registry.may_keep(self.backing.describe())
            if registry is not None and is_kept and int(last or 0) < txid:
                rows.append((registry.row, last, str(txid)))
            if mine is not None and (rows or mine[1] != mine[2]):
                rows.append(mine)
            self.trace("put")
            if not rows or self.backing.multi_put(rows):
                self._seen = attempt.owner, attempt.epoch
                if registry is not None and (is_first or not registry.keeps):
                    registry.note(self.backing.describe(), attempt)
                if registry is not None and is_kept:
                    registry.keep(self.backing.describe(), attempt)
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
            MapUseError: It would leave the other batch out.
        """
        if self.same_batches:
            raise MapUseError(
                f"{self.backing.describe()}: a {type(self).__name__} leaves out a transaction that it has, and the topology's spout is "
                "opaque: it may repeat a transaction with other tuples, which would be lost. Use an OpaqueMap"
            )

    def check_owner(self, id: str | None) -> None:
        """Check that the map may be updated by these transactions. Called before the embedded cluster starts a topology.

        Args:
            id: The transactional id; None: it is not known.

        Raises:
            NotOwnerError: The map belongs to another transactional id.
            StateError: The map can't be read.
        """
        if id is not None:
            self._check_owner(_MapOwner.of(self.backing.multi_get([_OWNER])[0]), f"{id}/")

    def check_there(self, registry: MapRegistry) -> None:
        """Check that the map is still there if it was updated before. Called like ``check_owner``.

        Args:
            registry: The maps that the transactions have updated.

        Raises:
            StoreGoneError: It is gone, or an older copy.
            MapUseError: A map of another kind updated it.
            StateError: The map or the transactions can't be read.
        """
        if self.backing.durable:
            noted = registry.noted(self.backing.describe())
            owner, last, record = self.backing.multi_get([_OWNER, registry.row, OPAQUE_RECORD])
            self._check_kind(last, record)
            registry.compare(self.backing.describe(), noted, _epoch_in(owner), last)

    def end_batch(self, attempt: TransactionAttempt) -> None:
        """Note in the map that a batch which may have changed nothing here is complete. Called by the bolt's wrapper.

        Args:
            attempt: The batch's id.
        """
        registry: MapRegistry | None = attempt.registry if self.backing.durable and self._record is None else None
        if registry is not None and registry.is_due(self.backing.describe(), attempt):
            self.update(attempt, {})

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

    @abstractmethod
    def _is_own(self, stored: Stored) -> bool:
        """Return whether a map of this kind stored the object."""

    def _next_record(self, record: Any, txid: int, attempt: int) -> list[Row]:
        """Return the rows that the map must remember about this attempt."""
        return []

    def _read(self, names: Mapping[Any, str]) -> tuple[str | None, Any, dict[Any, str | None]]:
        """Return the text of the map's owner, its record, and the texts of the keys."""
        if self._record is None:
            owner, *texts = self.backing.multi_get([_OWNER, *names.values()])
            return owner, None, dict(zip(names, texts, strict=True))
        owner, record, *texts = self.backing.multi_get([_OWNER, self._record, *names.values()])
        return owner, record, dict(zip(names, texts, strict=True))

    def _owner_row(self, text: str | None, attempt: TransactionAttempt) -> Row | None:
        """Return the row that claims the map for an attempt's owner, or compares the claim; None: nobody is known.

        Args:
            text: The row's text as it was read.
            attempt: The attempt that updates the map.
        """
        if not attempt.owner:  # made by hand
            return None if text is None else (_OWNER, text, text)
        found = _MapOwner.of(text)
        if text is None and self._seen == (attempt.owner, attempt.epoch):
            raise StoreGoneError(
                f"{self.backing.describe()} lost its own rows ({_OWNER}) while it was in use, and perhaps values, too: put it back, "
                "or start the topology again, which then goes on from what is there"
            )
        self._check_owner(found, attempt.owner)
        if found.epoch > attempt.epoch:
            raise StateError(
                f"{self.backing.describe()}: the transactions of {found.id!r} were claimed again (epoch {found.epoch}), and this "
                f"attempt is an earlier one (epoch {attempt.epoch}), which changes nothing any more. If they were put back to an older "
                "copy, put the map back to a copy of the same moment"
            )
        return _OWNER, text, found.followed_by(attempt)

    def _check_owner(self, found: _MapOwner, owner: str) -> None:
        id, _, incarnation = owner.partition("/")
        if found.id not in (None, id):
            raise NotOwnerError(
                f"{self.backing.describe()} belongs to the transactional id {found.id!r}, and this topology's is {id!r}: each counts "
                "its transactions from 1 on, so that updates would be taken for others and be lost. Two topologies need two maps: "
                "give this one a map with another name"
            )
        if found.incarnation and incarnation and found.incarnation != incarnation:
            raise NotOwnerError(
                f"{self.backing.describe()} belongs to earlier transactions of {id!r}, which were removed or are kept elsewhere, and "
                "these began anew, from 1 on, so that updates would be taken for others and be lost: put the earlier transactions back, "
                "or give this topology a map with another name"
            )

    def _decoded(self, key: Any, text: str) -> Stored:
        try:
            stored = loads(text)
        except ValueError:
            stored = None
        if isinstance(stored, dict) and {"value", "txid", "attempt"} <= stored.keys() and self._is_own(stored):
            return stored
        raise MapUseError(
            f"{self.backing.describe()}: {key!r} was not stored by a {type(self).__name__}, it is {text[:100]}; "
            "give this map a name of its own"
        )

    def _rows_beside(self, registry: MapRegistry, is_first: bool) -> dict[Any, str]:
        """Return the rows that an update reads beside those of its keys, and of the map's owner and record."""
        if self._record is not None:
            return {_LAST: registry.row} if is_first else {}
        return {_LAST: registry.row, _OTHERS: OPAQUE_RECORD} if is_first else {_LAST: registry.row}

    def _check_kind(self, last: str | None, record: str | None) -> None:
        """Check that no map of the other kind updated this one.

        Args:
            last: The row that only a TransactionalMap writes.
            record: The row that only an OpaqueMap writes.
        """
        other = "an OpaqueMap" if self._record is None and record is not None else None
        other = "a TransactionalMap" if self._record is not None and last is not None else other
        if other is not None:
            raise MapUseError(
                f"{self.backing.describe()} was stored by {other}, and this one is {type(self).__name__}, which can't read "
                f"it: use {other} as before, or give this map a name of its own and begin the transactions anew"
            )

    def _check(self, key: Any, stored: Stored, txid: int, attempt: int) -> None:
        if stored["txid"] > txid:
            raise self._too_late(repr(key), stored["txid"], txid)
        if stored["txid"] == txid and stored["attempt"] == attempt:
            raise MapUseError(
                f"{self.backing.describe()}: {key!r} was updated in this attempt of transaction {txid} already, and only the "
                "first update of a key counts: collect what a batch does to a key, and update it once, in finish_batch and "
                "in one task (fields or global grouping)"
            )

    def _too_late(self, what: str, stored: int, txid: int) -> OrderError:
        return OrderError(
            f"{self.backing.describe()}: transaction {txid} comes after {what} was updated by transaction {stored}, but "
            "updates are made in the order of transactions. Make the bolt a committer. If the topology began anew (its "
            "transactions were removed, or have another id), or another one writes here, give this map a name of its own"
        )


class _MapOwner:
    """The owner of a map, as its row has it."""

    __slots__ = ("epoch", "id", "incarnation")

    def __init__(self, id: str | None, incarnation: str, epoch: int) -> None:
        self.id = id
        self.incarnation = incarnation
        self.epoch = epoch

    @classmethod
    def of(cls, text: str | None) -> _MapOwner:
        if text is None:
            return cls(None, "", 0)
        found = loads(text)
        return cls(found["id"], found["incarnation"], found["epoch"])

    def followed_by(self, attempt: TransactionAttempt) -> str:
        id, _, incarnation = attempt.owner.partition("/")
        return dumps({"id": id, "incarnation": incarnation or self.incarnation, "epoch": attempt.epoch})


def _epoch_in(text: str | None) -> int | None:
    """Return the epoch in the text of a map's row; None if it has none."""
    return None if text is None else _MapOwner.of(text).epoch


def _names(keys: Iterable[Any]) -> dict[Any, str]:
    return {key: _encode_key(key).decode() for key in keys}


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


def _encoded(key: Any, stored: Stored) -> str:
    reason = reason_against(stored["value"])
    if reason is not None:
        raise ValueError(f"the new value of {key!r} can't be stored: {reason}")
    return dumps(stored)


def maps_of(component: Any) -> Iterator[UpdateMap]:
    """Yield the maps among the attributes of a component and of its classes."""
    for owner in (component, *type(component).__mro__):
        yield from (value for value in getattr(owner, "__dict__", {}).values() if isinstance(value, UpdateMap))


def registry_of(
    bolt: Any, component: str, notes: MapNotes, context: Context | None = None, opaque: bool = False
) -> MapRegistry:
    """Return the registry for the maps of a bolt.

    Args:
        bolt: The user's bolt. The maps among its attributes and those of its classes are known before it runs.
        component: The bolt's id.
        notes: The notes of its transactions.
        context: The context of the task that will update the maps; None: there is no task, but a look before it starts.
        opaque: Whether a transaction may be repeated with another batch.
    """
    places = [found.backing.describe() for found in maps_of(bolt)]
    if context is None:
        return MapRegistry(notes, component, places)
    tasks = len(context.tasks(context.component))
    return MapRegistry(notes, component, places, context.task_index, tasks, opaque)
