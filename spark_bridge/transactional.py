"""Transactional spouts over a partition source: a batch is a range of offsets of each partition.

A position is an offset, the checksum of the rows before it, and what identifies the source. So a batch that is emitted
again has exactly the same rows or none, and no batch follows rows that have changed.
"""

from __future__ import annotations

from functools import cached_property, partial

from multilang.component.errors import ChangedRowsError, ConfigError, ConnectorError, SourceUnavailable
from multilang.helpers.checksums import extended
from multilang.store.settings import owner_of
from multilang.transactional.names import ID
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceSpout,
    TransactionalSourceSpout,
)
from spark_bridge.sources.source import Comparison, Mark, Progress, described
from spark_bridge.spout import OverSource, check_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from multilang.component.streams import Stream
    from multilang.helpers.plain import Row
    from spark_bridge.sources.source import PartitionSource

    T = TypeVar("T")

_PIECE = 4096  # rows of one read
_NOTED = 100  # offsets of a partition whose checksum is stored, for replayed batches


class _SourcePartitions(OverSource, SourceSpout):
    """A spout over a partition source that makes transactions; see TransactionalPartitionSpout for the arguments."""

    def __init__(
        self,
        source: PartitionSource | str | None = None,
        batch_size: int = 1000,
        *,
        fields: Sequence[str] | None = None,
    ) -> None:
        OverSource.__init__(self, source)
        SourceSpout.__init__(self, fields or (), batch_size)

    def declared_streams(self) -> dict[str, Stream]:
        if not self.fields:
            self.fields = self._fields_of_source()
        else:
            self._check_declared(self.fields)
        return SourceSpout.declared_streams(self)

    def check_start(self, conf: dict[str, Any]) -> None:
        """Ask the source for its fields."""
        try:
            source = self._open(conf)
            PartitionRows(source, self.fields).num_partitions()
            if source is not self._given:
                source.close()
        except ConnectorError as problem:
            raise ConfigError(str(problem)) from problem

    def open(self, conf: Mapping[str, Any]) -> PartitionRows:
        source = self._open(dict(conf))
        # With the run, as two stores may each have transactions of the same id. Each run reports anew what is committed.
        source.follow(f"{owner_of(conf)[0]}/{conf.get(ID)}")
        return PartitionRows(source, self.fields)


class TransactionalPartitionSpout(_SourcePartitions, TransactionalSourceSpout):
    """A transactional spout over the partitions of a source that gives the same rows in each replay.

    Such sources are RDDSource, and those that ``serve`` and ``publish`` make. The stream has the field ``tx`` and the
    fields of the rows. A source that stores progress itself, as a served one does, gets reports of committed rows.

    Args:
        source: A source, or its URL; None: the conf has the URL as ``multilang.source``.
        batch_size: The number of rows of each partition in one batch.
        fields: The names of a row's values; None: those of the source.
    """


class OpaqueTransactionalPartitionSpout(_SourcePartitions, OpaqueTransactionalSourceSpout):
    """A TransactionalPartitionSpout that continues with the other partitions when one of them can't be read."""


class PartitionRows(Source):
    """A partition source as transactions read it."""

    compares_itself = True  # the checksum of all rows before is in each position

    def __init__(self, source: PartitionSource, fields: Sequence[str]) -> None:
        self._source = source
        self._fields = list(fields)
        self._pieces: dict[int, tuple[int, Sequence[Row]]] = {}  # the rows of each partition that were read last
        self._ends: dict[int, int] = {}
        self._reported: dict[int, tuple[int, bool]] = {}
        self._totals: dict[
            int, dict[int, int]
        ] = {}  # partition -> offset -> checksum, where the rows before were compared

    @cached_property
    def _about(self) -> dict[str, Any]:
        return self._asked(lambda: described(self._source))

    def num_partitions(self) -> int:
        return self._asked(self._checked)

    def first(self, partition: int) -> dict[str, Any]:
        return {"at": 0, "total": 0}

    def resume(self, positions: Mapping[int, Any]) -> None:
        # A source that stores progress learns of the group here, and waits for it though nothing is committed yet.
        self._asked(self._source.progress)
        for partition, position in positions.items():
            self._total(partition, position)

    def read(self, partition: int, position: Any, most: int) -> tuple[list[Row], Any]:
        total = self._total(partition, position)
        at = _offset(position)
        rows = self._rows(partition, at, at + most)
        if not rows:
            return rows, position
        at, total = at + len(rows), extended(total, rows)
        self._note(partition, at, total)
        return rows, {"at": at, "total": total, "source": self._about}

    def read_again(self, partition: int, start: Any, end: Any) -> list[Row]:
        first, last = _offset(start), _offset(end)
        total = self._total(partition, start)
        rows = self._rows(partition, first, last)
        if len(rows) == last - first and extended(total, rows) != end["total"]:
            raise SourceUnavailable(
                f"rows {first} to {last} of partition {partition} of {self._asked(lambda: self._source.name)!r} are not "
                "what they were when they were emitted: a source must give the same rows until they are committed. Give "
                "random numbers a seed, sort what a shuffle left in any order, and publish anew under another URL"
            )
        return rows

    def has_more(self, partition: int, position: Any) -> bool:
        offset = _offset(position)
        more = bool(self._asked(lambda: self._source.read(partition, offset, 1)))
        if not more:
            self._ends[partition] = offset
        return more

    def committed(self, positions: Mapping[int, Any]) -> None:
        """Report the committed offset of each partition to the source, as PartitionSpout reports the acked ones."""
        marks = {each: _offset(positions.get(each, {"at": 0})) for each in range(self.num_partitions())}
        now = {each: (mark, self._ends.get(each) == mark) for each, mark in marks.items()}
        news = {each: known for each, known in now.items() if known != self._reported.get(each, (0, False))}
        if news:
            self._asked(lambda: self._source.report([Progress(each, *known) for each, known in news.items()]))
            self._reported.update(news)

    def close(self) -> None:
        self._source.close()

    def _total(self, partition: int, position: Any) -> int:
        """Return the checksum at a position, after the rows before it were found unchanged."""
        at = _offset(position)
        if not at:
            return 0
        noted = self._totals.get(partition, {}).get(at)
        if noted is not None and noted == position["total"]:
            return noted
        mark = {partition: Mark(at, position["total"], position["source"])}
        found = self._asked(
            lambda: Comparison(self._source, mark, "the transactions of this topology", "another id").finish()
        )
        self._note(partition, at, found[partition])
        return found[partition]

    def _note(self, partition: int, at: int, total: int) -> None:
        noted = self._totals.setdefault(partition, {})
        noted[at] = total
        while len(noted) > _NOTED:
            del noted[next(iter(noted))]

    def _checked(self) -> int:
        check_fields(self._source, self._fields)
        return self._source.partitions

    def _rows(self, partition: int, start: int, end: int) -> list[Row]:
        """Return the rows between two offsets, or as many of them as there are."""
        found: list[Row] = []
        while start < end:
            first, rows = self._pieces.get(partition, (0, ()))
            if not first <= start < first + len(rows):
                first, rows = start, self._asked(partial(self._source.read, partition, start, _PIECE))
                if not rows:
                    break
                self._pieces[partition] = (first, rows)
            found += rows[start - first : end - first]
            start = min(end, first + len(rows))
        return found

    def _asked(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, and turn the source's errors into those of transactions."""
        try:
            return call()
        except ChangedRowsError:
            raise  # no later try would help
        except ConnectorError as problem:
            raise SourceUnavailable(str(problem)) from problem


def _offset(position: Any) -> int:
    return position["at"]  # type: ignore[no-any-return]
