"""The history of a partition: its identity and checksums of its rows, so that another source is not taken for it.

A position fits only the source that it belongs to. To resume there in another one, or in one with other rows before it,
would lose rows or read them twice, unnoticed. So the metadata of each batch has a history: the partition's identity
(``Source.identity``), and blocks of rows with their place, number and checksum. Each task compares it with its source before
it resumes a partition, and the coordinator compares all of them when it has claimed the transactions. Rows that are added
behind are no difference.

The blocks are the last batch, and those batches whose number is a power of 8. The checksum runs through all rows. So
up to ``WHOLE`` rows are compared whole, and of more rows the blocks. Of a source that removes rows in time (``Source.forgets``)
the remaining rows are compared: the last ``TAIL`` rows are known one by one, so that each row that is left must be
one of them, in their order.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from struct import pack, unpack

from multilang.component.errors import ChangedRowsError
from multilang.helpers.checksums import extended
from multilang.protocol.codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from multilang.transactional.spouts.interface import Position, Rows, Source

KEY = "history"
"""The name of the history in the metadata of a batch. Its value is a text of JSON, which most readers of the metadata
need not parse."""

WHOLE = 16_384  # up to so many rows of a partition are read again when it is resumed
_STEP = 8  # each stored block has a number so many times that of the previous one
TAIL = 256  # rows at the end that are known one by one, for sources that forget


class _Block:
    """Rows of one batch: where they are, how many, and the running checksum before and after them."""

    __slots__ = ("after", "before", "end", "number", "rows", "start")

    def __init__(self, number: int, start: Position, end: Position, rows: int, before: int, after: int) -> None:
        self.number = number
        self.start = start
        self.end = end
        self.rows = rows
        self.before = before
        self.after = after

    def to_json(self) -> list[Any]:
        return [self.number, self.start, self.end, self.rows, self.before, self.after]


class History:
    """The history of one source's partitions, as one task compares and continues it.

    Args:
        source: The source.
        fields: The names of a row's values.
    """

    def __init__(self, source: Source, fields: Sequence[str]) -> None:
        self._source = source
        self._fields = list(fields)
        self._stamps: dict[int, Any] = {}  # of the partitions that were compared
        self._about: dict[int, dict[str, Any]] = {}
        self._last: dict[int, tuple[str, dict[str, Any]]] = {}  # by partition, a text and its content

    def compare(self, partition: int, metadata: Mapping[str, Any] | None) -> None:
        """Check that a partition is the one that was read; nothing is read of one that was compared before.

        Args:
            partition: The partition's number.
            metadata: The metadata of its last batch; None: there was none.

        Raises:
            ChangedRowsError: It is another one.
            SourceUnavailable: That is unknown now.
        """
        if self._source.compares_itself:
            return
        stamp = self._source.stamp(partition)
        if partition in self._stamps and self._stamps[partition] == stamp:
            return
        if metadata is not None:
            found = self._of(partition, metadata)
            if found["rows"]:
                self._compare(partition, found)
        self._stamps[partition] = stamp

    def after(
        self, partition: int, last: Mapping[str, Any] | None, start: Position, end: Position, rows: Rows
    ) -> dict[str, Any]:
        """Return the addition to the metadata of a batch.

        Args:
            partition: The partition's number.
            last: The metadata of the batch before; None: there was none.
            start: The position at which the batch begins.
            end: The position after its last row.
            rows: Its rows.
        """
        if self._source.compares_itself:
            return {}
        found: Mapping[str, Any] = {"rows": 0, "blocks": []}
        if last is not None:
            found = self._of(partition, last)
            if not rows:
                return {KEY: self._last[partition][0]}
        blocks = found["blocks"]
        if rows:
            number, before = (blocks[-1][0] + 1, blocks[-1][5]) if blocks else (1, 0)
            new = _Block(number, start, end, len(rows), before, extended(before, rows))
            blocks = [*blocks[:-1], *(blocks[-1:] if _is_stored(number - 1) else ()), new.to_json()]
        history = {
            "source": self._known(partition),
            "rows": found["rows"] + len(rows),
            "blocks": blocks,
        }
        if self._source.forgets:
            history["tail"] = _tail_after(found.get("tail"), rows)
        text = dumps(history)
        self._last[partition] = text, history
        return {KEY: text}

    def is_same(self, partition: int, metadata: Mapping[str, Any], rows: Rows) -> bool:
        """Return whether the rows are those of a batch that had some.

        Args:
            partition: The partition's number.
            metadata: The metadata of the batch.
            rows: The rows that are there now.
        """
        if self._source.compares_itself:
            return True
        block = _Block(*self._of(partition, metadata)["blocks"][-1])
        return extended(block.before, rows) == block.after

    def _of(self, partition: int, metadata: Any) -> dict[str, Any]:
        """Return the history in the metadata of a batch."""
        text = metadata.get(KEY) if isinstance(metadata, dict) else None
        if text is None:
            raise ChangedRowsError(
                f"the position of partition {partition}, {metadata!r}, is that of a spout of another kind, and {self._source.describe()} can't "
                "resume from it: give the topology the spout that it had; or begin anew: give TransactionalTopologyBuilder another id, "
                "and its maps other names"
            )
        last = self._last.get(partition)
        if last is not None and last[0] == text:
            return last[1]
        found: dict[str, Any] = loads(text)
        self._last[partition] = text, found
        return found

    def _compare(self, partition: int, found: Mapping[str, Any]) -> None:
        there = self._source.num_partitions()
        read = f"{found['rows']:,} rows"
        if partition >= there:
            self._refuse(partition, read, f"is not there any more ({there} partitions are)", found)
        self._compare_about(partition, read, found)
        blocks = [_Block(*each) for each in found["blocks"]]
        first, last = blocks[0], blocks[-1]
        if found["rows"] <= WHOLE:
            blocks = [_Block(1, first.start, last.end, found["rows"], 0, last.after)]
        for block in blocks:
            rows = self._source.left(partition, block.start, block.end)
            if rows is not None and not self._is_block(
                block, rows, _sums(found.get("tail")) if block.end == last.end else None
            ):
                what = (
                    "are others"
                    if len(rows) == block.rows
                    else f"are {len(rows):,} now, where {block.rows:,} were read"
                )
                self._refuse(partition, read, f"has other rows: those from {block.start} to {block.end} {what}", found)

    def _is_block(self, block: _Block, rows: Rows, tail: Sequence[int] | None) -> bool:
        if len(rows) == block.rows:
            return extended(block.before, rows) == block.after
        if len(rows) > block.rows or not self._source.forgets:
            return False
        return tail is None or _may_be_left(rows, block.rows, tail)

    def _compare_about(self, partition: int, read: str, found: Mapping[str, Any]) -> None:
        then, now = found["source"], self._known(partition)
        for key, value in then.items():
            if key not in now:
                self._refuse(partition, read, f"is one of another kind: it has no {key}, which was {value!r}", found)
            elif key != "fields" and now[key] != value and None not in (now[key], value):
                self._refuse(partition, read, f"has {key} {now[key]!r}, and had {value!r}", found)
        before, fields = then["fields"], now["fields"]
        # A field that is at its old place with another name was only renamed, and has the same values.
        moved = [field for place, field in enumerate(fields) if field in before and before.index(field) != place]
        if len(before) != len(fields) or moved:
            self._refuse(partition, read, f"has the fields {', '.join(fields)}, and had {', '.join(before)}", found)

    def _known(self, partition: int) -> dict[str, Any]:
        about = self._about.get(partition)
        if about is None:
            about = self._about[partition] = {**self._source.identity(partition), "fields": self._fields}
        return about

    def _refuse(self, partition: int, read: str, what: str, found: Mapping[str, Any]) -> NoReturn:
        names = [f"{key} {value!r}" for key, value in found["source"].items() if key != "fields" and value is not None]
        of = f" ({', '.join(names)})" if names else ""
        raise ChangedRowsError(
            f"partition {partition} of the spout's source, {self._source.describe()}, {what}. It is not the one of which {read} were read by these "
            f"transactions{of}, and to resume there would lose rows or emit them twice. Give the spout the source that it had, with "
            "the same rows in the same partitions and the same order; what is new comes behind them. Or begin anew: give "
            "TransactionalTopologyBuilder another id, and its maps other names"
        )


def _is_stored(number: int) -> bool:
    """Return whether a block stays stored when later ones follow: whether its number is a power of 8."""
    while number > 1 and number % _STEP == 0:
        number //= _STEP
    return number == 1


def _tail_after(tail: Any, rows: Rows) -> str:
    """Return the checksums of the last rows, one by one, as text: four bytes each.

    Args:
        tail: That of the rows before.
        rows: The rows that follow.
    """
    sums = [extended(0, [row]) for row in rows[-TAIL:]]
    before = _sums(tail)[-(TAIL - len(sums)) :] if len(sums) < TAIL else []
    sums = [*before, *sums]
    return b64encode(pack(f"<{len(sums)}I", *sums)).decode()


def _sums(tail: Any) -> Sequence[int]:
    """Return the checksums in a text of ``_tail_after``."""
    found = b64decode(tail or "")
    return unpack(f"<{len(found) // 4}I", found)


def _may_be_left(rows: Rows, were: int, tail: Sequence[int]) -> bool:
    """Return whether rows may be what is left of a block that had ``were``, the last of which are known one by one."""
    known = list(tail[-were:])
    unknown = were - len(known)
    left = [extended(0, [row]) for row in rows]
    while left and known:
        if left[-1] == known.pop():
            left.pop()
    return len(left) <= unknown
