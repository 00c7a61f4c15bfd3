"""A source that has only the first rows of another source's partitions."""

from __future__ import annotations

from spark_bridge.sources.errors import SourceError
from spark_bridge.sources.source import PartitionSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from spark_bridge.sources.source import Row


class Until(PartitionSource):
    """The rows of ``source`` before ``ends``: partition -> the offset behind its last row."""

    def __init__(self, source: PartitionSource, ends: Mapping[int, int]) -> None:
        self._source = source
        self._ends = dict(ends)
        self.waits = source.waits
        self.asks = source.asks
        missing = [each for each in range(source.partitions) if each not in ends]
        if missing or len(ends) > source.partitions:
            raise SourceError(
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
    def former_name(self) -> str:
        return self._source.former_name

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
