"""The values of tuples as columns of Spark: each of a column's type, or an error that names the field and the value.

The table "from tuples to Spark" in docs/spark.md has what becomes of each kind of value; the tests read it.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import types

from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps
from multilang.protocol.errors import shown
from multilang.topology.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from multilang.topology.model import Topology

    Convert: TypeAlias = Callable[[Any], Any]

_MAX_SHOWN = 200  # characters of a value in a message
_DIGITS = 60  # more than any decimal of Spark's has
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}
_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}\d*[1-9]")
_PLAIN_TYPES = {str: "StringType", int: "LongType", float: "DoubleType", bool: "BooleanType"}


class Rows:
    """The conversion of tuples to rows of ``schema``, by position.

    ``source``: what emits them, and ``advice``: what to do about a value that its column can't have, for messages.
    """

    def __init__(
        self,
        source: str,
        fields: Sequence[str],
        schema: types.StructType,
        advice: str = "give another schema: string takes anything",
        *,
        binary: Convert | None = None,
    ) -> None:
        """Prepare the conversion of each column. ``binary``: that of binary columns, if it is another one."""
        self._source = source
        self._advice = advice
        self._columns = [
            (
                place,
                fields[place],
                column,
                _nullable(
                    binary
                    if binary is not None and isinstance(column.dataType, types.BinaryType)
                    else converter(column.name, column.dataType),
                    column.nullable,
                ),
            )
            for place, column in zip(_places(source, fields, schema.names), schema.fields, strict=True)
        ]

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return a tuple's values as a row. Raises SparkJobError for a value that its column can't have."""
        return tuple(
            self._converted(values[place], field, column, convert) for place, field, column, convert in self._columns
        )

    def _converted(self, value: Any, field: str, column: types.StructField, convert: Convert) -> Any:
        try:
            return convert(value)
        except ValueError:
            raise SparkJobError(
                f"{self._source} emitted {shown(value, _MAX_SHOWN)} for the field {field!r}, whose column is a "
                f"{column.dataType.simpleString()}{'' if column.nullable else ' that can not be null'}; {self._advice}"
            ) from None


