"""The common part of the live sources, in the driver and elsewhere: rows by offset, read from blocks by number."""

from __future__ import annotations

from spark_bridge.sources.source import PartitionSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilang.plain import Row
    from spark_bridge.sources.blocks import Block

_KEPT = 4  # decoded blocks that are kept: the present one, and some in which failed rows are


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
            while len(self._decoded) >= _KEPT:
                del self._decoded[next(iter(self._decoded))]
            self._decoded[key] = rows
        return rows[start : start + limit] if start or limit < len(rows) else rows

    def close(self) -> None:
        self._decoded.clear()
