"""The store of a topology's transactions, by which a coordinator or emitter that is started again goes on (Storm's TransactionalState).

One law for all stores, that of ``multilang.state.owner``: **an owner has an epoch; claiming raises it; nothing is read before
the claim; every write carries its epoch and is refused, in the same atomic step, by a store that knows a newer one.**

- The coordinator claims the transactional id (``claim``), which raises the epoch. The attempts that it makes are counted
  from the epoch on (``TransactionAttempt.epoch``), so that each tuple carries it.
- A task of the spout takes its partitions over (``enter``) when the first batch of an epoch comes, reads them then, and
  writes under the epoch and a number that grows with each instance of the task that does so. An older instance is refused.
- Where an attempt of an older epoch is still under way, it fails: what it would have stored is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.api import unheard
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.transactional.names import EPOCH, WRITERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any


class OutdatedError(FencedError):
    """Another coordinator has claimed the transactions since: what was begun before is not to be gone on with."""


class TransactionalState(ABC):
    """A tree of JSON values by path, that of one topology: ``coordinator/currtx``, ``user/3/17``.

    Paths are relative to what is that topology's own. What was set is there when the call returns, whatever is killed then.
    Each task has one of its own. A subclass defines ``get_data``, ``list``, ``compare_and_write`` and ``close``.

    Attributes:
        conf: The component's.
        id: The topology's transactional id.
        trace: Called with each step: "look" and "claim" and "claimed" of a claim, "write" and "written" of a write.
    """

    requires: Mapping[str, str] = {}
    """Packages that it needs on workers; see Component's."""

    trace: Callable[[str], None] = staticmethod(unheard)

    def __init__(self, conf: Mapping[str, Any], id: str) -> None:
        self.conf = conf
        self.id = id
        self._fence: dict[str, Any] | None = None

    @classmethod
    def check(cls, conf: Mapping[str, Any], id: str) -> None:
        """Called once where the embedded cluster is about to start a topology; claims nothing.

        Raises:
            InUseError: Another run uses it.
            StateError: It can't be opened now.
        """
        cls(conf, id).close()

    def claim(self, waits: bool = True, again: bool = False) -> int:
        """Take the transactions over, as the coordinator does before it reads anything.

        Args:
            waits: Whether to wait for another run that is about to end, and to end where this run was taken over from
                before. Else, as on Storm, where nobody else could end it, it may go on when its successor has ended.
            again: Whether this task was the owner before and lost it: then another owner of the same run is respected.

        Returns:
            The epoch, greater than all before; what is written from here on carries it.

        Raises:
            InUseError: Another run uses them; the message says who, and since when.
            FencedError: Another run has taken them over from this one.
        """
        while True:
            self.trace("look")
            last = self.get_data(EPOCH)
            self.trace("claim")
            if self.compare_and_write({EPOCH: last}, {EPOCH: (last or 0) + 1}):
                self.trace("claimed")
                return self._write_as((last or 0) + 1)

    def enter(self, epoch: int, writer: str) -> None:
        """Write from here on for a task of the spout, of which there may be an older instance: that writes no more.

        Args:
            epoch: That of the batch which came.
            writer: The task, "0" of tasks 0 to 3.

        Raises:
            OutdatedError: The epoch is over.
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

    @property
    def epoch(self) -> int | None:
        """The epoch under which this task writes; None when it has claimed nothing."""
        return None if self._fence is None else self._fence[EPOCH]

    @abstractmethod
    def get_data(self, path: str) -> Any:
        """Return the value, or None."""

    @abstractmethod
    def compare_and_write(
        self, expected: Mapping[str, Any], values: Mapping[str, Any], deleted: Iterable[str] = ()
    ) -> bool:
        """Set values by their paths, parents included, and remove others, if what is expected is there, in one atomic step.

        Args:
            expected: Values by path, as they were read; None: there is none.
            values: What is set or overwritten.
            deleted: What is removed; nothing happens where there is none.

        Returns:
            False when any value is not the expected one; then nothing was written.
        """

    @abstractmethod
    def list(self, path: str) -> Sequence[str]:
        """Return the names of what is directly below ``path``, in no order; none when there is no such path."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything: the task ends."""

    def describe(self) -> str:
        """Return where it is, in the words of a message."""
        return f"{type(self).__name__} {self.id!r}"

    def owner(self) -> object:
        """Return who claimed it last, in the words of a message; None: that is not known."""
        return None

    def set_data(self, path: str, value: Any) -> None:
        """Set or overwrite one value. Raises FencedError as ``update`` does."""
        self.update({path: value})

    def delete(self, path: str) -> None:
        """Remove one value; nothing happens when there is none. Raises FencedError as ``update`` does."""
        self.update({}, [path])

    def update(self, values: Mapping[str, Any], deleted: Iterable[str] = ()) -> None:
        """Set values by their paths and remove others, as the one who may.

        Raises:
            FencedError: Somebody else has claimed what this task writes to; nothing was written.
            StoreGoneError: What was stored is not there any more.
        """
        if self._fence is None:
            raise StateError(
                f"{self.describe()} was not claimed, so that nothing may be written there: call claim() or enter() first"
            )
        self.trace("write")
        if not self.compare_and_write(self._fence, values, deleted):
            raise self._fenced(self._fence)
        self.trace("written")

    def verify(self) -> None:
        """Raise FencedError when somebody else has claimed what this task writes to."""
        self.update({})

    def newest_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, tuple[int, Any]]:
        """Return the last transaction to ``last_txid`` and its value, by the name of what is directly below ``path``."""
        last = {}
        for name in self.list(path):
            txids = [txid for txid in map(int, self.list(f"{path}/{name}")) if txid <= last_txid]
            if txids:
                last[name] = max(txids), self.get_data(f"{path}/{name}/{max(txids)}")
        return last

    def last_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, Any]:
        """Return the values alone of ``newest_of_each``."""
        return {name: value for name, (_, value) in self.newest_of_each(path, last_txid).items()}

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
