"""Rows in blocks, as an executor sends them: JSON text with a checksum that also covers all blocks before it.

A block has up to ``block_rows`` rows, and ``BLOCK_BYTES`` of text unless one row is longer. So where it ends depends on its rows, and
it is found by the offset of any of them. The *chain* of a block is the hash of its own text and of the chain of the block before it.
So if two computations of a partition differ anywhere before a place, their chains at this place differ.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from hashlib import blake2b
from threading import Lock

from multilang.component.errors import ChangedRowsError, ConnectorError
from multilang.protocol.codec import loads
from multilang.protocol.errors import shown
from spark_bridge.sources.source import PartitionSource
from spark_bridge.sources.values import converter, encoded, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, NoReturn

    from multilang.helpers.plain import Row
    from spark_bridge.sources.values import Kind


BLOCK_ROWS = 4096
BLOCK_BYTES = 1 << 20
START = b"\0" * 16  # the chain before the first block
_MOST_PARTITIONS = 64
_SECONDS = 2.0  # a job that takes longer is too wide, as the reader of its first partition waits for all
_CACHED = 4  # decoded blocks in memory: the present one, and some in which failed rows are


class Block:
    """The ``rows`` rows of a partition from offset ``start`` on.

    ``before``, ``chain``: see the module; ``last``: no block follows.
    """

    __slots__ = ("before", "chain", "data", "last", "rows", "start")

    def __init__(self, start: int, rows: int, before: bytes, chain: bytes, last: bool, data: bytes) -> None:
        self.start = start
        self.rows = rows
        self.before = before
        self.chain = chain
        self.last = last
        self.data = data

    @property
    def end(self) -> int:
        """The offset behind its last row."""
        return self.start + self.rows

    def has(self, offset: int) -> bool:
        """Return whether the row of this offset is one of its rows."""
        return self.start <= offset < self.end

    def decoded(self) -> list[Row]:
        """Return the rows, each a tuple of values."""
        # The garbage collector soon ignores tuples of plain values. The temporary lists would make it look through
        # everything in this process for each block.
        collects = gc.isenabled()
        gc.disable()
        try:
            return list(map(tuple, loads(self.data)))
        finally:
            if collects:
                gc.enable()


def chain_of(before: bytes, data: bytes) -> bytes:
    """Return the chain of a block with this text, after one with the chain ``before``."""
    return blake2b(data, digest_size=16, key=before).digest()


class RowText:
    """Turns an RDD's row into the JSON text of a row. ``kinds``: of a DataFrame's columns; None for any other RDD."""

    def __init__(self, fields: Sequence[str], kinds: Sequence[Kind] | None) -> None:
        self.fields = tuple(fields)
        self._converters = None if kinds is None else [converter(kind) for kind in kinds]
        if self._converters is not None and not any(self._converters):
            self._converters = []

    def __call__(self, row: Any) -> str:
        return encoded(self._row(row), self.fields)

    def values(self, row: Any) -> list[Any]:
        """Return the row's values as JSON has them.

        Raises ConnectorError with the field's name for a value that has no JSON form.
        """
        values = self._row(row)
        if not all(value is None or value is True or value is False or _is_ascii(value) for value in values):
            return loads(encoded(values, self.fields))  # type: ignore[no-any-return]
        return values

    def _row(self, row: Any) -> list[Any]:
        if self._converters:
            pairs = zip(self._converters, row, strict=True)
            return [value if convert is None else convert(value) for convert, value in pairs]
        if self._converters is not None:
            return list(row)
        values = in_order(row, self.fields) if isinstance(row, list | tuple) else [row]
        width = len(self.fields)
        if len(values) != width:
            raise ConnectorError(
                f"the row {shown(row, 200)} is no {width} values for the fields {list(self.fields)!r}; map the RDD to tuples "
                "of that length, or name its fields with fields="
            )
        return values


def _is_ascii(value: Any) -> bool:
    return isinstance(value, str) and value.isascii()


def blocks_of(rows: Iterable[Any], partition: int, text_of: RowText, block_rows: int) -> Iterator[tuple[Any, ...]]:
    """Return the blocks of one partition, as the arguments of Block.

    An empty partition has one block, which is empty and last.
    """
    before = START
    start = size = 0
    texts: list[str] = []
    for offset, row in enumerate(rows):
        try:
            text = text_of(row)
        except ConnectorError as error:
            raise ConnectorError(f"partition {partition}, offset {offset}: {error}") from None
        size += len(text)
        if texts and (len(texts) == block_rows or size > BLOCK_BYTES):
            data = f"[{','.join(texts)}]".encode()
            chain = chain_of(before, data)
            yield start, len(texts), before, chain, False, data
            before, start, size, texts = chain, offset, len(text), []
        texts.append(text)
    data = f"[{','.join(texts)}]".encode()
    yield start, len(texts), before, chain_of(before, data), True, data


class Chains:
    """The chains of each partition that were seen before, which show whether rows have changed.

    Any number of threads may use it: a failed row is read by another one than the rows ahead.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = Lock()
        self._starts: dict[int, list[int]] = {}  # partition -> where the blocks that were seen start, ascending
        self._seen: dict[tuple[int, int], tuple[int, bytes, bytes, bool]] = {}  # end, before, chain, last

    def check(self, partition: int, block: Block) -> None:
        """Raise ChangedRowsError when the block, or one before it, is not what it was."""
        with self._lock:
            self._check(partition, block)

    def newest(self) -> dict[int, int]:
        """Return partition -> where its last block that was seen starts."""
        with self._lock:
            return {partition: starts[-1] for partition, starts in self._starts.items() if starts}

    def _check(self, partition: int, block: Block) -> None:
        starts = self._starts.setdefault(partition, [])
        place = bisect_right(starts, block.start)
        about = (block.end, block.before, block.chain, block.last)
        if place:  # the nearest block that starts here or before
            first = starts[place - 1]
            known = end, _, chain, last = self._seen[partition, first]
            if first == block.start:
                if known != about:
                    self._refuse(partition, 0 if known[1] != block.before else first, block.end)
                return
            if end > block.start or last or (end == block.start and chain != block.before):
                self._refuse(partition, 0, block.start)
        elif block.start == 0 and block.before != START:
            self._refuse(partition, 0, block.end)
        if place < len(starts):  # the nearest block that starts behind
            following = starts[place]
            if (
                following < block.end
                or block.last
                or (following == block.end and self._seen[partition, following][1] != block.chain)
            ):
                self._refuse(partition, block.start, following)
        starts.insert(place, block.start)
        self._seen[partition, block.start] = about

    def _refuse(self, partition: int, start: int, end: int) -> NoReturn:
        raise ChangedRowsError(
            f"partition {partition} of {self._source!r} gave other rows than before between offsets "
            f"{start} and {end}: the RDD is not deterministic, or not the one that it was, "
            "so that a failed row could not be read again. Give its random numbers a seed, sort what a shuffle left in any "
            "order, checkpoint() it, or publish() it and read that"
        )


