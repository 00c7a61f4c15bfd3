"""Values that other libraries send and this one refuses."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def as_simplejson_sends(value: Any) -> Any:
    """Return a value in the types of JSON, converted as simplejson converts it.

    Bytes are text in UTF-8, a Decimal is a number, the keys of a dict become strings, and tuples of any kind are lists.
    Values that simplejson refuses are returned unchanged, so that the emit's own error names them.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_key(key): as_simplejson_sends(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_simplejson_sends(item) for item in value]
    convert = _OTHERS.get(type(value).__name__)
    return value if convert is None else convert(value)


def _key(key: Any) -> Any:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int):
        return str(int(key))
    if isinstance(key, float):
        return float.__repr__(key)
    return key.decode() if isinstance(key, bytes) else key


def _decimal(value: Any) -> Any:
    from decimal import Decimal

    if not isinstance(value, Decimal) or not value.is_finite():
        return value
    text = str(value)
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _sequence(value: Any) -> Any:
    from collections.abc import Sequence

    return list(value) if isinstance(value, Sequence) else value


_OTHERS: dict[str, Callable[[Any], Any]] = {"Decimal": _decimal, "TaskIds": _sequence}


def unsubscribed(context: Any) -> Callable[[Any, Any], bool]:
    """Return a function of values and stream that returns whether an emit was refused for its number of values alone.

    Storm makes a tuple of the values for each receiving task. Without a subscriber to a declared stream it makes none, so
    that a wrong number of values has no effect: a program may run there for years.

    Args:
        context: The task's context, from the handshake.
    """
    declared = context.get("stream->outputfields") or {}
    targets = context.get("stream->target->grouping") or {}
    unread = {stream: len(fields) for stream, fields in declared.items() if not targets.get(stream)}

    def is_unsubscribed(values: Any, stream: Any) -> bool:
        number = unread.get("default" if stream is None else stream)
        return number is not None and isinstance(values, list | tuple) and len(values) != number

    return is_unsubscribed
