"""The values of rows on their way out of Spark: by the names that a row has for them, and in their JSON form, the same for live and
for published rows.

The table in docs/spark.md has each type with a value before and after; the tests read it. What has no JSON form is refused by
the column's name, before anything runs.

A *kind* is the part of a column's type that matters here, as JSON: None for types that JSON has, a name, or a nested
one.

Spark's dates and times go beyond the years 1 to 9999, and its text may be no UTF-8. Python would raise an error that names no
column, or have other text. So Spark looks at these values first, and refuses them with the column's name.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import itemgetter, or_

from multilang.component.errors import ConnectorError
from multilang.connectors.values import base64_text, iso_text, plain, timestamp_text
from multilang.protocol.codec import encode_values, reason_against
from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from pyspark import RDD
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    Kind: TypeAlias = "str | list[Any] | None"
    Convert: TypeAlias = Callable[[Any], Any]


_PLAIN = frozenset(
    [
        "void",
        "string",
        "char",
        "varchar",
        "boolean",
        "byte",
        "tinyint",
        "short",
        "smallint",
        "integer",
        "int",
        "long",
        "bigint",
        "float",
        "double",
    ]
)
_PLACES = frozenset(["geography", "geometry"])  # Spark casts them to no text
_NAMED = frozenset(["timestamp", "timestamp_ntz", "date", "time", "binary"])


def kinds_of(schema: Any) -> list[Kind]:
    """Return the kind of each column of a DataFrame's schema.

    Raises ConnectorError with the name of a column that has none, and for a column without a name.
    """
    twice = _twice(schema)
    if twice is not None:
        raise ConnectorError(
            f"the DataFrame has two columns {twice!r}; rename one, a tuple's fields have one name each"
        )
    if "" in schema.names:
        raise ConnectorError(
            f"column {schema.names.index('') + 1} of the DataFrame has no name, and a tuple's field has one; name it with df.toDF(...)"
        )
    return [_kind(field.dataType, field.name) for field in schema.fields]


def _twice(struct: Any) -> str | None:
    """Return a name that two fields have, or None."""
    names = [field.name for field in struct.fields]
    return next((name for name in names if names.count(name) > 1), None)


def _kind(kind: Any, column: str) -> Kind:
    name: str = kind.typeName()
    name = name.partition("(")[0]
    if name in _PLAIN:
        return None
    if name in _NAMED:
        return name
    if name == "array":
        inner = _kind(kind.elementType, column)
        return None if inner is None else ["array", inner]
    if name == "decimal":
        return ["decimal", kind.scale]
    if name == "struct":
        twice = _twice(kind)
        if twice is not None:
            raise ConnectorError(f"column {column!r} has a struct with two fields {twice!r}; rename one")
        if not kind.fields:
            raise ConnectorError(
                f"column {column!r} has a struct without fields, which no file can have; leave it out, df.drop({column!r})"
            )
        return ["struct", [[each.name, _kind(each.dataType, column)] for each in kind.fields]]
    if name == "map" and kind.keyType.typeName() == "string":
        return ["map", _kind(kind.valueType, column)]
    fix = f"cast it first, for one df.withColumn({column!r}, df[{column!r}].cast('string'))"
    if name in _PLACES:
        fix = f"make it binary first, with ST_AsBinary, or leave it out, df.drop({column!r})"
    raise ConnectorError(f"column {column!r} has the type {kind.simpleString()}, which has no JSON form; {fix}")


def converter(kind: Kind) -> Convert | None:
    """Return the function that gives a value of this kind its JSON form, or None if the value has that form already."""
    if kind is None:
        return None
    if isinstance(kind, str):
        return _CONVERTERS[kind]
    what, inner = kind
    if what == "decimal":  # Spark returns a live 0.00000001 as 10E-9, with a digit more than the column has
        form = f".{inner}f"
        return lambda value: None if value is None else format(value, form)
    if what == "array":
        convert = converter(inner)
        assert convert is not None
        return lambda value: None if value is None else [None if each is None else convert(each) for each in value]
    if what == "map":
        return _map_converter(converter(inner))
    return _struct_converter([(name, converter(each)) for name, each in inner])


def _map_converter(convert: Convert | None) -> Convert:
    def converted(value: Any) -> Any:
        if value is None:
            return None
        # In the order of the keys: Spark has none, Java's is that of hashes, and Arrow, which gives pairs, has another one.
        pairs = sorted(value.items() if hasattr(value, "items") else value, key=itemgetter(0))
        return {key: each if convert is None else convert(each) for key, each in pairs}

    return converted


def _struct_converter(parts: list[tuple[str, Convert | None]]) -> Convert:
    def converted(value: Any) -> Any:
        if value is None:
            return None
        values = [value[name] for name, _ in parts] if isinstance(value, dict) else value
        return {
            name: each if convert is None else convert(each)
            for (name, convert), each in zip(parts, values, strict=True)
        }

    return converted


def _utc_text(value: Any) -> Any:
    """Return a timestamp in UTC. Without a zone, it is a time of UTC already: see ``exact_rows``."""
    return f"{value.isoformat()}Z" if value is not None and value.tzinfo is None else timestamp_text(value)


_CONVERTERS: dict[str, Convert] = {
    "timestamp": _utc_text,
    "timestamp_ntz": iso_text,
    "date": iso_text,
    "time": iso_text,
    "binary": base64_text,
}


def encoded(row: Sequence[Any], fields: Sequence[str]) -> str:
    """Return a row as a JSON array. Raises ConnectorError with the field's name for a value that has no JSON form."""
    try:
        return encode_values(row)
    except UnserializableValue:
        pass
    values = []
    for name, value in zip(fields, row, strict=True):
        try:
            values.append(plain(value))
            reason = reason_against(values[-1])
        except UnserializableValue as error:
            reason = error.reason
        if reason is not None:
            raise ConnectorError(f"field {name!r}: {reason}")
    return encode_values(values)


