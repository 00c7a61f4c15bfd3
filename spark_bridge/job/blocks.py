"""The records that Spark carries from one task to another: blocks of rows as columns, with the roots of each row beside
them.

Records are ``(worker, record)``, keyed by the worker of the next level that gets them. A record for a later level is
passed on unopened by whichever worker got it. Outputs, reports and states travel to the end of the job in the same way,
so that each is there exactly once however often Spark tried a task.
"""

from __future__ import annotations

import os
import pickle
from array import array
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

FAILED, STATE, ROWS, OUTPUT, REPORT = range(5)  # in the order in which a worker reads them
END = 1 << 30  # the level after the last
LIMIT = 8192  # rows of a block: few enough to be held for each target, and enough to make the cost of a row small
LIMIT_BYTES = 4 << 20  # of a block of long rows, about; it is twice as long at most, unless one row is longer
IN_MEMORY = 64 << 20  # bytes of blocks; more of them wait on disk


class Record(NamedTuple):
    """One record.

    ``what`` depends on ``kind``: (task, stream, target task) of ROWS, (component, stream) of OUTPUT, the task of STATE.
    FAILED reports that something in the transaction failed before this level.
    """

    kind: int
    level: int
    worker: int
    from_level: int
    from_worker: int
    number: int
    what: Any
    rows: int
    payload: bytes


class Box:
    """The rows of one stream of one task that wait to become a block for one target.

    ``wide``: a row is a list, since there is not exactly one field. ``sent``: the rows in blocks so far. ``counted``:
    the rows that came through ``add``, whose caller counted them. The rows of an output have no roots and come through
    ``keep``.
    """

    __slots__ = (
        "bytes",
        "counted",
        "kind",
        "level",
        "measured",
        "owner",
        "roots",
        "rows",
        "sent",
        "what",
        "wide",
        "worker",
    )

    def __init__(self, owner: int, kind: int, level: int, worker: int, what: Any, wide: bool) -> None:
        self.owner = owner
        self.kind = kind
        self.level = level
        self.worker = worker
        self.what = what
        self.wide = wide
        self.rows: list[Any] = []
        self.roots: list[Any] = []
        self.sent = 0
        self.counted = 0
        self.bytes = 0  # about how long the first ``measured`` rows are
        self.measured = 0

    def add(self, values: list[Any], root: Any) -> None:
        """Add a row."""
        self.counted += 1
        self.rows.append(values if self.wide else values[0])
        self.roots.append(root)

    def keep(self, values: list[Any]) -> None:
        """Add a row of an output."""
        self.rows.append(values if self.wide else values[0])

    def is_full(self, rows: int) -> bool:
        """Return whether it has so many rows, or about LIMIT_BYTES: the last row stands for all that came since this was asked."""
        count = len(self.rows)
        if count > self.measured:
            self.bytes += (count - self.measured) * len(pickle.dumps(self.rows[-1], 5))
            self.measured = count
        return count >= rows or self.bytes >= LIMIT_BYTES

    def take(self) -> list[tuple[int, bytes]]:
        """Return the number of rows and the text of each block, and empty the lists in place.

        Others hold their ``append`` methods.
        """
        taken = list(self._blocks(self.rows, self.roots))
        self.sent += len(self.rows)
        self.rows.clear()
        self.roots.clear()
        self.bytes = self.measured = 0
        return taken

    def _blocks(self, rows: list[Any], roots: list[Any]) -> Iterator[tuple[int, bytes]]:
        payload = packed(rows, roots, self.wide)
        if len(payload) <= 2 * LIMIT_BYTES or len(rows) == 1:
            yield len(rows), payload
            return
        half = len(rows) // 2  # rows were longer than those that were looked at
        yield from self._blocks(rows[:half], roots[:half])
        yield from self._blocks(rows[half:], roots[half:])


def packed(rows: Sequence[Any], roots: Sequence[Any], wide: bool) -> bytes:
    """Pickle rows as columns. A string that is in a column many times as the same object is written once."""
    columns = list(zip(*rows, strict=True)) if wide else [rows]
    if not roots:
        return pickle.dumps((columns, []), 5)
    try:
        behind: Any = _planes(array("q", roots).tobytes())
    except TypeError:  # some rows have several roots
        behind = list(roots)
    return pickle.dumps((columns, behind), 5)


