"""The JSON form of a DataFrame's values, the same for live and for published rows.

The table in docs/spark.md has each type with a value before and after; the tests read it. What has no JSON form is refused by
the column's name, before anything runs.

A *kind* is the part of a column's type that matters here, as JSON: None for types that JSON has, a name, or a nested
one.
"""

from __future__ import annotations

from multilang.component.errors import ConnectorError
from multilang.connectors.values import base64_text, iso_text, plain, timestamp_text
from multilang.protocol.codec import encode_values, reason_against
from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

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
        return ["struct", [[each.name, _kind(each.dataType, column)] for each in kind.fields]]
    if name == "map" and kind.keyType.typeName() == "string":
        return ["map", _kind(kind.valueType, column)]
    said = kind.simpleString()
    raise ConnectorError(
        f"column {column!r} has the type {said}, which has no JSON form; cast it first, for one "
        f"df.withColumn({column!r}, df[{column!r}].cast('string'))"
    )


def converter(kind: Kind) -> Convert | None:
    """Return the function that gives a value of this kind its JSON form, or None if the value has that form already."""
    if kind is None:
        return None
    if isinstance(kind, str):
        return _CONVERTERS[kind]
    what, inner = kind
    if what == "decimal":  # Spark hands a live 0.00000001 over as 10E-9, with a digit more than the column has
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
        pairs = value.items() if hasattr(value, "items") else value  # Arrow gives pairs
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
