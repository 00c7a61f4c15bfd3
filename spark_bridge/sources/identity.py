"""The identity of a source: its number of partitions, its fields, and a running checksum of the rows that were read.

A source is the same one as before if the rows up to where each partition was read give the same checksum as then; later
rows may be anything.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque

from multilang.component.errors import ChangedRowsError
from multilang.helpers.checksums import FORM, extended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from multilang.helpers.plain import Row
    from spark_bridge.sources.source import PartitionSource

_PIECE = 8192  # rows of one read for a comparison
_KEPT_ROWS = 16384  # rows that a spout keeps, over all partitions
_STEP = 512  # rows between two places whose checksum is kept when the rows are not


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
    """Return what is kept of a source beside checksums.

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
        about: The description of the source that is kept from now on.
        totals: Partition -> the checksum of its rows up to its mark, of partitions that were compared so far.
    """

    def __init__(self, source: PartitionSource, marks: Mapping[int, Mark], reader: str, anew: str) -> None:
        """Compare nothing yet.

        ``reader``: who read the rows before, for messages; ``anew``: what to give instead to begin anew.
        """
        self.about = described(source)
        self.totals: dict[int, int] = {}
        self._source = source
        self._reader = reader
        self._anew = anew
        self._left = deque(sorted(marks.items()))
        self._offset = self._total = 0

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
            f"{mark.watermark:,} rows {of}were read by {self._reader}, and to go on there would lose rows or give them twice. Give it "
            "the same rows, in the same partitions and the same order; what is new comes behind them. Rows without an order, "
            f"as a shuffle leaves them, are sorted, checkpointed or published first. Or begin anew, with {self._anew}"
        )


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
        while self._rows > _KEPT_ROWS and len(self._held) > 1:
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
        """Keep only checksums of these rows."""
        self._rows -= len(rows)
        places, totals = self._marks[partition]
        end = start + len(rows)
        while places[-1] < end:
            place = places[-1]
            part = rows[place - start : place - start + _STEP]
            places.append(place + len(part))
            totals.append(extended(totals[-1], part))
