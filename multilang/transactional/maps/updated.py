"""The maps that a transaction updates: for spouts that always replay the same batch, and for those that may not."""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads
from multilang.store.errors import StateError, UnusableStateError
from multilang.transactional.maps.base import UpdateMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.transactional.maps.backing import Row
    from multilang.transactional.maps.base import MapOwner, Stored


class TransactionalMap(UpdateMap):
    """A map that skips a transaction which a key already has: the rule of Storm's page on transactional topologies.

    It is right for spouts that emit the very same batch for a transaction each time, and wrong for opaque ones: it
    would skip their second batch, even if that differs from the first.

    Args:
        backing: Where the values are stored: a store's URL, such as ``sqlite:///var/lib/counts.sqlite``, or a Backing.
        name: The map's name there, if that is given by its URL.
    """

    kind = "TransactionalMap"

    same_batches = True

    def _current(self, stored: Stored, record: Any) -> Any:
        return stored["value"]

    def _is_done(self, stored: Stored, txid: int) -> bool:
        return bool(stored["txid"] == txid)

    def _before(self, stored: Stored, txid: int, record: Any) -> Any:
        return stored["value"]

    def _new(self, value: Any, txid: int, attempt: int, before: Any) -> Stored:
        return {"value": value, "txid": txid, "attempt": attempt}


class OpaqueMap(UpdateMap):
    """A map in which a replay starts from the value before its transaction: the rule of Storm's page for opaque spouts.

    It is right for all spouts. Unlike the page's rule, it also undoes what a replaced attempt did to keys that its
    replay does not have. For that it must know of every transaction: call ``update`` in each ``finish_batch``, with
    ``{}`` if there is nothing to change. If a bolt leaves one out, the next update raises UnusableStateError.

    The map stores a record with the last transaction, its attempt, and the attempts that were replaced after they had
    written (some 20 bytes for each crash during a commit).

    Args:
        backing: Where the values are stored: a store's URL, such as ``sqlite:///var/lib/counts.sqlite``, or a Backing.
        name: The map's name there, if that is given by its URL.
    """

    kind = "OpaqueMap"

    _record = b"$transaction"

    def _current(self, stored: Stored, record: _Record) -> Any:
        return stored["previous" if stored["attempt"] in record.replaced else "value"]

    def _is_done(self, stored: Stored, txid: int) -> bool:
        return False

    def _before(self, stored: Stored, txid: int, record: _Record) -> Any:
        return stored["previous"] if stored["txid"] == txid else self._current(stored, record)

    def _new(self, value: Any, txid: int, attempt: int, before: Any) -> Stored:
        return {"value": value, "txid": txid, "attempt": attempt, "previous": before}

    def _read(self, names: Mapping[Any, bytes]) -> tuple[MapOwner, _Record, dict[Any, bytes | None]]:
        owner, text, texts = super()._read(names)
        return owner, _Record(text), texts

    def _next_record(self, record: _Record, txid: int, attempt: int) -> list[Row]:
        last = record.txid
        if last is not None and txid < last:
            raise self._too_late("the map", last, txid)
        if last is not None and txid > last + 1:
            raise UnusableStateError(
                f"{self.backing.describe()}: transaction {txid} follows transaction {last}, and the map was not updated for "
                "those between them: call update in every finish_batch, with {} if there is nothing to change. If the bolt does "
                "so, the map is an older copy: restore the newest one"
            )
        if attempt in record.replaced or (last == txid and attempt < (record.attempt or 0)):
            raise StateError(
                f"{self.backing.describe()}: this attempt at transaction {txid} was replaced by another one, which has "
                "written already"
            )
        if (last, record.attempt) == (txid, attempt):
            return []
        replaced = [*record.replaced, record.attempt] if last == txid else record.replaced
        return [(self._record, record.text, _record(txid, attempt, replaced))]


def _record(txid: int, attempt: int, replaced: list[Any]) -> bytes:
    return dumps({"txid": txid, "attempt": attempt, "replaced": replaced}).encode()


class _Record:
    """The last transaction, its attempt, and the attempts that were replaced after they had written."""

    def __init__(self, text: bytes | None) -> None:
        found = {"txid": None, "attempt": None, "replaced": []} if text is None else loads(text)
        self.text = text
        self.txid: int | None = found["txid"]
        self.attempt: int | None = found["attempt"]
        self.replaced: list[int] = found["replaced"]
