"""A spout over a partition source for exact alignment: its position is an offset and a checksum for each partition."""

from __future__ import annotations

from multilang.component.errors import ChangedRowsError
from multilang.helpers.checksums import extended
from multilang.state.replayable import ReplayableSpout
from spark_bridge.sources.source import Comparison, Mark, described
from spark_bridge.spout import OverSource, check_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from multilang.component.context import Context

_BLOCK = 4096  # rows of one read
_ROWS = 16  # rows that one next_tuple emits at most


def marks_of(positions: Iterable[Mapping[str, Any] | None]) -> dict[int, Mark]:
    """Return partition -> how far it was read, from the positions of a spout's tasks (None: at its beginning)."""
    found: dict[int, Mark] = {}
    for position in positions:
        if not position:
            continue
        for partition, offset in position["offsets"].items():
            found[int(partition)] = Mark(offset, position["totals"][partition], position["source"])
    return found


def positions_at(marks: Mapping[int, Mark], source: Mapping[str, Any], tasks: int) -> list[dict[str, Any]]:
    """Return the position of each of a spout's tasks, when ``source`` was read up to ``marks``."""
    return [
        _position({each: mark for each, mark in marks.items() if each % tasks == task}, source, task, tasks)
        for task in range(tasks)
    ]


def _position(marks: Mapping[int, Mark], source: Mapping[str, Any], task: int, tasks: int) -> dict[str, Any]:
    return {
        "offsets": {str(each): mark.watermark for each, mark in marks.items()},
        "totals": {str(each): mark.total for each, mark in marks.items()},
        "source": dict(source),
        "task": [task, tasks],
    }


class ReplayablePartitionSpout(OverSource, ReplayableSpout):
    """A spout that emits the rows of a source's partitions, one partition of a task after the other.

    It is for topologies with ``multilang.state.alignment: exact``, where positions are saved with the states, so that
    each row counts once. If the source is not the one that was read before, the spout refuses it before it emits
    anything. Without exact alignment use PartitionSpout, which remembers across restarts which rows were acked.

    Args:
        source: A source, or its URL; None: the conf has the URL as ``multilang.source``.
        fields: The names of a row's values; None: those of the source.
    """

    def identity(self) -> str:
        """Return the same for all sources: their rows are compared, and a source that is served again has another address."""
        return "the rows of a source"

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        source = self._source = self._open(conf)
        check_fields(source, list(self.output_fields or ()))
        self._about = described(source)
        self._task = [context.task_index, len(context.tasks(context.component))]
        self._mine = range(context.task_index, source.partitions, self._task[1])
        self.seek({})

    def next_tuple(self) -> None:
        if self._comparison is not None:
            self._compare()
            return
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
        return self._comparison is None and len(self._ended) == len(self._mine)

    def position(self) -> dict[str, Any]:
        """Return partition -> the offset of its next row, with what identifies the source."""
        while self._comparison is not None:  # a checkpoint must not have a source that was not compared yet
            self._compare()
        for partition in self._offsets:
            self._sum_up(partition)
        marks = {each: Mark(*summed) for each, summed in self._summed.items()}
        return _position(marks, self._about, *self._task)

    def seek(self, position: dict[str, Any]) -> None:
        then = position["task"] if position else self._task
        if then != self._task:
            raise ChangedRowsError(
                f"the position is that of task {then[0]} of {then[1]}, and this is task {self._task[0]} of {self._task[1]}, which "
                "has other partitions: give the spout as many tasks as before"
            )
        marks = marks_of([position])
        self._offsets = {partition: mark.watermark for partition, mark in marks.items()}
        self._summed = dict.fromkeys(marks, (0, 0))
        self._ended: set[int] = set()
        self._block: tuple[int, int, Any] = (-1, 0, ())
        self._comparison: Comparison | None = None
        if marks:
            self._comparison = Comparison(self._source, marks, "the topology whose state this is", "an empty state")
            self._compare()

    def close(self) -> None:
        self._source.close()

    def _compare(self) -> None:
        """Compare one piece, so that the task answers between two of them."""
        comparison = self._comparison
        assert comparison is not None
        if not comparison.step():
            self._comparison = None
            self._summed = {each: (self._offsets[each], total) for each, total in comparison.totals.items()}

    def _rows_at(self, partition: int, offset: int) -> Any:
        where, first, rows = self._block
        if where != partition or not first <= offset < first + len(rows):
            if where >= 0:
                self._sum_up(where)
            rows, first = self._source.read(partition, offset, _BLOCK), offset
            self._block = (partition, first, rows)
        return rows[offset - first : offset - first + _ROWS]

    def _sum_up(self, partition: int) -> None:
        """Extend the checksum to the partition's offset; the rows since the last time are in the block."""
        at, total = self._summed.get(partition, (0, 0))
        offset = self._offsets.get(partition, 0)
        if at < offset:
            _, first, rows = self._block
            self._summed[partition] = (offset, extended(total, rows[at - first : offset - first]))
