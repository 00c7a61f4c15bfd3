"""The interface of a source for spouts, the source of only the first rows of another, and the simplest one: lists in memory."""

from __future__ import annotations

from multilang.component.errors import ConnectorError
from multilang.helpers.plain import plain_rows
from spark_bridge.sources.values import in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.helpers.plain import Row


_COUNTED = 8192  # rows of one read when rows are counted


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
