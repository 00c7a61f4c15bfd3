"""The JSON form of values of types that JSON lacks, as databases and files of columns have them.

Decimals are text in plain notation, times text in the form of ISO 8601 (with a zone: in UTC), bytes text in base64, NaN and
infinities their names.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import date, datetime, time, timezone
from decimal import Decimal

from multilang.protocol.codec import MAX_DEPTH
from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def decimal_text(value: Any) -> Any:
    """Return a number in plain notation; None for None."""
    return None if value is None else format(value, "f")


def timestamp_text(value: Any) -> Any:
    """Return a time in UTC. A time without a zone is in the zone of the process that Spark gave it to."""
    return None if value is None else value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"


def iso_text(value: Any) -> Any:
    """Return a date or time in the form of ISO 8601; None for None."""
    return None if value is None else value.isoformat()


def base64_text(value: Any) -> Any:
    """Return bytes in base64; None for None."""
    return None if value is None else b64encode(value).decode("ascii")


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
