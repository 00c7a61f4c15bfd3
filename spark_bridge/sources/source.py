"""What a spout needs of a source, and the simplest one."""

from __future__ import annotations

from spark_bridge.sources.errors import SourceError
from spark_bridge.sources.plain import plain_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    Row: TypeAlias = Sequence[Any]

_COUNTED = 8192  # rows at once


class Progress:
    """How far a partition is: all rows below ``watermark`` are acked; ``done``: and there are no more.

    ``total``: the checksum of those rows, where it is known.
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
    """Rows in numbered partitions, each row at an offset, the same row for the same offset always.

    ``read`` is called from one thread at a time; ``close`` may come from another and ends a read.
    """

    waits: bool = True
    """Whether ``read`` may take long, so that a spout reads ahead in a thread of its own."""

    asks: bool = False
    """Whether its fields are asked of somebody else, a driver or a file system, who need not be there yet."""

    requires: Mapping[str, str] = {}
    """What readers need: the module that is imported, and pip's line for it."""

    def configure(self, conf: Mapping[str, Any]) -> None:
        """Take from the topology's conf what the source needs where this task runs; called before anything is asked of it."""

    def follow(self, group: str) -> None:
        """Take the name of the group that this task reads for, where the source keeps account of several groups' progress."""

    @property
    def name(self) -> str:
        """What messages call it."""
        raise NotImplementedError

    @property
    def former_name(self) -> str:
        """What older versions kept its progress under."""
        return self.name

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
        """How many partitions there are; they are numbered from 0."""
        raise NotImplementedError

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        """The rows from ``offset`` on: at least one and at most ``limit``, none at the end of the partition.

        Values are what JSON has, a list and no tuple among them: a row is known again by its checksum. Raises SourceUnavailable for what may pass, SourceError for what won't.
        """
        raise NotImplementedError

    def count(self, partition: int) -> int:
        """How many rows a partition has now. Unless a source knows better, they are read to be counted."""
        offset = 0
        while rows := self.read(partition, offset, _COUNTED):
            offset += len(rows)
        return offset

    def until(self, ends: Mapping[int, int]) -> PartitionSource:
        """The same rows, but each partition ends where ``ends`` says: partition -> the offset behind its last row."""
        from spark_bridge.sources.until import Until

        return Until(self, ends)

    def soon(self, partition: int, offset: int) -> None:
        """The next partition that will be read; a source that has to prepare it may begin. Must not wait."""

    def report(self, progress: Sequence[Progress]) -> None:
        """Tell the source how far its partitions are acked; those that keep account override it."""

    def keep_in_touch(self) -> None:
        """Called now and then while there is nothing else to do; those that may be started anew learn of it here."""

    def progress(self) -> dict[int, int]:
        """Partition -> watermark of the group that is followed, as far as the source itself keeps account of it."""
        return {}

    def close(self) -> None:
        """Free what the source holds; it opens again when it is read again."""


class ListSource(PartitionSource):
    """Lists in memory: a row is a list of values, or a single value where there is one field."""

    waits = False

    def __init__(
        self, partitions: Iterable[Sequence[Any]], fields: Sequence[str] = ("value",), name: str = "list"
    ) -> None:
        self._fields = tuple(fields)
        self._name = name
        width = len(self._fields)
        self._partitions = [
            plain_rows([row if isinstance(row, list | tuple) else [row] for row in partition])
            for partition in partitions
        ]
        for number, partition in enumerate(self._partitions):
            for offset, row in enumerate(partition):
                if len(row) != width:
                    raise SourceError(
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


def open_source(where: str) -> PartitionSource:
    """The source of a URL: ``served://HOST:PORT``, or the folder that ``publish`` wrote (``file:///...``, ``s3://...``)."""
    if where.startswith("served://"):
        from spark_bridge.sources.served import ServedSource

        return ServedSource(where)
    from spark_bridge.sources.published import PublishedSource

    return PublishedSource(where)
