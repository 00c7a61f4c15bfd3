"""The JSON form of the values of Arrow's columns: no digit is lost, and what has no JSON form is refused by its name."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from multilang.component.errors import ConfigError
from multilang.connectors.values import plain
from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Convert = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc).replace(tzinfo=None)
_DAY = 86_400
_PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # of a second


class Wrong(str):
    """The fault of a value that can't be read; it stands in the place of the value."""

    __slots__ = ()


def reader_of(kind: Any, column: str) -> Callable[[Any], list[Any]]:
    """Return the function that gives a list of the values of an array of this type.

    Args:
        kind: Arrow's type.
        column: The column, in the words of a message.

    Raises:
        ConfigError: The type has no JSON form.
    """
    from pyarrow import types

    convert = _converter(kind, column)

    def one(value: Any) -> Any:
        try:
            return convert(value)
        except (UnserializableValue, ValueError, ArithmeticError) as problem:
            return Wrong(str(problem))

    def at_once(array: Any) -> list[Any]:
        try:
            return [plain(value) for value in array.to_pylist()]
        except (UnserializableValue, ValueError):
            return [one(value) for value in array]

    if types.is_temporal(kind) or types.is_nested(kind) or types.is_dictionary(kind):
        return lambda array: [one(value) for value in array]
    return at_once


def _converter(kind: Any, column: str) -> Convert:
    """Return the function that gives a scalar of this type its JSON form."""
    from pyarrow import types

    if types.is_timestamp(kind):
        return _present(lambda value: _timestamp(value.value, kind.unit, kind.tz is not None))
    if types.is_time(kind):
        return _present(lambda value: _time(value.value, kind.unit))
    if types.is_date(kind):
        days = 1 if types.is_date32(kind) else _DAY * 1000
        return _present(lambda value: _date(value.value // days))
    if types.is_dictionary(kind):
        inner = _converter(kind.value_type, column)
        return _present(lambda value: inner(value.value))
    if types.is_map(kind):
        if not (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
            raise _refused(column, f"the type {kind}, whose keys are no text")
        return _present(_map(_converter(kind.item_type, column)))
    if types.is_struct(kind):
        names = [field.name for field in kind]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise _refused(column, f"a struct with two fields {twice!r}")
        parts = [(number, field.name, _converter(field.type, column)) for number, field in enumerate(kind)]
        return _present(lambda value: {name: convert(value[number]) for number, name, convert in parts})
    if types.is_nested(kind) and hasattr(kind, "value_type"):
        of_each = _converter(kind.value_type, column)
        return _present(lambda value: [of_each(each) for each in value.values])
    if types.is_duration(kind) or types.is_interval(kind):
        raise _refused(column, f"the type {kind}, which has no JSON form")
    return lambda value: plain(value.as_py())


def _present(convert: Convert) -> Convert:
    return lambda value: convert(value) if value.is_valid else None


def _map(convert: Convert) -> Convert:
    def converted(value: Any) -> dict[str, Any]:
        entries = value.values
        keys = entries.field(0).to_pylist()
        twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
        if twice is not None:
            raise UnserializableValue(f"the map has the key {twice!r} twice")
        return dict(zip(keys, map(convert, entries.field(1)), strict=True))

    return converted


def _timestamp(value: int, unit: str, has_zone: bool) -> str:
    seconds, part = divmod(value, _PARTS[unit])
    try:
        whole = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        zone = " UTC" if has_zone else ""
        raise UnserializableValue(
            f"the time {value} {unit} from 1970-01-01{zone} on is outside of the years 1 to 9999"
        ) from None
    return whole.isoformat() + _fraction(part, unit) + ("Z" if has_zone else "")


def _time(value: int, unit: str) -> str:
    seconds, part = divmod(value, _PARTS[unit])
    if not 0 <= seconds < _DAY:
        raise UnserializableValue(f"the time {value} {unit} is outside of a day")
    return (_EPOCH + timedelta(seconds=seconds)).time().isoformat() + _fraction(part, unit)


def _date(days: int) -> str:
    try:
        return date.fromordinal(_EPOCH.toordinal() + days).isoformat()
    except (ValueError, OverflowError):
        raise UnserializableValue(
            f"the date {days} days from 1970-01-01 on is outside of the years 1 to 9999"
        ) from None


def _fraction(part: int, unit: str) -> str:
    """Return the part of a second as Python writes it; with nanoseconds if there are some."""
    nanoseconds = part * (10**9 // _PARTS[unit])
    if not nanoseconds:
        return ""
    return f".{nanoseconds:09}" if nanoseconds % 1000 else f".{nanoseconds // 1000:06}"


def _refused(column: str, what: str) -> ConfigError:
    return ConfigError(f"{column} has {what}; leave the column out, or write it as text")