def unpacked(payload: bytes, count: int) -> tuple[list[list[Any]], list[Any]]:
    """Return the values of each row, and its roots."""
    # Written by a task of this very job and carried by Spark's own shuffle, which pickles as well.
    columns, behind = pickle.loads(payload)  # noqa: S301
    if len(columns) == 1:
        rows = [[value] for value in columns[0]]
    elif columns:
        rows = list(map(list, zip(*columns, strict=True)))
    else:
        rows = [[] for _ in range(count)]
    if isinstance(behind, tuple):
        roots = array("q")
        roots.frombytes(_joined(behind, count))
        behind = roots.tolist()
    return rows, behind


def _planes(numbers: bytes) -> tuple[bytes, ...]:
    """Split 64-bit numbers into eight rows of bytes.

    A row that repeats one byte, as most rows do, is shortened to that byte.
    """
    planes = [numbers[start::8] for start in range(8)]
    return tuple(plane[:1] if plane.count(plane[:1]) == len(plane) else plane for plane in planes)


def _joined(planes: tuple[bytes, ...], count: int) -> bytearray:
    numbers = bytearray(8 * count)
    for start, plane in enumerate(planes):
        numbers[start::8] = plane if len(plane) == count else plane * count
    return numbers


class Ledger:
    """Row counts and checksums between each two workers, counted by both ends and compared when the round is over.

    Spark's shuffle loses nothing. But when a machine is lost, Spark computes its output again, and a component that
    does not do the same again for the same input may then have sent a tuple to a task that had finished before. The
    ledger shows that.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], list[int]] = {}

    def add(self, level: int, worker: int, rows: int, payload: bytes) -> None:
        """Count a block to, or from, that worker."""
        sums = self._sums.setdefault((level, worker), [0, 0])
        sums[0] += rows
        sums[1] = (sums[1] + crc32(payload)) & 0xFFFFFFFFFFFFFFFF

    def as_dict(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the rows and the sum of checksums for each worker at the other end."""
        return {end: (rows, sums) for end, (rows, sums) in self._sums.items()}


class Arrivals:
    """The blocks of one worker.

    They wait in memory, or in a file beyond a bound, until the last one has come. Then they are read by sender and
    number, so that a task that Spark runs a second time gets the same tuples in the same order.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY, dir=_folder())  # noqa: SIM115  # closed by close
        self._index: list[tuple[tuple[int, int, int, int], Record, int, int]] = []
        self._end = 0
        self.ledger = Ledger()

    def put(self, record: Record) -> None:
        """Add one block, in any order."""
        payload = record.payload
        self._file.write(payload)
        key = (record.kind, record.from_level, record.from_worker, record.number)
        self._index.append((key, record._replace(payload=b""), self._end, len(payload)))
        self._end += len(payload)
        if record.kind == ROWS:
            self.ledger.add(record.from_level, record.from_worker, record.rows, payload)

    def __iter__(self) -> Iterator[Record]:
        """Iterate over all blocks: states first, then rows."""
        self._index.sort(key=lambda entry: entry[0])
        for _, record, start, length in self._index:
            self._file.seek(start)
            yield record._replace(payload=self._file.read(length))

    def close(self) -> None:
        """Free the memory, or the file."""
        self._file.close()


def _folder() -> str | None:
    """Return Spark's folder for data that does not fit in memory."""
    for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(","):
        if os.path.isdir(folder) and os.access(folder, os.W_OK):
            return folder
    return None


def is_report(record: Any) -> bool:
    """Return whether a record is a task's report of its round."""
    return record[0] == REPORT  # type: ignore[no-any-return]


def is_for_driver(record: Any, tasks: frozenset[int] | None) -> bool:
    """Return whether the driver wants the record: reports, and what the bolts of these tasks (None: of all) know."""
    return is_report(record) or (is_state(record) and (tasks is None or record[6] in tasks))


def is_state(record: Any) -> bool:
    """Return whether a record is what a bolt knew at the end of its round."""
    return record[0] == STATE  # type: ignore[no-any-return]