def in_order(row: Sequence[Any], fields: tuple[str, ...]) -> list[Any]:
    """Return a row's values in the order of the fields.

    A row that has a value of each field's name gives these, wherever they stand in it, as a DataFrame does with its columns. Any
    other row is taken by position.

    Args:
        row: The row: a list, a tuple, or a tuple whose values have names, as pyspark's Row and a named tuple do.
        fields: The stream's fields.

    Raises:
        ConnectorError: Some fields are among the row's names, at other places, so that neither names nor places can be meant.
    """
    kind = type(row)
    if kind is tuple or kind is list:
        return list(row)
    names = getattr(row, "__fields__", None) or getattr(row, "_fields", None)
    places = _places(tuple(names), fields) if names else None
    return list(row) if places is None else [row[place] for place in places]


@lru_cache(1024)
def _places(names: tuple[str, ...], fields: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the place of each field's value among the row's values, or None if the values are taken as they stand."""
    if names == fields:
        return None
    twice = [field for field in fields if names.count(field) > 1]
    if twice:
        raise ConnectorError(f"the row has two values {twice[0]!r}, of {', '.join(names)}; rename one")
    if all(field in names for field in fields):
        return tuple(map(names.index, fields))
    moved = [field for place, field in enumerate(fields) if field in names and names.index(field) != place]
    if moved:
        missing = [field for field in fields if field not in names]
        raise ConnectorError(
            f"the row's values are {', '.join(names)}, and the fields {', '.join(fields)}: {moved[0]!r} stands elsewhere, and "
            f"{missing[0]!r} is not there; give the values the fields' names, or map the rows to plain tuples in the fields' order"
        )
    return None


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
            message = (
                f"{_RAISED}column {name!r} has {what}: cast it first, for one df.withColumn({name!r}, "
                f"df[{name!r}].cast({wanted!r})), or leave out such rows; the value is "
            )
            value = f.left(column.cast("string"), f.lit(_MAX_SHOWN))
            wrong = _wrong(column.cast(_placed(kind)), kind, leaves)
            found = f.when(wrong, f.raise_error(f.concat(f.lit(message), value))).otherwise(found)
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
