"""A DataFrame's columns in a form in which Python has each value as it is.

Spark's dates and times go beyond the years 1 to 9999, and its text may be no UTF-8. Python would raise an error that names no
column, or have other text. So Spark looks at these values first, and refuses them with the column's name.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from multilang.component.errors import ConnectorError
from spark_bridge.sources.values import kinds_of

if TYPE_CHECKING:
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from spark_bridge.sources.values import Kind

_TIMES = frozenset(["date", "timestamp", "timestamp_ntz"])
_TEXTS = frozenset(["string", "char", "varchar"])
_MAX_SHOWN = 200  # characters of a value in a message
_RAISED = f"{ConnectorError.__module__}.{ConnectorError.__name__}: "  # as if Python had raised it


def exact_rows(frame: DataFrame) -> tuple[RDD[Any], list[Kind]]:
    """Return the rows of a DataFrame as an RDD, and the kinds of its columns.

    Timestamps are times of UTC without a zone: pyspark gives them in the zone of the executor's machine, which does not have all
    of them.

    Args:
        frame: The DataFrame.

    Raises:
        ConnectorError: A column's type has no JSON form.
    """
    kinds = kinds_of(frame.schema)
    placed = checked(frame)
    columns = [
        _of_utc(placed[name].cast(_placed(field.dataType)), field.dataType)
        if _has(field.dataType, {"timestamp"})
        else placed[name]
        for name, field in zip(placed.columns, frame.schema.fields, strict=True)
    ]
    return placed.select(*columns).rdd, kinds


def checked(frame: DataFrame) -> DataFrame:
    """Return a DataFrame whose tasks fail at a value that Python can't have as it is.

    Its columns are ``c0``, ``c1``, ...: names that Spark can tell from one another, and which have no dots.

    Args:
        frame: The DataFrame.
    """
    placed = by_place(frame)
    return placed.select(
        *[
            _checked(placed[name], field.dataType, field.name).alias(name)
            for name, field in zip(placed.columns, frame.schema.fields, strict=True)
        ]
    )


def by_place(frame: DataFrame) -> DataFrame:
    """Return a DataFrame with the columns ``c0``, ``c1``, ....

    Spark can't tell ``a`` from ``A`` by their names, and takes a name with a dot for a part of a struct.

    Args:
        frame: The DataFrame.
    """
    return frame.toDF(*[f"c{number}" for number in range(len(frame.columns))])


def _checked(column: Column, kind: DataType, name: str) -> Column:
    from pyspark.sql import functions as f

    found = column
    for leaves, what, wanted in (
        (_TIMES, "a date or time outside of the years 1 to 9999, which Python does not have", "string"),
        (_TEXTS, "text that is no UTF-8, which no tuple can have", "binary"),
    ):
        if _has(kind, leaves):
            said = (
                f"{_RAISED}column {name!r} has {what}: cast it first, for one df.withColumn({name!r}, "
                f"df[{name!r}].cast({wanted!r})), or leave out such rows; the value is "
            )
            value = f.left(column.cast("string"), f.lit(_MAX_SHOWN))
            wrong = _wrong(column.cast(_placed(kind)), kind, leaves)
            found = f.when(wrong, f.raise_error(f.concat(f.lit(said), value))).otherwise(found)
    return found


def _has(kind: DataType, names: set[str] | frozenset[str]) -> bool:
    """Return whether a type is one of these, or has one of them inside."""
    return _name(kind) in names or any(_has(part, names) for part in _parts(kind))


def _name(kind: DataType) -> str:
    return kind.typeName().partition("(")[0]


def _parts(kind: Any) -> list[DataType]:
    name = _name(kind)
    if name == "array":
        return [kind.elementType]
    if name == "map":
        return [kind.keyType, kind.valueType]
    return [field.dataType for field in kind.fields] if name == "struct" else []


def _placed(kind: Any) -> DataType:
    """Return the type with the members of its structs named ``c0``, ``c1``, .... Spark casts structs by place."""
    from pyspark.sql import types

    parts = [_placed(part) for part in _parts(kind)]
    name = _name(kind)
    if name == "array":
        return types.ArrayType(parts[0], kind.containsNull)
    if name == "map":
        return types.MapType(parts[0], parts[1], kind.valueContainsNull)
    if name == "struct":
        return types.StructType(
            [
                types.StructField(f"c{number}", part, field.nullable)
                for number, (field, part) in enumerate(zip(kind.fields, parts, strict=True))
            ]
        )
    return kind  # type: ignore[no-any-return]


def _wrong(value: Column, kind: Any, leaves: frozenset[str]) -> Column:
    """Return the condition that one of these types, inside a value of this type, has a value that Python can't have."""
    from pyspark.sql import functions as f

    name = _name(kind)
    if name in leaves:
        return ~f.is_valid_utf8(value) if name in _TEXTS else _outside(value, name)
    parts = _parts(kind)
    if name == "struct":
        members = [(value[f"c{number}"], part) for number, part in enumerate(parts)]
        return reduce(or_, [_wrong(member, part, leaves) for member, part in members if _has(part, leaves)])
    arrays = [value] if name == "array" else [f.map_keys(value), f.map_values(value)]
    pairs = zip(arrays, parts, strict=True)
    return reduce(or_, [_any_wrong(array, part, leaves) for array, part in pairs if _has(part, leaves)])


def _any_wrong(array: Column, kind: DataType, leaves: frozenset[str]) -> Column:
    from pyspark.sql import functions as f

    return f.exists(array, lambda one: _wrong(one, kind, leaves))


def _outside(value: Column, name: str) -> Column:
    from pyspark.sql import functions as f

    if name == "date":
        return (value < f.lit("0001-01-01").cast("date")) | (value > f.lit("9999-12-31").cast("date"))
    zone = "" if name == "timestamp_ntz" else "Z"
    first, last = f"0001-01-01 00:00:00{zone}", f"9999-12-31 23:59:59.999999{zone}"
    return (value < f.lit(first).cast(name)) | (value > f.lit(last).cast(name))


def _of_utc(value: Column, kind: Any) -> Column:
    """Return a value whose timestamps, which are all in their range, are times of UTC without a zone."""
    from pyspark.sql import functions as f

    if not _has(kind, {"timestamp"}):
        return value
    name = _name(kind)
    if name == "timestamp":
        return f.timestamp_add("MICROSECOND", f.unix_micros(value), f.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))
    if name == "array":
        return f.transform(value, lambda one: _of_utc(one, kind.elementType))
    if name == "map":
        return f.transform_values(value, lambda _, one: _of_utc(one, kind.valueType))
    members = [_of_utc(value[f"c{n}"], part).alias(f"c{n}") for n, part in enumerate(_parts(kind))]
    return f.when(value.isNotNull(), f.struct(*members))
