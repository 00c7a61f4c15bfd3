"""The start of a spout's task, which has claimed its partitions: it checks that the source is the same one as before."""

from __future__ import annotations

from multilang.component.errors import ChangedRowsError
from spark_bridge.sources.identity import Comparison, Mark, carried_on, described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from spark_bridge.sources.source import PartitionSource
    from spark_bridge.sources.store import Marks


class Resume:
    """The offsets at which a task goes on.

    They are found in steps, because rows that were read before may have to be read again.

    Attributes:
        positions: Partition -> the offset to begin at.
        totals: Partition -> the checksum of the rows before.
        marks: What the store has of this task's partitions.
        about: The description of the source that is kept from now on.
    """

    def __init__(
        self,
        source: PartitionSource,
        kept: Marks,
        mine: Collection[int],
    ) -> None:
        """Begin with the partitions ``mine``, which were claimed in ``kept``."""
        self.positions: dict[int, int] = {}
        self.totals: dict[int, int] = {}
        self._source = source
        self._kept = kept
        self.about: dict[str, Any] = described(source)
        marks = kept.load()
        self.marks = {each: marks.get(each, Mark(0)) for each in mine}
        self._own = self._comparison(self.marks)
        self._others: Comparison | None = None

    def step(self) -> bool:
        """Do one step, and return whether there is more to do. Raises ChangedRowsError when it is another source."""
        if self._others is None:
            if not self._own.step():
                self._note()
                # The other tasks' partitions are compared, too, since rows may have moved between partitions. Most need
                # not be read, as their own tasks have noted this source by now.
                marks = self._kept.load()
                self._others = self._comparison({each: mark for each, mark in marks.items() if each not in self.marks})
            return True
        if self._others.step():
            return True
        self._find()
        return False

    def _comparison(self, marks: dict[int, Mark]) -> Comparison:
        return Comparison(self._source, marks, f"group {self._kept.group!r}", "another group")

    def _note(self) -> None:
        """Store what was found, so that the next comparison need not read everything."""
        found = {
            each: Mark(mark.watermark, self._own.totals[each], self.about)
            for each, mark in self.marks.items()
            if mark.watermark and mark.source != self.about
        }
        if found:
            self._kept.save(found)
            self.marks.update(found)

    def _find(self) -> None:
        known = self._source.progress()
        for each, mark in self.marks.items():
            end = max(mark.watermark, known.get(each, 0))  # acked up to there, as the store or the source knows
            at, total = carried_on(self._source, each, mark.watermark, self._own.totals[each], end)
            if at < end:
                raise ChangedRowsError(
                    f"partition {each} of the source {self._source.name!r} has {at:,} rows, of which {end:,} were acked"
                )
            self.positions[each], self.totals[each] = at, total
