"""By what a source is known again: how many partitions it has, its fields, and a running checksum of the rows that were read.

The checksum goes over the rows one by one, so that it is the same however they are divided into pieces. A source is the one
that was when the rows up to where each partition was read give the checksum that they gave then; what comes behind may be
anything.
"""

from __future__ import annotations

import marshal
from array import array
from bisect import bisect_right
from collections import deque
from zlib import crc32

from multilang.protocol.codec import dumps
from spark_bridge.sources.errors import ChangedRowsError
from spark_bridge.sources.plain import plain_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from spark_bridge.sources.source import PartitionSource, Row

FORM = 1  # of the checksum; another form can't be compared
_MARSHAL = 2  # its oldest form with binary floats: no references, so that equal rows have equal text
_HEAD = 5  # bytes of it before the first item of a list
_PIECE = 8192  # rows that are read at once to be compared
_KEPT_ROWS = 16384  # that a spout holds on to, in all
_STEP = 512  # rows between two places whose checksum is known when the rows are not held any more


def extended(total: int, rows: Sequence[Row]) -> int:
    """Return the checksum of what has the checksum ``total`` and of ``rows`` behind it; that of nothing is 0."""
    try:
        text = marshal.dumps(list(map(tuple, rows)), _MARSHAL)
    except ValueError:  # a value that is no plain one, such as an object of a subclass of str
        for row in plain_rows(rows):
            total = crc32(_text(row), total)
        return total
    return crc32(memoryview(text)[_HEAD:], total)


def _text(row: Row) -> bytes:
    """Return one row's part of the text, whatever rows are beside it."""
    try:
        return marshal.dumps([tuple(row)], _MARSHAL)[_HEAD:]
    except ValueError:
        return dumps(list(row)).encode("utf-8", "surrogatepass")


class Mark:
    """How far a partition was read, and what it was that was read.

    Attributes:
        watermark: How many of its rows are acked without a gap.
        total: Their checksum; None where it is not known, as in what older versions kept.
        source: What ``described`` says of the source; empty where that is not known.
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
    """Return what is kept of a source beside the checksums: for messages, but for ``identity`` and ``form``."""
    return {
        "form": FORM,
        "identity": source.identity,
        "name": source.name,
        "fields": list(source.fields),
        "partitions": source.partitions,
    }


class Comparison:
    """Looks whether a source has the rows that were read of it, piece by piece.

    Attributes:
        about: What is kept of the source from now on.
        totals: Partition -> the checksum of its rows up to its mark, as far as that was found.
    """

    def __init__(self, source: PartitionSource, marks: Mapping[int, Mark], reader: str, anew: str) -> None:
        """``reader``: who has read what was read, for messages; ``anew``: what to give instead to begin anew."""
        self.about = described(source)
        self.totals: dict[int, int] = {}
        self._source = source
        self._reader = reader
        self._anew = anew
        self._left = deque(sorted(marks.items()))
        self._offset = self._total = 0

    def finish(self) -> dict[int, int]:
        """Compare all that is left, and return ``totals``."""
        while self.step():
            pass
        return self.totals

    def step(self) -> bool:
        """Compare one more piece, and return whether there are more.

        Raises:
            ChangedRowsError: The source is not the one that was.
            SourceUnavailable: It can't be read for now; the next step tries again.
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
        if mark.total is not None and mark.source.get("form", FORM) == FORM and mark.total != self._total:
            self._refuse(partition, mark, "has other rows")
        self._found(partition, self._total)

    def _is_known(self, mark: Mark) -> bool:
        then, now = mark.source, self.about
        return (
            mark.total is not None
            and then.get("form", FORM) == FORM
            and then.get("identity") is not None
            and then["identity"] == now["identity"]
        )

    def _found(self, partition: int, total: int) -> None:
        self.totals[partition] = total
        self._left.popleft()
        self._offset = self._total = 0

    def _check(self, partition: int, mark: Mark) -> None:
        """Look at what can be seen without reading."""
        there = self.about["partitions"]
        if partition >= there:
            self._refuse(partition, mark, "is not there any more")
        if mark.source.get("partitions", 0) > there:  # nothing was read of those that are missing, and nothing would be
            self._refuse(there, mark, "is not there any more", partition)
        then, now = mark.source.get("fields"), self.about["fields"]
        if then is None or then == now:
            return
        # A field that was only renamed is where it was, and its values are.
        moved = [field for place, field in enumerate(now) if field in then and then.index(field) != place]
        if len(then) != len(now) or moved:
            self._refuse(partition, mark, f"has the fields {', '.join(now)}, and had {', '.join(then)}")

    def _refuse(self, partition: int, mark: Mark, what: str, read: int | None = None) -> NoReturn:
        """``read``: the partition of which rows were read, where it is another one."""
        count, now = mark.source.get("partitions"), self.about["partitions"]
        counts = f", which had {count} partitions and has {now}," if count not in (None, now) else ""
        of = "" if read is None else f"of partition {read} "
        raise ChangedRowsError(
            f"partition {partition} of the source {self.about['name']!r}{counts} {what}: it is not the one of which "
            f"{mark.watermark:,} rows {of}were read by {self._reader}, and to go on there would lose rows or give them twice. Give it "
            "the same rows, in the same partitions and the same order; what is new comes behind them. Rows without an order, "
            f"as a shuffle leaves them, are sorted, checkpointed or published first. Or begin anew, with {self._anew}"
        )


def carried_on(source: PartitionSource, partition: int, offset: int, total: int, end: int) -> tuple[int, int]:
    """Return ``end``, or where the partition ends before, and the checksum there; ``total`` is that at ``offset``."""
    while offset < end:
        rows = source.read(partition, offset, min(_PIECE, end - offset))
        if not rows:
            break
        total = extended(total, rows)
        offset += len(rows)
    return offset, total


class Sums:
    """The running checksums of the partitions that a spout reads, at any place between what is acked and what is read."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[array[int], array[int]]] = {}  # ascending places, and the checksum at each
        self._held: deque[tuple[int, int, Sequence[Row]]] = deque()  # partition, place, rows
        self._rows = 0

    def begin(self, partition: int, offset: int, total: int) -> None:
        """The partition is read from here on; ``total``: of the rows before."""
        self._marks[partition] = (array("q", [offset]), array("L", [total]))

    def read(self, partition: int, offset: int, rows: Sequence[Row]) -> None:
        """These came next."""
        self._held.append((partition, offset, rows))
        self._rows += len(rows)
        while self._rows > _KEPT_ROWS and len(self._held) > 1:
            self._sum_up(*self._held.popleft())

    def at(self, partition: int, offset: int) -> tuple[int, int]:
        """Return a place and the checksum of the rows before it: ``offset``, or one a little before it.

        Nothing before it will be asked for again.
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
        """These rows are not held any more."""
        self._rows -= len(rows)
        places, totals = self._marks[partition]
        end = start + len(rows)
        while places[-1] < end:
            place = places[-1]
            part = rows[place - start : place - start + _STEP]
            places.append(place + len(part))
            totals.append(extended(totals[-1], part))