class Width:
    """The number of partitions whose first blocks the next Spark job brings.

    A job costs some 20 ms, however little it brings. A DataFrame behind a shuffle has 200 partitions, which may hold a few rows
    each. So the number grows while partitions turn out to have one block each, and come quickly.

    Args:
        most_bytes: What all first blocks of a job are expected to have at most.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.partitions = 1

    def learn(self, first: Sequence[Block], seconds: float) -> None:
        """Take into account what a job brought.

        Args:
            first: The first block of each partition.
            seconds: How long the job took.
        """
        if not all(block.last for block in first):
            self.partitions = 1
        elif seconds > _SECONDS:
            self.partitions = max(1, len(first) // 4)
        else:
            mean = sum(len(block.data) for block in first) // len(first) + 1
            self.partitions = max(1, min(len(first) * 4, _MOST_PARTITIONS, self._most_bytes // mean))


class BlockSource(PartitionSource):
    """A source whose subclasses define ``block``; ``read`` decodes the block and keeps the last few."""

    def __init__(self) -> None:
        self._decoded: dict[tuple[int, int], Sequence[Row]] = {}  # by partition and offset of the first row

    def block(self, partition: int, offset: int) -> Block | None:
        """Return the block that has a row, or None when the partition has ended before it.

        Args:
            partition: The partition's number.
            offset: The offset of the row.
        """
        raise NotImplementedError

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        for (each, first), rows in self._decoded.items():
            if each == partition and first <= offset < first + len(rows):
                break
        else:
            block = self.block(partition, offset)
            if block is None:
                return ()
            first, rows = block.start, block.decoded()
            while len(self._decoded) >= _CACHED:
                del self._decoded[next(iter(self._decoded))]
            self._decoded[partition, first] = rows
        start = offset - first
        return rows[start : start + limit] if start or limit < len(rows) else rows

    def close(self) -> None:
        self._decoded.clear()
