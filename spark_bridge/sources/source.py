"""A source of rows for spouts: its interface, its identity, the source of only the first rows of another, and lists in memory.

The identity is the number of partitions, the fields, and a running checksum of the rows that were read. A source is the same one
as before if the rows up to where each partition was read give the same checksum as then; later rows may be anything.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque

from multilang.component.errors import ChangedRowsError, ConnectorError
from multilang.helpers.checksums import FORM, extended
from multilang.helpers.plain import plain_rows
from spark_bridge.sources.values import in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, NoReturn

    from multilang.helpers.plain import Row

_COUNTED = 8192  # rows of one read when rows are counted
_PIECE = 8192  # rows of one read for a comparison
_HELD_ROWS = 16384  # rows that a spout holds, over all partitions
_HELD_PIECES = 8  # pieces that it holds, of which each has a bound in bytes
_STEP = 512  # rows between two places whose checksum is stored when the rows are not


class Progress:
    """The progress of a partition.

    Attributes:
        partition: The partition's number.
        watermark: All rows with smaller offsets are acked.
        done: True if there are no further rows.
        total: The checksum of the acked rows, or None where it is unknown.
    """

    __slots__ = ("done", "partition", "total", "watermark")

    def __init__(self, partition: int, watermark: int, done: bool, total: int | None = None) -> None:
        self.partition = partition
        self.watermark = watermark
        self.done = done
        self.total = total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Progress):
            return NotImplemented
        return (self.partition, self.watermark, self.done) == (other.partition, other.watermark, other.done)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Progress({self.partition}, {self.watermark}, done={self.done})"


class PartitionSource:
    """Rows in numbered partitions. Each row has an offset, and the same offset always gives the same row.

    Subclasses define ``name``, ``fields``, ``partitions`` and ``read``. ``read`` is called from one thread at a time;
    ``close`` may be called from another one, and ends a read.
    """

    waits: bool = True
    """True if ``read`` may take long, so that a spout reads ahead in a thread of its own."""

    asks: bool = False
    """True if the source gets its fields from a driver or a file system, which may not be available yet."""

    requires: Mapping[str, str] = {}
    """The packages that readers need: the module to import -> pip's requirement."""

    def configure(self, conf: Mapping[str, Any]) -> None:
        """Take from the topology's conf what the source needs in this task.

        Called before anything is asked of the source.

        Args:
            conf: The topology's conf.
        """

    def follow(self, group: str) -> None:
        """Take the name of the group that this task reads for, if the source keeps the progress of several groups.

        Args:
            group: The group's name.
        """

    @property
    def name(self) -> str:
        """The source's name in messages."""
        raise NotImplementedError

    @property
    def identity(self) -> str | None:
        """A text that two sources share only if they give the same rows. None: their rows are compared to find out."""
        return None

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a row's values."""
        raise NotImplementedError

    @property
    def partitions(self) -> int:
        """The number of partitions, which are numbered from 0."""
        raise NotImplementedError

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        """Return the rows from ``offset`` on.

        Args:
            partition: The partition's number.
            offset: The offset of the first row.
            limit: How many rows to return at most.

        Returns:
            At least one row, or none at the end of the partition. Values are those that JSON has, with lists and no
            tuples among
            them, because a checksum of the rows shows whether they are the same again.

        Raises:
            SourceUnavailable: The source can't be read at present; a retry may help.
            ConnectorError: The source can't be read; a retry would not help.
        """
        raise NotImplementedError

    def count(self, partition: int) -> int:
        """Return the number of rows that a partition has now.

        This method reads them to count them; sources may know it otherwise.

        Args:
            partition: The partition's number.
        """
        offset = 0
        while rows := self.read(partition, offset, _COUNTED):
            offset += len(rows)
        return offset

    def until(self, ends: Mapping[int, int]) -> PartitionSource:
        """Return a source with the same rows, in which each partition ends earlier.

        Args:
            ends: Partition -> the offset behind its last row.
        """
        return Until(self, ends)

    def soon(self, partition: int, offset: int) -> None:
        """Prepare the next partition that will be read, if there is something to prepare. Must not wait.

        Args:
            partition: The partition's number.
            offset: The offset of the first row that will be read.
        """

    def report(self, progress: Sequence[Progress]) -> None:
        """Take how far partitions are acked. Sources that keep the progress themselves override it.

        Args:
            progress: The progress of some partitions.
        """

    def keep_in_touch(self) -> None:
        """Check the connection.

        Called now and then while nothing is read; a source whose driver was started anew learns of it here.
        """

    def progress(self) -> dict[int, int]:
        """Return partition -> watermark of the group that is followed, as far as the source itself keeps the
        progress.
        """
        return {}

    def close(self) -> None:
        """Free what the source holds. It opens again when it is read again."""


