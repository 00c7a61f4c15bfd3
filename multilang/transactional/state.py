"""The stored state of a topology's transactions, from which a restarted coordinator or emitter resumes.

It is Storm's TransactionalState, over any store. The laws of ``multilang.store.interface`` hold:

- The coordinator claims the transactional id (``claim``), which raises the epoch. Its attempts are counted from the
  epoch on (``TransactionAttempt.epoch``), so each tuple carries it.
- A task of the spout takes its partitions over (``enter``) when the first batch of an epoch comes, and reads them then.
  It writes under the claim of that epoch and a number that grows with each instance of the task. An older instance is
  refused.
- An attempt of an older epoch that is still in flight fails, since its writes are refused.
"""

from __future__ import annotations

import logging
import os

from multilang.helpers.closing import close_all
from multilang.protocol.codec import dumps, loads
from multilang.store.claims import check_owner, describe, refusal, stored_owner, wait_until_free
from multilang.store.errors import FencedError, StateError
from multilang.store.interface import ignore
from multilang.store.settings import owner_of, place_of
from multilang.transactional.names import INCARNATION, WRITERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from multilang.store.claims import Claim, Owner
    from multilang.store.interface import Rows, Store

log = logging.getLogger(__name__)


class OutdatedError(FencedError):
    """Another coordinator has claimed the transactions since, so earlier attempts must not continue."""


