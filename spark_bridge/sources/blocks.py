"""Rows in blocks, as an executor sends them: JSON text with a checksum that also covers all blocks before it.

All blocks of a partition but the last have ``block_rows`` rows. The *chain* of a block is the hash of its own text and
of the chain of the block before it. So if two computations of a partition differ anywhere before a place, their chains
at this place differ.
"""

from __future__ import annotations

import gc
from hashlib import blake2b

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
START = b"\0" * 16  # the chain before the first block
_MOST_PARTITIONS = 64
_SECONDS = 2.0  # a job that takes longer is too wide, as the reader of its first partition waits for all
_CACHED = 4  # decoded blocks in memory: the present one, and some in which failed rows are


class Block:
    """The ``rows`` rows from ``index * block_rows`` on.

    ``before``, ``chain``: see the module; ``last``: no block follows.
    """

    __slots__ = ("before", "chain", "data", "index", "last", "rows")

    def __init__(self, index: int, rows: int, before: bytes, chain: bytes, last: bool, data: bytes) -> None:
        self.index = index
        self.rows = rows
        self.before = before
        self.chain = chain
        self.last = last
        self.data = data

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
    index = 0
    texts: list[str] = []
    for offset, row in enumerate(rows):
        if len(texts) == block_rows:
            data = f"[{','.join(texts)}]".encode()
            chain = chain_of(before, data)
            yield index, block_rows, before, chain, False, data
            before, index, texts = chain, index + 1, []
        try:
            texts.append(text_of(row))
        except ConnectorError as error:
            raise ConnectorError(f"partition {partition}, offset {offset}: {error}") from None
    data = f"[{','.join(texts)}]".encode()
    yield index, len(texts), before, chain_of(before, data), True, data


class Chains:
    """The chains of each partition that were seen before, which show whether rows have changed.

    They take 16 bytes a block.
    """

    def __init__(self, source: str, block_rows: int) -> None:
        self._source = source
        self._block_rows = block_rows
        self._seen: dict[tuple[int, int], tuple[bytes, bool]] = {}

    def check(self, partition: int, block: Block) -> None:
        """Raise ChangedRowsError when the block, or one before it, is not what it was."""
        seen = self._seen
        before = seen.get((partition, block.index - 1)) if block.index else (START, False)
        if before is not None and before != (block.before, False):
            self._refuse(partition, 0, block.index)
        known = seen.setdefault((partition, block.index), (block.chain, block.last))
        if known != (block.chain, block.last):
            self._refuse(partition, block.index if before is not None else 0, block.index + 1)

    def check_end(self, partition: int, last: Block) -> None:
        """Raise ChangedRowsError as ``check`` does, for a partition that ends with ``last``."""
        self.check(partition, last)
        if (partition, last.index + 1) in self._seen:
            self._refuse(partition, last.index + 1, last.index + 2)

    def newest(self) -> dict[int, int]:
        """Return partition -> its last block that was seen."""
        found: dict[int, int] = {}
        for partition, index in list(self._seen):
            found[partition] = max(index, found.get(partition, 0))
        return found

    def _refuse(self, partition: int, start: int, end: int) -> NoReturn:
        raise ChangedRowsError(
            f"partition {partition} of {self._source!r} gave other rows than before between offsets "
            f"{start * self._block_rows} and {end * self._block_rows}: the RDD is not deterministic, or not the one that it was, "
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
        self._decoded: dict[tuple[int, int], Sequence[Row]] = {}

    @property
    def block_rows(self) -> int:
        """The number of rows of a block."""
        raise NotImplementedError

    def block(self, partition: int, index: int) -> Block | None:
        """Return a block, or None when the partition has ended before it.

        Args:
            partition: The partition's number.
            index: The block's number, from 0.
        """
        raise NotImplementedError

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        index, start = divmod(offset, self.block_rows)
        key = (partition, index)
        rows = self._decoded.get(key)
        if rows is None:
            block = self.block(partition, index)
            rows = () if block is None else block.decoded()
            while len(self._decoded) >= _CACHED:
                del self._decoded[next(iter(self._decoded))]
            self._decoded[key] = rows
        return rows[start : start + limit] if start or limit < len(rows) else rows

    def close(self) -> None:
        self._decoded.clear()
