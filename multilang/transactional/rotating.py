"""A value for each transaction that is not done, by txid (Storm's RotatingTransactionalState).

Changes are written at chosen moments: those of one step go to the store together, and to the disk once.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads, reason_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from multilang.transactional.state import TransactionalState


def as_stored(metadata: Any) -> Any:
    """Return a copy of the metadata as it will be when it is read again, with lists in place of tuples.

    Raises:
        TypeError: JSON can't express it.
    """
    reason = reason_against(metadata)
    if reason is not None:
        raise TypeError(f"the metadata of a transaction can't be stored: {reason}")
    return loads(dumps(metadata))


class Changes:
    """Pending changes of a task. ``write`` stores them, before something is done that relies on them."""

    def __init__(self, state: TransactionalState) -> None:
        self.state = state
        self._set: dict[str, Any] = {}
        self._deleted: dict[str, None] = {}

    def set_data(self, path: str, value: Any) -> None:
        self._deleted.pop(path, None)
        self._set[path] = value

    def delete(self, path: str) -> None:
        self._set.pop(path, None)
        self._deleted[path] = None

    def write(self, verify: bool = False) -> None:
        """Store the pending changes. If that fails they stay pending.

        Args:
            verify: Whether to ask the store even if nothing changed, to learn whether this task may still write.

        Raises:
            FencedError: This task may not write any more; see TransactionalState.update.
        """
        if self._set or self._deleted or verify:
            self.state.update(self._set, self._deleted)
            self.forget()

    def forget(self) -> None:
        """Drop the pending changes."""
        self._set.clear()
        self._deleted.clear()


class RotatingTransactionalState:
    """The values below ``path``, which are read once.

    Args:
        changes: What stores the changes. Only one task may change the values.
        path: The path.
        values: The values, if they were read already, by transaction as text.
    """

    def __init__(self, changes: Changes, path: str, values: Mapping[str, Any] | None = None) -> None:
        self._changes = changes
        self._path = path
        found = changes.state.below(path) if values is None else values
        self._values = {txid: found[str(txid)] for txid in sorted(map(int, found))}

    def __contains__(self, txid: int) -> bool:
        return txid in self._values

    def __getitem__(self, txid: int) -> Any:
        return self._values[txid]

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __setitem__(self, txid: int, value: Any) -> None:
        value = as_stored(value)
        self._changes.set_data(self._at(txid), value)
        self._values[txid] = value

    def before(self, txid: int) -> Any:
        """Return the value of the last transaction before ``txid``; None if there is none."""
        earlier = [each for each in self._values if each < txid]
        return self._values[max(earlier)] if earlier else None

    def has_after(self, txid: int) -> bool:
        """Return whether a later transaction has a value."""
        return any(each > txid for each in self._values)

    def cleanup_before(self, txid: int) -> None:
        """Drop all transactions before ``txid``."""
        self._forget([each for each in self._values if each < txid])

    def forget_from(self, txid: int) -> None:
        """Drop ``txid`` and all transactions after it."""
        self._forget([each for each in self._values if each >= txid])

    def _forget(self, txids: Iterable[int]) -> None:
        for each in txids:
            self._changes.delete(self._at(each))
            del self._values[each]

    def _at(self, txid: int) -> str:
        return f"{self._path}/{txid}"
