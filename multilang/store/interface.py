"""The one interface to durable data: rows of bytes in a database, and the owners that may write them.

States, positions, transactions, maps, marks of sources and logs of queries are stored through these calls alone. A **place**
is what one owner writes to, such as the state of one task; it has **tables** of rows, and a row is a key with its value, both
bytes. The names of places and tables are any text of up to 200 characters without NUL, and are case-sensitive. The laws
of every database, and the reasons:

1. **A write is one atomic step.** ``compare_and_write`` compares the rows that are expected and writes, with no other write
   between the two, and does all of it or, after an error or a crash, nothing. A check before the write is not enough: a
   process can be stopped between the two for hours.
2. **A write is durable.** If the store is durable, the rows are on the disk when the call returns: a tuple that is acked
   after it is never replayed.
3. **False is nothing.** ``compare_and_write`` returns False when an expected row is another one, and has changed nothing.
4. **A write is made once.** A client may send a request again when its answer is lost. The second copy, or a first one that
   was late, changes nothing, whatever was written meanwhile, and the call returns True if one was done.
5. **A read sees all writes.** After a claim, ``get`` and ``list`` return what the previous owners have written.
6. **An owner has an epoch.** Each claim raises it, and nothing else does. Numbers that are counted from it, such as those
   of attempts, are never used twice.
7. **Nothing is read before the claim.** It could be older than the last write of the previous owner.
8. **Every write carries a fence.** It is a row that the claim made, and that the next claim removes. Its key is drawn at
   random, so that it can't be made again, not even by removing the whole place. Once there is a newer owner, a write that
   expects the old fence is refused in the same step. Rows that only the owner writes may replace it, as may a number that
   was claimed under it.
9. **A heartbeat protects nothing.** It is for people: while an owner beats, another run is refused with a message that names
   it. The place of a process that was killed or stopped, and does not beat, is taken over.
10. **Reading is bounded.** ``list`` reads a table in portions, whatever its size. A row that does not change is returned
   once; one that changes meanwhile may be returned or not.

A database of one's own is a subclass with ``get``, ``list``, ``places``, ``tables``, ``compare_and_write``, ``describe`` and, where
something is to be closed, ``close``.
All methods may be called from any thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from multilang.store.claims import OWNER, Claim, claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    Rows: TypeAlias = Mapping[str, Mapping[bytes, bytes | None]]
    """Values by table and key. None: there is no such row, or there shall be none."""

_BEATS = b"beats"


def ignore(_: str) -> None:
    """Ignore a message or a step of a write."""


class Store(ABC):
    """Rows in a database, by place, table and key.

    Args:
        url: The URL that names the database, such as ``sqlite:///var/lib/shop.sqlite``.
        conf: The conf of the topology, for what belongs into no URL, such as passwords.
        setting: The conf key that has the URL, for messages.

    Attributes:
        durable: Whether another process, and a later one, finds what was written.
        local: Whether only this machine can reach it, as with files.
        largest: The largest size of a key or value, in bytes.
        portion_rows: The best number of rows for one step, where they may be divided; see ``portions``.
        portion_bytes: The size of these rows together, in bytes.
        requires: The packages that workers need: import names, and what to install for each.
        claims: The claims through this store that beat.
        trace: Called with the steps of a write: "write", "sync" before it is synced, "synced" after it.
    """

    durable: ClassVar[bool] = True
    local: ClassVar[bool] = False
    requires: ClassVar[Mapping[str, str]] = {}
    largest: int = 2**62
    portion_rows: int = 2**62
    portion_bytes: int = 2**62
    trace: Callable[[str], None] = staticmethod(ignore)

    def __init__(self, url: str, conf: Mapping[str, Any] | None = None, setting: str = "multilang.store") -> None:
        self.url = url
        self.conf = dict(conf or {})
        self.setting = setting
        self.claims: list[Claim] = []

    @abstractmethod
    def get(self, place: str, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none, in one round trip.

        Args:
            place: The place.
            table: The table.
            keys: The keys.

        Raises:
            StateError: The database can't be read.
        """

    @abstractmethod
    def list(self, place: str, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield all keys of a table with their values, in no particular order.

        Args:
            place: The place.
            table: The table.

        Raises:
            StateError: The database can't be read.
        """

    @abstractmethod
    def places(self, start: str) -> Sequence[str]:
        """Return the places that have any row, and whose names begin with ``start``, in no particular order.

        Args:
            start: The beginning of the names.

        Raises:
            StateError: The database can't be read.
        """

    @abstractmethod
    def tables(self, place: str) -> Sequence[str]:
        """Return the tables of a place that have any row, in no particular order.

        Args:
            place: The place.

        Raises:
            StateError: The database can't be read.
        """

    @abstractmethod
    def compare_and_write(
        self,
        place: str,
        expected: Rows,
        changes: Rows,
        cleared: Collection[str] = (),
        merged: tuple[str, str] | None = None,
    ) -> bool:
        """Change the rows of a place if those that are expected are there: all in one atomic step, or nothing.

        First the tables in ``cleared`` are emptied, then rows are merged, then ``changes`` are written.

        Args:
            place: The place.
            expected: The rows to be compared; None: there is no such row.
            changes: The rows to be written; None: the row is removed.
            cleared: Tables of which all rows are removed.
            merged: Two tables. The rows of the first one replace those of the same key in the second, an empty value removes the
                row there, and the first one is empty afterwards.

        Returns:
            False if an expected row is another one; then nothing was changed.

        Raises:
            StateError: The database can't be written to, or this is too much for one step.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the database in the words of a message: "the SQLite file /var/lib/shop.sqlite"."""

    def close(self) -> None:
        """Close connections, and end the heartbeats of the claims. The next use opens the store again."""
        for each in self.claims:
            each.end()
        self.claims.clear()

    def portions(self, rows: Iterable[tuple[bytes, bytes | None]]) -> Iterator[dict[bytes, bytes | None]]:
        """Yield rows in portions for one step each; at least one, which is empty where there are no rows.

        Args:
            rows: Keys with their values; None: the row is removed.
        """
        part: dict[bytes, bytes | None] = {}
        size = 0
        for key, value in rows:
            more = len(key) + len(value or b"")
            if part and (len(part) >= self.portion_rows or size + more > self.portion_bytes):
                yield part
                part, size = {}, 0
            part[key] = value
            size += more
        yield part

    def check(self) -> None:  # noqa: B027  # by default nothing is checked
        """Check that the database can be used now, with a short timeout since somebody waits for the answer.

        Raises:
            StateError: It can't be used now.
        """

    def hurry(self) -> None:  # noqa: B027  # not every database is waited for
        """Shorten the timeouts from now on: the task ends, and its last write matters little."""

    def beat(self, place: str, fence: Rows, number: int) -> bool:
        """Store that the owner is alive.

        Args:
            place: The place.
            fence: The fence of the owner's claim.
            number: The number of the beat.

        Returns:
            False if the place has another owner by now.
        """
        return self.compare_and_write(place, fence, {OWNER: {_BEATS: b"%d" % number}})

    def beats(self, place: str) -> object:
        """Return a value that each ``beat`` changes.

        Args:
            place: The place.
        """
        return self.get(place, OWNER, [_BEATS])[0]

    def end_beats(self, place: str) -> None:  # noqa: B027  # not every database has something to remove
        """Remove the data of ``beat`` beside the rows: the owner has released the place.

        Args:
            place: The place.
        """

    def claim(
        self,
        place: str,
        run: str,
        topology: str,
        warn: Callable[[str], None] = ignore,
        *,
        may_return: bool = True,
        above: int = 0,
        what: str = "",
    ) -> Claim:
        """Become the owner of a place.

        Args:
            place: The place.
            run: The run that claims, the topology's ``storm.id``. A place of a process of the same run is taken over at once.
            topology: The run's topology, for messages.
            warn: Called with a message when the place is taken from an owner that neither ended nor beats.
            may_return: Whether a fenced run may claim again once its successor has ended. It may on Storm, where nobody else
                could end it.
            above: An epoch that was used already, by other stored data; that of the claim is above it.
            what: The name of the place's content for messages, such as "the state of topology 'shop'".

        Returns:
            The claim.

        Raises:
            InUseError: Another run owns the place, and beats.
            FencedError: Another run has taken the place over from this one.
        """
        return claim(self, place, run, topology, warn, may_return=may_return, above=above, what=what)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the store without its connections."""
        return type(self), (self.url, self.conf, self.setting)

    def __deepcopy__(self, memo: object) -> Store:
        """Return the store itself: copies of a component write to the same place."""
        return self
