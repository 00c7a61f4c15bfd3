"""Values that other libraries send and this one refuses, in the form in which those libraries send them."""

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
