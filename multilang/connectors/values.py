"""The JSON form of values of types that JSON lacks, as databases and files of columns have them.

Decimals are text in plain notation, times text in the form of ISO 8601 (with a zone: in UTC), bytes text in base64, NaN and
infinities their names.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation

from multilang.protocol.codec import MAX_DEPTH
from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def decimal_text(value: Any) -> Any:
    """Return a number in plain notation; None for None."""
    return None if value is None else format(value, "f")


def timestamp_text(value: Any) -> Any:
    """Return a time with a zone in UTC; None for None. Raises UnserializableValue if it is in no year of Python's there."""
    if value is None:
        return None
    try:
        return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
    except OverflowError:
        raise UnserializableValue(f"the time {value.isoformat()} is outside of the years 1 to 9999 in UTC") from None


def iso_text(value: Any) -> Any:
    """Return a date or time in the form of ISO 8601; None for None."""
    return None if value is None else value.isoformat()


def base64_text(value: Any) -> Any:
    """Return bytes in base64; None for None."""
    return None if value is None else b64encode(value).decode("ascii")


def as_type(value: str, kind: type) -> Any:
    """Return a value of a type that JSON lacks, from its JSON form; other text as it is. The inverse of ``plain``.

    Args:
        value: The text.
        kind: The type: datetime, date, time, Decimal, bytes. For any other one the text is returned.
    """
    read = _FROM_TEXT.get(kind)
    if read is None:
        return value
    try:
        return read(value)
    except ValueError:  # of base64, too
        return value


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError from None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # Z: from Python 3.11 on


_FROM_TEXT: dict[type, Callable[[str], Any]] = {
    datetime: _moment,
    date: date.fromisoformat,
    time: time.fromisoformat,
    Decimal: _number,
    bytes: lambda text: b64decode(text, validate=True),
}


def plain(value: Any) -> Any:
    """Return ``value`` with the types that JSON lacks in their JSON form, nested ones included.

    Anything else is returned as it is. Raises UnserializableValue for a value that is nested deeper than Python can
    follow.
    """
    try:
        return _plain(value)
    except RecursionError:
        raise UnserializableValue(f"nested deeper than {MAX_DEPTH} levels, which Storm's parser refuses") from None


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if value != value:
            return "NaN"
        return value if value - value == 0 else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, datetime):
        return iso_text(value) if value.tzinfo is None else timestamp_text(value)
    if isinstance(value, date | time):
        return iso_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64_text(value)
    if hasattr(value, "__fields__"):  # pyspark's Row, which is a tuple otherwise
        return {name: _plain(each) for name, each in zip(value.__fields__, value, strict=True)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value
