"""A spout's values as columns, of the types that its schema says; a text column takes any value as JSON.

A binary column has any value as JSON, texts included, so that ``values_of`` can restore the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import types

from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps, loads
from multilang.protocol.errors import shown
from multilang.topology.errors import TopologyError
from spark_bridge.job.columns import converter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MAX_SHOWN = 200  # characters of a value in a message


class Columns:
    """The conversion of tuples to rows of ``schema``.

    ``spout``: its name for messages; ``fields``: those of its stream.
    """

    def __init__(self, spout: str, fields: Sequence[str], schema: types.StructType) -> None:
        names = [column.name for column in schema.fields]
        if names != list(fields):
            raise TopologyError(
                f"spout {spout!r} emits the fields {', '.join(fields)}, and the schema has {', '.join(names)}"
            )
        self._spout = spout
        self._columns = [(column, _converter(column)) for column in schema.fields]

    def row(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return a tuple's values as a row. Raises SparkJobError for a value that its column can't have."""
        return tuple(
            self._converted(column, convert, value)
            for value, (column, convert) in zip(values, self._columns, strict=True)
        )

    def _converted(self, column: types.StructField, convert: Callable[[Any], Any], value: Any) -> Any:
        if value is None and column.nullable:
            return None
        try:
            if value is not None:
                return convert(value)
        except ValueError:
            pass
        raise SparkJobError(
            f"spout {self._spout!r} emitted {shown(value, _MAX_SHOWN)} for the field {column.name!r}, whose column is a "
            f"{column.dataType.simpleString()}{'' if column.nullable else ' that can not be null'}; its tuples are kept by the "
            f"spout. Give another schema: `{column.name}` string takes anything"
        )


def values_of(row: Sequence[bytes | None]) -> list[Any]:
    """Return what the spout emitted, from a row whose columns are all binary."""
    return [None if value is None else loads(value.decode()) for value in row]


def _json(value: Any) -> bytes:
    return dumps(value).encode()


def _converter(column: types.StructField) -> Callable[[Any], Any]:
    if isinstance(column.dataType, types.BinaryType):
        return _json
    return converter(column.name, column.dataType)