class Until(PartitionSource):
    """The rows of ``source`` before ``ends``: partition -> the offset behind its last row."""

    def __init__(self, source: PartitionSource, ends: Mapping[int, int]) -> None:
        self._source = source
        self._ends = dict(ends)
        self.waits = source.waits
        self.asks = source.asks
        missing = [each for each in range(source.partitions) if each not in ends]
        if missing or len(ends) > source.partitions:
            raise ConnectorError(
                f"the ends of source {source.name!r} are those of its {source.partitions} partitions, from 0 on: "
                f"{f'partition {missing[0]} has none' if missing else f'{sorted(ends)} are more'}"
            )

    def configure(self, conf: Mapping[str, Any]) -> None:
        self._source.configure(conf)

    def follow(self, group: str) -> None:
        self._source.follow(group)

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def identity(self) -> str | None:
        return self._source.identity  # its rows are the same, there are only fewer

    @property
    def fields(self) -> tuple[str, ...]:
        return self._source.fields

    @property
    def partitions(self) -> int:
        return self._source.partitions

    def count(self, partition: int) -> int:
        return self._ends[partition]

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        limit = min(limit, self._ends[partition] - offset)
        return self._source.read(partition, offset, limit) if limit > 0 else ()

    def close(self) -> None:
        self._source.close()


class ListSource(PartitionSource):
    """A source of lists in memory.

    Args:
        partitions: For each partition its rows. A row is a list of values, or a single value where there is one field.
        fields: The names of a row's values.
        name: The source's name in messages.

    Raises:
        ConnectorError: A row has another number of values than there are fields.
    """

    waits = False

    def __init__(
        self, partitions: Iterable[Sequence[Any]], fields: Sequence[str] = ("value",), name: str = "list"
    ) -> None:
        self._fields = tuple(fields)
        self._name = name
        width = len(self._fields)
        self._partitions = [
            plain_rows([in_order(row, self._fields) if isinstance(row, list | tuple) else [row] for row in partition])
            for partition in partitions
        ]
        for number, partition in enumerate(self._partitions):
            for offset, row in enumerate(partition):
                if len(row) != width:
                    raise ConnectorError(
                        f"row {offset} of partition {number} has {len(row)} values for {width} fields {list(fields)!r}"
                    )

    @property
    def name(self) -> str:
        return self._name

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    @property
    def partitions(self) -> int:
        return len(self._partitions)

    def __deepcopy__(self, memo: object) -> ListSource:
        return self  # nothing in it changes

    def count(self, partition: int) -> int:
        return len(self._partitions[partition])

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        return self._partitions[partition][offset : offset + limit]


class Mark:
    """The place up to which a partition was read, and the identity of the rows before it.

    Attributes:
        watermark: How many of its rows are acked without a gap.
        total: Their checksum; None where it is unknown.
        source: What ``described`` returned for the source; empty where that is unknown.
    """

    __slots__ = ("source", "total", "watermark")

    def __init__(self, watermark: int, total: int | None = None, source: Mapping[str, Any] | None = None) -> None:
        self.watermark = watermark
        self.total = total
        self.source: dict[str, Any] = dict(source or {})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mark):
            return NotImplemented
        return (self.watermark, self.total, self.source) == (other.watermark, other.total, other.source)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Mark({self.watermark}, {self.total}, {self.source})"


