"""The map for spouts that always replay the same batch."""

from __future__ import annotations

from multilang.transactional.maps.base import UpdateMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.transactional.maps.base import Stored


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
