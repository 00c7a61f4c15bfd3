"""A fingerprint of the rows of a job that is one transaction: when it broke off, only the same rows may have its number again."""

from __future__ import annotations

import marshal
from hashlib import blake2b
from typing import TYPE_CHECKING

from spark_bridge.job.watch import collected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pyspark import RDD

    from spark_bridge.job.sources import SourceReader

_MASK = (1 << 63) - 1


class _Summed:
    """Runs in an executor: the number of a partition's rows, and the sum of their hashes."""

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader

    def __call__(self, partition: int, rows: Iterable[Any]) -> Iterator[tuple[int, int]]:
        count = total = 0
        for _, values, _, _ in self._reader.read(partition, rows):
            count += 1
            total += int.from_bytes(blake2b(marshal.dumps(values, 0), digest_size=8).digest(), "big")
        yield count, total & _MASK


def fingerprint(rows: RDD[Any], reader: SourceReader, description: str) -> list[int]:
    """Return the number of a source's rows and the sum of their hashes, whatever their order and partitions.

    Args:
        rows: The rows, which are read for this.
        reader: Reads them.
        description: Of the Spark job, in its UI.
    """
    found = collected(rows.mapPartitionsWithIndex(_Summed(reader)), [], None, description)
    return [sum(count for count, _ in found), sum(total for _, total in found) & _MASK]
