"""A spout over a partition source for exact alignment: its position is an offset per partition."""

from __future__ import annotations

from multilang.state.replayable import ReplayableSpout
from spark_bridge.spout import OverSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from multilang.component.context import Context

_BLOCK = 4096  # rows that are asked for at once
_ROWS = 16  # that are emitted at once


def offsets_of(positions: Iterable[Mapping[str, int] | None]) -> dict[int, int]:
    """Partition -> the offset of its next row, from the positions of a spout's tasks (None: at its beginning)."""
    return {int(partition): offset for each in positions for partition, offset in (each or {}).items()}


def positions_at(offsets: Mapping[int, int], tasks: int) -> list[dict[str, int]]:
    """The position of each of a spout's tasks, where partition -> the offset of its next row."""
    return [{str(each): at for each, at in offsets.items() if each % tasks == task} for task in range(tasks)]


class ReplayablePartitionSpout(OverSource, ReplayableSpout):
    """Emits the rows of a source's partitions, one partition of a task after the other.

    For topologies with ``multilang.state.alignment: exact``, where positions are saved with the states: each row counts once.
    Elsewhere take PartitionSpout, which remembers across restarts what was acked.
    """

    max_replays = None

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        source = self._source = self._open(conf)
        self._check_fields(source)
        self._mine = range(context.task_index, source.partitions, len(context.tasks(context.component)))
        self.seek({})

    def next_tuple(self) -> None:
        for partition in self._mine:
            if partition in self._ended:
                continue
            offset = self._offsets.get(partition, 0)
            rows = self._rows_at(partition, offset)
            for number, row in enumerate(rows, offset):
                self.emit(row, tup_id=f"{partition}:{number}")
            if rows:
                self._offsets[partition] = offset + len(rows)
                return
            self._ended.add(partition)

    def exhausted(self) -> bool:
        return len(self._ended) == len(self._mine)

    def position(self) -> dict[str, int]:
        """Partition -> the offset of its next row."""
        return {str(partition): offset for partition, offset in self._offsets.items()}

    def seek(self, position: dict[str, int]) -> None:
        self._offsets = offsets_of([position])
        self._ended: set[int] = set()
        self._block: tuple[int, int, Any] = (-1, 0, ())

    def close(self) -> None:
        self._source.close()

    def _rows_at(self, partition: int, offset: int) -> Any:
        where, first, rows = self._block
        if where != partition or not first <= offset < first + len(rows):
            rows, first = self._source.read(partition, offset, _BLOCK), offset
            self._block = (partition, first, rows)
        return rows[offset - first : offset - first + _ROWS]