class TransactionalState:
    """A tree of JSON values by path, that of one topology: ``coordinator/currtx``, ``user/3/17``.

    Paths are relative to the topology's own place in the store, ``transactions/ID``. The first name of a path is a table, and the
    others are a key there. A value is durable when the call that sets it returns. Each task has an object of its own.

    Args:
        store: The store, which is closed with the state.
        id: The topology's transactional id.
        conf: The component's conf.

    Attributes:
        trace: Called with each step: "look", "claim" and "claimed" of a claim, "write" and "written" of a write.
    """

    trace: Callable[[str], None] = staticmethod(ignore)

    def __init__(self, store: Store, id: str, conf: Mapping[str, Any]) -> None:
        self.id = id
        self._store = store
        self._place = place_of("transactions", id)
        self._what = what_of(id)
        self._run, self._topology = owner_of(conf)
        self._claim: Claim | None = None
        self._owner: Owner | None = None
        self._writer: dict[str, Any] = {}  # the row of this instance of a spout's task

    def claim(self, waits: bool = True, again: bool = False) -> int:
        """Become the owner of the transactions. The coordinator calls it before it reads anything.

        Args:
            waits: Whether to give up if this run was fenced before. If False, as on Storm, where nobody else could end this run,
                it may claim again when its successor has ended.
            again: Whether this task was the owner before and lost the transactions. Then another owner of the same run
                is respected.

        Returns:
            The epoch, greater than all before. Every write from here on carries it.

        Raises:
            InUseError: Another run owns the transactions. The message names it.
            FencedError: Another run has taken the transactions over from this one.
        """
        self._release()
        self.trace("look")
        if again:
            wait_until_free(self._store, self._place, None, log.warning, self._what)
        _, used = self.get_data(INCARNATION) or ("", 0)  # has an epoch also when the owner's record is lost
        self.trace("claim")
        self._claim = self._store.claim(
            self._place, self._run, self._topology, log.warning, may_return=not waits, above=used, what=self._what
        )
        self.trace("claimed")
        self._owner = self._claim.owner
        return self._owner.epoch

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
            owner = stored_owner(self._store, self._place, self._what)
            if owner is None or owner.epoch != epoch:
                raise _outdated(refusal(self._store, epoch, owner, self._what))
            last = self.get_data(path)
            mine = [epoch, last[1] + 1 if last and last[0] == epoch else 1]
            self.trace("claim")
            if self._write({**owner.fence, **_rows({path: last})}, {path: mine}):
                self.trace("claimed")
                self._owner, self._writer = owner, {path: mine}
                return
            self._check(owner)

    def owner_name(self) -> str:
        """Return the name of the owner of these transactions for the maps that they update: ``ID/INCARNATION``.

        The id alone is not enough: transactions that were removed begin anew, with the same numbers for other batches.

        Raises:
            FencedError: Somebody else has claimed the transactions.
        """
        name, _ = self.get_data(INCARNATION) or (os.urandom(8).hex(), 0)
        self.update({INCARNATION: [name, self.epoch]})
        return f"{self.id}/{name}"

    @property
    def epoch(self) -> int | None:
        """The epoch under which this task writes; None if it has claimed nothing."""
        return None if self._owner is None else self._owner.epoch

    def get_data(self, path: str) -> Any:
        """Return the value at a path; None if there is none.

        Args:
            path: The path, such as ``coordinator/currtx``.
        """
        table, key = _split(path)
        return self._decoded(self._store.get(self._place, table, [key])[0])

    def below(self, path: str) -> dict[str, Any]:
        """Return the values below a path by what follows it in theirs, in one pass: ``17`` or ``3/17``.

        Args:
            path: The path, such as ``user`` or ``user/3``.
        """
        table, start = _split(f"{path}/")
        rows = self._store.list(self._place, table)
        return {key[len(start) :].decode(): self._decoded(value) for key, value in rows if key.startswith(start)}

    def list(self, path: str) -> Sequence[str]:
        """Return the names directly below ``path``, in no particular order; an empty sequence if there is no such path.

        Args:
            path: The path, such as ``user``.
        """
        return [*dict.fromkeys(name.partition("/")[0] for name in self.below(path))]

    def close(self) -> None:
        """Close connections and release the claim: the task ends."""
        close_all(self._release, self._store.close)

    def describe(self) -> str:
        """Return the place of the state in the words of a message."""
        return describe(self._store, self._what)

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
        """Set and remove values under this task's claim, in one atomic step, if the store takes as much in one.

        If not, they are written in several steps, in the order given.

        Args:
            values: The values to set, by path.
            deleted: The paths to remove; one that is not there is ignored.

        Raises:
            FencedError: Another owner has claimed the place of the write; nothing was written.
            StateError: This task has claimed nothing.
            StoreGoneError: The stored state is missing.
        """
        if self._owner is None:
            raise StateError(
                f"{self.describe()} was not claimed, so that nothing may be written there: call claim() or enter() first"
            )
        self.trace("write")
        if not self._write({**self._owner.fence, **_rows(self._writer)}, values, deleted):
            self._check(self._owner)
            path, mine = next(iter(self._writer.items()))  # since nothing else was expected
            raise FencedError(
                f"{self.describe()}: another instance of this task of the spout ({path}, {self.get_data(path)}; this one has {mine}) "
                "has taken its partitions over: nothing more is written by this one"
            )
        self.trace("written")

    def verify(self) -> None:
        """Raise FencedError if another owner has claimed the place of this task's writes."""
        self.update({})

    def newest_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, tuple[int, Any]]:
        """Return the last transaction and its value for each name below ``path``.

        Args:
            path: A path whose names have values by transaction, such as ``user``.
            last_txid: Later transactions are ignored.

        Returns:
            By name, the transaction and the value.
        """
        last: dict[str, tuple[int, Any]] = {}
        for below, value in self.below(path).items():
            name, _, txid = below.partition("/")
            if last.get(name, (0,))[0] < int(txid) <= last_txid:
                last[name] = int(txid), value
        return last

    def last_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, Any]:
        """Return the values of ``newest_of_each`` without their transactions.

        Args:
            path: A path whose names have values by transaction, such as ``user``.
            last_txid: Later transactions are ignored.
        """
        return {name: value for name, (_, value) in self.newest_of_each(path, last_txid).items()}

    def _write(self, fence: Rows, values: Mapping[str, Any], deleted: Iterable[str] = ()) -> bool:
        changes = [(path.encode(), self._encoded(path, value)) for path, value in values.items()]
        changes += [(path.encode(), None) for path in deleted]
        return all(
            self._store.compare_and_write(self._place, fence, _tables(part)) for part in self._store.portions(changes)
        )

    def _encoded(self, path: str, value: Any) -> bytes | None:
        data = dumps(value).encode()
        if len(data) > self._store.largest:
            raise StateError(
                f"{self.describe()}: {path} has {len(data)} bytes, more than {self._store.largest}, which is the most there; keep the "
                "metadata of a batch small: its beginning and end, not its rows"
            )
        return data

    def _decoded(self, data: bytes | None) -> Any:
        return None if data is None else loads(data)

    def _release(self) -> None:
        claim, self._claim, self._owner, self._writer = self._claim, None, None, {}
        if claim is not None:
            claim.release()

    def _check(self, owner: Owner) -> None:
        """Raise the error for a refused write that expected this owner, if it is not the owner any more."""
        try:
            check_owner(self._store, self._place, owner, self._what)
        except FencedError as problem:
            raise _outdated(problem) from None


def what_of(id: str) -> str:
    """Return the transactions of an id in the words of a message."""
    return f"the transactional id {id!r}"


def _outdated(problem: StateError) -> StateError:
    return OutdatedError(str(problem)) if isinstance(problem, FencedError) else problem


def _split(path: str) -> tuple[str, bytes]:
    table, _, key = path.partition("/")
    return table, key.encode()


def _rows(values: Mapping[str, Any]) -> dict[str, dict[bytes, bytes | None]]:
    """Return rows to be compared; None: there is no such row."""
    return _tables({path.encode(): None if each is None else dumps(each).encode() for path, each in values.items()})


def _tables(changes: Mapping[bytes, bytes | None]) -> dict[str, dict[bytes, bytes | None]]:
    """Return rows by table and key, whose paths are the keys of ``changes``."""
    found: dict[str, dict[bytes, bytes | None]] = {}
    for path, value in changes.items():
        table, key = _split(path.decode())
        found.setdefault(table, {})[key] = value
    return found