def _places(source: str, fields: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the place of each column among the fields: by the fields' names in any order, or by place under other names."""
    lists = f"{source} emits the fields {', '.join(fields)}, and the schema has {', '.join(names)}"
    if len(names) != len(fields):
        raise TopologyError(lists)
    if set(names) == set(fields):
        return [list(fields).index(name) for name in names]
    folded = [field.casefold() for field in fields]
    for place, name in enumerate(names):
        if names.count(name) > 1:
            raise TopologyError(f"{lists}: {name!r} is there twice")
        if name.casefold() in folded and name.casefold() != folded[place]:
            raise TopologyError(
                f"{lists}: {name!r} is a field at another place; write all the fields' names, in any order, or new names in the "
                "fields' order"
            )
    return list(range(len(fields)))


def converter(column: str, kind: types.DataType) -> Convert:
    """Return the function that makes a value of this type of a value that is not null.

    The function raises ValueError for a value that the type can't have, or not without a loss.

    Raises TopologyError with the column's name for a type that no value of a tuple is.
    """
    found = _CONVERTERS.get(type(kind))
    if found is not None:
        return found
    if isinstance(kind, types.DecimalType):
        return _decimal(kind.precision, kind.scale)
    if kind.typeName().partition("(")[0] == "time":  # from Spark 4.1 on
        return _time(kind.precision)  # type: ignore[attr-defined]
    if isinstance(kind, types.CharType | types.VarcharType):
        return _bounded(kind.length)
    if isinstance(kind, types.ArrayType):
        return _array(_nullable(converter(column, kind.elementType), kind.containsNull))
    if isinstance(kind, types.MapType) and isinstance(
        kind.keyType, types.StringType | types.CharType | types.VarcharType
    ):
        return _map(
            converter(column, kind.keyType), _nullable(converter(column, kind.valueType), kind.valueContainsNull)
        )
    if isinstance(kind, types.StructType):
        return _struct({each.name: _nullable(converter(column, each.dataType), each.nullable) for each in kind.fields})
    raise TopologyError(
        f"column {column!r} is a {kind.simpleString()}, which no value of a tuple is: take a string, and make "
        "of it what you need in Spark (cast, from_json)"
    )


def in_memory(kind: Any) -> Any:
    """Return the type that a column has in a DataFrame: Spark has ``char`` and ``varchar`` in tables alone, and text elsewhere."""
    if isinstance(kind, types.CharType | types.VarcharType):
        return types.StringType()
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(in_memory(kind.elementType), kind.containsNull)
    if isinstance(kind, types.MapType):
        return types.MapType(in_memory(kind.keyType), in_memory(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, types.StructType):
        return types.StructType(
            [
                types.StructField(each.name, in_memory(each.dataType), each.nullable, each.metadata)
                for each in kind.fields
            ]
        )
    return kind


def declared_schema(fields: Sequence[str], declared: Sequence[Any]) -> types.StructType:
    """Return the columns of a stream that declares its fields' types.

    Args:
        fields: The stream's fields.
        declared: Their types: Python's, or a text with a type of Spark SQL.
    """
    return types.StructType(
        [types.StructField(name, _declared(name, kind)) for name, kind in zip(fields, declared, strict=True)]
    )


def check_types(topology: Topology, outputs: Iterable[tuple[str, str]]) -> None:
    """Check the types that streams declare for their fields.

    Args:
        topology: The topology.
        outputs: The streams that will be read, as (component, stream).

    Raises:
        TopologyError: Spark SQL does not have a type, or no value of a tuple can be of it.
    """
    for component, stream in outputs:
        declared = topology.components[component].streams[stream]
        if declared.types is not None:
            try:
                Rows(repr(component), declared.fields, declared_schema(declared.fields, declared.types))
            except TopologyError as error:
                raise TopologyError(f"stream {stream!r} of {component!r}: {error}") from error


@lru_cache(1024)  # a query asks for each batch
def _of_sql(text: str) -> types.DataType:
    return types.DataType.fromDDL(text)


def _declared(field: str, kind: Any) -> types.DataType:
    if isinstance(kind, str):
        try:
            return _of_sql(kind)
        except Exception as error:
            raise TopologyError(
                f"field {field!r} declares the type {kind!r}, which Spark SQL does not have; write one of its types, such as "
                "'decimal(12,2)' or 'array<int>'"
            ) from error
    if kind in _PLAIN_TYPES:
        found: types.DataType = getattr(types, _PLAIN_TYPES[kind])()
        return found
    inner: Any = getattr(kind, "__args__", ())
    if getattr(kind, "__origin__", None) is list:
        return types.ArrayType(_declared(field, inner[0]))
    if getattr(kind, "__origin__", None) is dict:
        return types.MapType(_declared(field, inner[0]), _declared(field, inner[1]))
    return types.StringType()  # a list or dict of anything: JSON


def _nullable(convert: Convert, nullable: bool) -> Convert:
    def converted(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if nullable:
            return None
        raise ValueError(value)

    return converted


def _of(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    return value if type(value) is str else dumps(value)


def _bounded(length: int) -> Convert:
    def convert(value: Any) -> str:
        found = _text(value)
        if len(found) > length:
            raise ValueError(value)
        return found

    return convert


def _double(value: Any) -> float:
    if type(value) is str and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    found = float(_of(value, int, float))
    if found != value:
        raise ValueError(value)
    return found


def _float(value: Any) -> float:
    """A single float is what was declared, so it is the nearest one; what is beyond its range is refused."""
    found = _double(value)
    try:
        struct.pack("<f", found)
    except OverflowError as error:
        raise ValueError(value) from error
    return found


def _whole(bits: int) -> Convert:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: Any) -> int:
        if not least <= _of(value, int) <= most:
            raise ValueError(value)
        return value  # type: ignore[no-any-return]

    return convert


def _decimal(precision: int, scale: int) -> Convert:
    def convert(value: Any) -> Decimal:
        with localcontext() as context:
            context.prec = _DIGITS
            try:
                given = Decimal(str(_of(value, str, int, float)))
                found = given.quantize(Decimal(1).scaleb(-scale))
            except InvalidOperation as error:
                raise ValueError(value) from error
            if not given.is_finite() or found != given or abs(found) >= Decimal(10) ** (precision - scale):
                raise ValueError(value)
            return found

    return convert


def _timestamp(value: Any) -> datetime:
    found = _datetime(value)
    if found.tzinfo is None:
        raise ValueError(value)
    try:
        return found.astimezone(timezone.utc)
    except OverflowError as error:  # within the years 1 to 9999 there, but not in UTC
        raise ValueError(value) from error


def _timestamp_ntz(value: Any) -> datetime:
    found = _datetime(value)
    if found.tzinfo is not None:
        raise ValueError(value)
    return found


def _datetime(value: Any) -> datetime:
    text = _moment(value)
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # Python 3.10 has no Z


def _time(precision: int) -> Convert:
    def convert(value: Any) -> time:
        found = time.fromisoformat(_moment(value))
        if found.tzinfo is not None or found.microsecond % 10 ** (6 - precision):
            raise ValueError(value)
        return found

    return convert


def _moment(value: Any) -> str:
    """Return the text of a moment, which has nothing below a microsecond: Python would leave it out."""
    text: str = _of(value, str)
    if _BELOW_MICROSECONDS.search(text):
        raise ValueError(value)
    return text


def _array(convert: Convert) -> Convert:
    return lambda value: [convert(each) for each in _of(value, list)]


def _map(key: Convert, convert: Convert) -> Convert:
    return lambda value: {key(name): convert(each) for name, each in _of(value, dict).items()}


def _struct(parts: dict[str, Convert]) -> Convert:
    def converted(value: Any) -> tuple[Any, ...]:
        if not _of(value, dict).keys() <= parts.keys():
            raise ValueError(value)
        return tuple(convert(value.get(name)) for name, convert in parts.items())

    return converted


def _null(value: Any) -> None:
    raise ValueError(value)


_CONVERTERS: dict[type[types.DataType], Convert] = {
    types.StringType: _text,
    types.BinaryType: lambda value: b64decode(_of(value, str), validate=True),
    types.BooleanType: lambda value: _of(value, bool),
    types.ByteType: _whole(8),
    types.ShortType: _whole(16),
    types.IntegerType: _whole(32),
    types.LongType: _whole(64),
    types.FloatType: _float,
    types.DoubleType: _double,
    types.DateType: lambda value: date.fromisoformat(_of(value, str)),
    types.TimestampType: _timestamp,
    types.TimestampNTZType: _timestamp_ntz,
    types.NullType: _null,
}
