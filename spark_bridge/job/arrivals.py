"""A worker's input in an order that is always the same, although Spark delivers the blocks in any order."""

from __future__ import annotations

import os
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from spark_bridge.job.blocks import ROWS, Ledger, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_MEMORY = 64 << 20  # bytes of blocks; more of them wait on disk


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