def described(source: PartitionSource) -> dict[str, Any]:
    """Return what is stored of a source beside checksums.

    ``identity`` and ``form`` are compared; the rest is for messages.
    """
    return {
        "form": FORM,
        "identity": source.identity,
        "name": source.name,
        "fields": list(source.fields),
        "partitions": source.partitions,
    }


class Comparison:
    """Compares a source with the rows that were read of it before, piece by piece.

    Attributes:
        about: The description of the source to store from now on.
        totals: Partition -> the checksum of its rows up to its mark, of partitions that were compared so far.
    """

    def __init__(self, source: PartitionSource, marks: Mapping[int, Mark], reader: str, anew: str) -> None:
        """Compare nothing yet.

        ``reader``: the reader of the rows before, for messages; ``anew``: what to give instead to begin again.
        """
        self.about = described(source)
        self.totals: dict[int, int] = {}
        self._source = source
        self._reader = reader
        self._anew = anew
        self._left = deque(sorted(marks.items()))
        self._offset = self._total = 0
        unlike = [each for each, mark in sorted(marks.items()) if mark.watermark and not _is_comparable(mark)]
        if unlike:
            import logging  # which a spout's process need not load otherwise

            logging.getLogger(__name__).warning(
                "source %r: the rows that were read before by %s can't be compared in partitions %s, since another version of storm-multilang "
                "stored their checksum: if the source has changed since, rows are lost or read twice",
                source.name,
                reader,
                ", ".join(map(str, unlike)),
            )

    def finish(self) -> dict[int, int]:
        """Compare everything that is left, and return ``totals``."""
        while self.step():
            pass
        return self.totals

    def step(self) -> bool:
        """Compare one more piece, and return whether there are more.

        Raises:
            ChangedRowsError: The source is another one than before.
            SourceUnavailable: It can't be read at present; the next step tries again.
        """
        if not self._left:
            return False
        partition, mark = self._left[0]
        if self._offset == 0 and mark.watermark:
            self._check(partition, mark)
        if mark.watermark == 0:
            self._found(partition, 0)
        elif self._is_known(mark):
            assert mark.total is not None
            self._found(partition, mark.total)
        else:
            self._read(partition, mark)
        return bool(self._left)

    def _read(self, partition: int, mark: Mark) -> None:
        rows = self._source.read(partition, self._offset, min(_PIECE, mark.watermark - self._offset))
        if not rows:
            self._refuse(partition, mark, f"ends at row {self._offset:,}")
        self._total = extended(self._total, rows)
        self._offset += len(rows)
        if self._offset < mark.watermark:
            return
        if mark.total is not None and _is_comparable(mark) and mark.total != self._total:
            self._refuse(partition, mark, "has other rows")
        self._found(partition, self._total)

    def _is_known(self, mark: Mark) -> bool:
        then, now = mark.source, self.about
        return (
            mark.total is not None
            and _is_comparable(mark)
            and then.get("identity") is not None
            and then["identity"] == now["identity"]
        )

    def _found(self, partition: int, total: int) -> None:
        self.totals[partition] = total
        self._left.popleft()
        self._offset = self._total = 0

    def _check(self, partition: int, mark: Mark) -> None:
        """Check what can be checked without reading."""
        there = self.about["partitions"]
        if partition >= there:
            self._refuse(partition, mark, "is not there any more")
        if mark.source.get("partitions", 0) > there:  # partitions are missing that were never read, and never would be
            self._refuse(there, mark, "is not there any more", partition)
        then, now = mark.source.get("fields"), self.about["fields"]
        if then is None or then == now:
            return
        # A field that is at its old place with another name was only renamed, and has the same values.
        moved = [field for place, field in enumerate(now) if field in then and then.index(field) != place]
        if len(then) != len(now) or moved:
            self._refuse(partition, mark, f"has the fields {', '.join(now)}, and had {', '.join(then)}")

    def _refuse(self, partition: int, mark: Mark, what: str, read: int | None = None) -> NoReturn:
        """Raise ChangedRowsError. ``read``: the partition whose rows were read, if it is not ``partition``."""
        count, now = mark.source.get("partitions"), self.about["partitions"]
        counts = f", which had {count} partitions and has {now}," if count not in (None, now) else ""
        of = "" if read is None else f"of partition {read} "
        raise ChangedRowsError(
            f"partition {partition} of the source {self.about['name']!r}{counts} {what}: it is not the one of which "
            f"{mark.watermark:,} rows {of}were read by {self._reader}, and to continue there would lose rows or give them twice. Give it "
            "the same rows, in the same partitions and the same order; new rows follow behind them. Rows without an order, "
            f"as a shuffle leaves them, are sorted, checkpointed or published first. Or begin again, with {self._anew}"
        )


