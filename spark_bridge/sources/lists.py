"""The simplest source: lists in memory."""

from __future__ import annotations

from multilang.component.errors import ConnectorError
from multilang.plain import plain_rows
from spark_bridge.sources.named import in_order
from spark_bridge.sources.source import PartitionSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from multilang.plain import Row


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
