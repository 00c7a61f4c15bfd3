"""Transactional spouts over a partition source: what is in a batch is a range of offsets of each partition.

A position is an offset and a checksum of the rows that were read up to it, so that a batch that is emitted again has the
very same rows, or none.
"""

from __future__ import annotations

from functools import partial
from zlib import crc32

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceError,
    SourceSpout,
    TransactionalSourceSpout,
)
from spark_bridge.sources import errors
from spark_bridge.sources.source import Progress
from spark_bridge.spout import OverSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from multilang.component.streams import Stream
    from spark_bridge.sources.source import PartitionSource, Row

    T = TypeVar("T")

_PIECE = 4096  # rows that are asked for at once


class _Partitions(OverSource, SourceSpout):
    """``source`` and ``fields``: see OverSource; ``take``: rows of a partition in one batch."""

    def __init__(
        self, source: PartitionSource | str | None = None, take: int = 1000, *, fields: Sequence[str] | None = None
    ) -> None:
        OverSource.__init__(self, source)
        SourceSpout.__init__(self, fields or (), take)

    def declared_streams(self) -> dict[str, Stream]:
        if not self.fields:
            self.fields = self._fields_of_source()
        return SourceSpout.declared_streams(self)

    def check_start(self, conf: dict[str, Any]) -> None:
        """Ask the source for its fields."""
        try:
            source = self._open(conf)
            PartitionRows(source, self.fields).num_partitions()
            if source is not self._given:
                source.close()
        except (errors.SourceError, SourceError) as problem:
            raise ConfigError(str(problem)) from problem

    def open(self, conf: Mapping[str, Any]) -> PartitionRows:
        return PartitionRows(self._open(dict(conf)), self.fields)


class TransactionalPartitionSpout(_Partitions, TransactionalSourceSpout):
    """Rows of a source's partitions, the same in each replay: those of RDDSource, ``serve`` and ``publish``.

    ``source``: a source, or the URL of one; None: the URL is in the conf, ``multilang.source``. ``take``: rows of each
    partition in one batch. ``fields``: the names of a row's values; the source's own if None. The stream has ``tx`` and
    those. A source that keeps account, as a served one does, is told what is committed.
    """


class OpaqueTransactionalPartitionSpout(_Partitions, OpaqueTransactionalSourceSpout):
    """As TransactionalPartitionSpout; a partition that can't be read holds up none of the others."""


class PartitionRows(Source):
    """A partition source as transactions read it."""

    def __init__(self, source: PartitionSource, fields: Sequence[str]) -> None:
        self._source = source
        self._fields = list(fields)
        self._pieces: dict[int, tuple[int, Sequence[Row]]] = {}  # the last that was read of each partition
        self._ends: dict[int, int] = {}
        self._told: dict[int, tuple[int, bool]] = {}

    def num_partitions(self) -> int:
        return self._asked(self._checked)

    def first(self, partition: int) -> list[int]:
        return [0, 0]

    def read(self, partition: int, position: list[int], most: int) -> tuple[list[Row], list[int]]:
        rows = self._rows(partition, position[0], position[0] + most)
        return rows, [position[0] + len(rows), _sum(rows)] if rows else position

    def read_again(self, partition: int, start: list[int], end: list[int]) -> list[Row]:
        rows = self._rows(partition, start[0], end[0])
        if len(rows) == end[0] - start[0] and _sum(rows) != end[1]:
            raise SourceError(
                f"rows {start[0]} to {end[0]} of partition {partition} of {self._asked(lambda: self._source.name)!r} are not "
                "what they were when they were emitted: a source must give the same rows until they are committed. Give "
                "random numbers a seed, sort what a shuffle left in any order, and publish anew under another URL"
            )
        return rows

    def has_more(self, partition: int, position: list[int]) -> bool:
        offset = position[0]
        more = bool(self._asked(lambda: self._source.read(partition, offset, 1)))
        if not more:
            self._ends[partition] = offset
        return more

    def committed(self, positions: Mapping[int, list[int]]) -> None:
        """Tell the source, as PartitionSpout does what is acked."""
        marks = {each: positions.get(each, (0,))[0] for each in range(self.num_partitions())}
        now = {each: (mark, self._ends.get(each) == mark) for each, mark in marks.items()}
        news = {each: known for each, known in now.items() if known != self._told.get(each, (0, False))}
        if news:
            self._asked(lambda: self._source.report([Progress(each, *known) for each, known in news.items()]))
            self._told.update(news)

    def close(self) -> None:
        self._source.close()

    def _checked(self) -> int:
        if list(self._source.fields) != self._fields:
            raise SourceError(
                f"the source has the fields {list(self._source.fields)!r}, the spout declares {self._fields!r}"
            )
        return self._source.partitions

    def _rows(self, partition: int, start: int, end: int) -> list[Row]:
        """Those between two offsets, or as many as there are."""
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
        """What the source says; what is wrong with it in the words of transactions."""
        try:
            return call()
        except errors.SourceError as problem:
            raise SourceError(str(problem)) from problem


def _sum(rows: Sequence[Row]) -> int:
    return crc32(dumps(rows).encode())