def _is_comparable(mark: Mark) -> bool:
    """Return whether a mark's checksum is made as those of now."""
    form: int = mark.source.get("form", FORM)
    return form == FORM


def carried_on(source: PartitionSource, partition: int, offset: int, total: int, end: int) -> tuple[int, int]:
    """Return ``end``, or an earlier end of the partition, and the checksum there.

    ``total`` is the one at ``offset``.
    """
    while offset < end:
        rows = source.read(partition, offset, min(_PIECE, end - offset))
        if not rows:
            break
        total = extended(total, rows)
        offset += len(rows)
    return offset, total


class Sums:
    """The running checksums of a spout's partitions, at any place between the acked rows and the read ones."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[array[int], array[int]]] = {}  # ascending places, and the checksum at each
        self._held: deque[tuple[int, int, Sequence[Row]]] = deque()  # partition, place, rows
        self._rows = 0

    def begin(self, partition: int, offset: int, total: int) -> None:
        """Begin a partition at this offset; ``total`` is the checksum of the rows before."""
        self._marks[partition] = (array("q", [offset]), array("L", [total]))

    def read(self, partition: int, offset: int, rows: Sequence[Row]) -> None:
        """Add the next rows of the partition."""
        self._held.append((partition, offset, rows))
        self._rows += len(rows)
        while (self._rows > _HELD_ROWS or len(self._held) > _HELD_PIECES) and len(self._held) > 1:
            self._sum_up(*self._held.popleft())

    def at(self, partition: int, offset: int) -> tuple[int, int]:
        """Return a place and the checksum of the rows before it: ``offset``, or a place a little before it.

        No earlier place may be asked for afterwards.
        """
        places, totals = self._marks[partition]
        index = bisect_right(places, offset) - 1
        place, total = places[index], totals[index]
        for each, start, rows in self._held:
            if each == partition and start <= place < start + len(rows):
                part = rows[place - start : offset - start]
                total = extended(total, part)
                place += len(part)
            if place == offset:
                break
        if place > places[index]:
            places.insert(index + 1, place)
            totals.insert(index + 1, total)
            index += 1
        del places[:index], totals[:index]
        while self._held and self._held[0][0] == partition and self._held[0][1] + len(self._held[0][2]) <= place:
            self._rows -= len(self._held.popleft()[2])
        return place, total

    def _sum_up(self, partition: int, start: int, rows: Sequence[Row]) -> None:
        """Replace these rows by their checksums."""
        self._rows -= len(rows)
        places, totals = self._marks[partition]
        end = start + len(rows)
        while places[-1] < end:
            place = places[-1]
            part = rows[place - start : place - start + _STEP]
            places.append(place + len(part))
            totals.append(extended(totals[-1], part))
