"""The stored state of a topology's transactions, from which a restarted coordinator or emitter goes on.

It is Storm's TransactionalState. The rules of ``multilang.state.owner`` hold for all stores: **an owner has an epoch;
each claim raises it; nothing is read before the claim; every write carries its epoch, and a store that knows a newer
one refuses it in the same atomic step.**

- The coordinator claims the transactional id (``claim``), which raises the epoch. Its attempts are counted from the
  epoch on (``TransactionAttempt.epoch``), so each tuple carries it.
- A task of the spout takes its partitions over (``enter``) when the first batch of an epoch comes, and reads them then.
  It writes under the epoch and a number that grows with each instance of the task. An older instance is refused.
- An attempt of an older epoch that is still in flight fails, since its writes are refused.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from multilang.state.api import unheard
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.transactional.names import EPOCH, INCARNATION, WRITERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any


class OutdatedError(FencedError):
    """Another coordinator has claimed the transactions since, so earlier attempts must not go on."""


class TransactionalState(ABC):
    """A tree of JSON values by path, that of one topology: ``coordinator/currtx``, ``user/3/17``.

    Paths are relative to the topology's own root. A value is durable when the call that sets it returns. Each task has
    an object of its own. A subclass defines ``get_data``, ``list``, ``compare_and_write`` and ``close``.

    Args:
        conf: The component's conf.
        id: The topology's transactional id.

    Attributes:
        requires: The packages that workers need: import names, and what to install for each; see
            ``Component.requires``.
        trace: Called with each step: "look", "claim" and "claimed" of a claim, "write" and "written" of a write.
    """

    requires: Mapping[str, str] = {}

    trace: Callable[[str], None] = staticmethod(unheard)

    def __init__(self, conf: Mapping[str, Any], id: str) -> None:
        self.conf = conf
        self.id = id
        self._fence: dict[str, Any] | None = None

    @classmethod
    def check(cls, conf: Mapping[str, Any], id: str) -> None:
        """Check that the store can be used.

        Called once before the embedded cluster starts a topology; it claims nothing.

        Args:
            conf: The component's conf.
            id: The topology's transactional id.

        Raises:
            InUseError: Another run owns the transactions.
            StateError: The store can't be opened now.
        """
        cls(conf, id).close()

    def claim(self, waits: bool = True, again: bool = False) -> int:
        """Become the owner of the transactions. The coordinator calls it before it reads anything.

        Args:
            waits: Whether to wait for another run that is about to end, and to give up if this run was taken over from
                before. If False, as on Storm, where nobody else could end this run, it may claim again when its
                successor has ended.
            again: Whether this task was the owner before and lost the transactions. Then another owner of the same run
                is respected.

        Returns:
            The epoch, greater than all before. Every write from here on carries it.

        Raises:
            InUseError: Another run owns the transactions. The message says which, and since when.
            FencedError: Another run has taken the transactions over from this one.
        """
        while True:
            self.trace("look")
            last = self.get_data(EPOCH)
            epoch = self.highest_epoch() + 1
            self.trace("claim")
            if self.compare_and_write({EPOCH: last}, {EPOCH: epoch}):
                self.trace("claimed")
                return self._write_as(epoch)

    def enter(self, epoch: int, writer: str) -> None:
        """Become the only writer for a task of the spout. An older instance of the task can't write from here on.

        Args:
            epoch: The epoch of the batch that came.
            writer: The index of the task, such as "0".

        Raises:
            OutdatedError: Another coordinator has raised the epoch.
        """
        path = f"{WRITERS}/{writer}"
        while True:
            self.trace("look")
            last = self.get_data(path)
            mine = [epoch, last[1] + 1 if last and last[0] == epoch else 1]
            self.trace("claim")
            if self.compare_and_write({EPOCH: epoch, path: last}, {path: mine}):
                self.trace("claimed")
                self._fence = {EPOCH: epoch, path: mine}
                return
            if self.get_data(EPOCH) != epoch:
                raise self._outdated(epoch)

    def owner_name(self) -> str:
        """Return the name of the owner of these transactions for what is updated by them: ``ID/INCARNATION``.

        The id alone would not do: transactions that were removed begin anew, with the same numbers for other batches.

        Raises:
            FencedError: Somebody else has claimed the transactions.
        """
        if self._fence is None:
            raise self._unclaimed()
        found = self.get_data(INCARNATION)
        name = found[0] if found else os.urandom(8).hex()
        mine = [name, self.epoch]
        if not self.compare_and_write(self._fence, {INCARNATION: mine}):
            raise self._fenced(self._fence)
        # An epoch's node that was deleted and made again may have the version that an earlier owner knows; this has not.
        self._fence = {**self._fence, INCARNATION: mine}
        return f"{self.id}/{name}"

    def highest_epoch(self) -> int:
        """Return the highest epoch that anything stored tells of, so that epochs go on when the owner's record is lost."""
        _, begun = self.get_data(INCARNATION) or ("", 0)
        entered = [self.get_data(f"{WRITERS}/{writer}") or [0] for writer in self.list(WRITERS)]
        highest: int = max(self.get_data(EPOCH) or 0, begun, *(epoch for epoch, *_ in entered))
        return highest

    @property
    def epoch(self) -> int | None:
        """The epoch under which this task writes; None if it has claimed nothing."""
        return None if self._fence is None else self._fence[EPOCH]

    @abstractmethod
    def get_data(self, path: str) -> Any:
        """Return the value at a path; None if there is none.

        Args:
            path: The path, such as ``coordinator/currtx``.
        """

    @abstractmethod
    def compare_and_write(
        self, expected: Mapping[str, Any], values: Mapping[str, Any], deleted: Iterable[str] = ()
    ) -> bool:
        """Set and remove values if the expected values are there, in one atomic step. Parents are made as needed.

        Args:
            expected: Values by path, as they were read; None: there is no value.
            values: The values to set, by path.
            deleted: The paths to remove; one that is not there is ignored.

        Returns:
            False if a value is not the expected one; then nothing was written.
        """

    @abstractmethod
    def list(self, path: str) -> Sequence[str]:
        """Return the names directly below ``path``, in no particular order; an empty sequence if there is no such path.

        Args:
            path: The path, such as ``user``.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections and release the claim: the task ends."""

    def describe(self) -> str:
        """Return the place of the state in the words of a message."""
        return f"{type(self).__name__} {self.id!r}"

    def owner(self) -> object:
        """Return the last owner in the words of a message; None if it is not known."""
        return None

    def set_data(self, path: str, value: Any) -> None:
        """Set one value.

        Args:
            path: The path.
            value: A JSON value.

        Raises:
            FencedError: This task may not write any more; see ``update``.
        """
        self.update({path: value})

    def delete(self, path: str) -> None:
        """Remove one value. Nothing happens if there is none.

        Args:
            path: The path.

        Raises:
            FencedError: This task may not write any more; see ``update``.
        """
        self.update({}, [path])

    def update(self, values: Mapping[str, Any], deleted: Iterable[str] = ()) -> None:
        """Set and remove values in one atomic step, under this task's claim.

        Args:
            values: The values to set, by path.
            deleted: The paths to remove; one that is not there is ignored.

        Raises:
            FencedError: Somebody else has claimed what this task writes to; nothing was written.
            StateError: This task has claimed nothing.
            StoreGoneError: The stored state is gone.
        """
        if self._fence is None:
            raise self._unclaimed()
        self.trace("write")
        if not self.compare_and_write(self._fence, values, deleted):
            raise self._fenced(self._fence)
        self.trace("written")

    def verify(self) -> None:
        """Raise FencedError if somebody else has claimed what this task writes to."""
        self.update({})

    def newest_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, tuple[int, Any]]:
        """Return the last transaction and its value for each name below ``path``.

        Args:
            path: A path whose names have values by transaction, such as ``user``.
            last_txid: Later transactions are ignored.

        Returns:
            By name, the transaction and the value.
        """
        last = {}
        for name in self.list(path):
            txids = [txid for txid in map(int, self.list(f"{path}/{name}")) if txid <= last_txid]
            if txids:
                last[name] = max(txids), self.get_data(f"{path}/{name}/{max(txids)}")
        return last

    def last_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, Any]:
        """Return the values of ``newest_of_each`` without their transactions.

        Args:
            path: A path whose names have values by transaction, such as ``user``.
            last_txid: Later transactions are ignored.
        """
        return {name: value for name, (_, value) in self.newest_of_each(path, last_txid).items()}

    def _unclaimed(self) -> StateError:
        return StateError(
            f"{self.describe()} was not claimed, so that nothing may be written there: call claim() or enter() first"
        )

    def _write_as(self, epoch: int) -> int:
        self._fence = {EPOCH: epoch}
        return epoch

    def _fenced(self, fence: Mapping[str, Any]) -> FencedError | StoreGoneError:
        epoch = fence[EPOCH]
        if self.get_data(EPOCH) != epoch:
            return self._outdated(epoch)
        writer = next((path for path in fence if path != EPOCH), "")
        return FencedError(
            f"{self.describe()}: another instance of this task of the spout ({writer}, {self.get_data(writer)}; this one "
            f"has {fence.get(writer)}) has taken its partitions over: nothing more is written by this one"
        )

    def _outdated(self, epoch: int) -> OutdatedError | StoreGoneError:
        found = self.get_data(EPOCH)
        if found is None:
            return StoreGoneError(
                f"{self.describe()} was deleted while it was in use: which transactions are committed is not known any more. Put "
                "it back, or give the topology another transactional id, and its maps other names"
            )
        owner = self.owner()
        by = "another coordinator" if owner is None else str(owner)
        return OutdatedError(
            f"{self.describe()} was taken over by {by} (epoch {found}; this one has {epoch}): nothing more is written here"
        )
