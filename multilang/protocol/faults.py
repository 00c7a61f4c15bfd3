"""What a value from a component becomes in Storm, where that is something else than what was meant.

Measured on Storm 2.8.3: NaN stays NaN, -Infinity becomes a string, a lone surrogate "?", all in silence; a message that
is nested too deeply is refused.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 400  # of a message; Storm's parser refuses more


def fault(value: Any, depth: int, strict: bool) -> str | None:
    """What is wrong with ``value``, which stands inside ``depth`` objects and arrays; None when nothing is.

    ``strict``: what Storm changes in silence is wrong, too.
    """
    kind = type(value)
    if kind is list or kind is dict:
        return _nested_fault(value, depth + 1, strict)
    if strict and kind is float:
        # "1e400" reads as an infinity, too
        return None if value - value == 0.0 else f"is or holds {value!r}, which JSON does not have"
    if strict and kind is str and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "is or holds a lone surrogate, which Storm turns into '?'"
    return None


def _nested_fault(value: Any, depth: int, strict: bool) -> str | None:
    if depth > _MAX_DEPTH:
        return f"is nested so deeply that the message has more than {_MAX_DEPTH} levels, which Storm refuses"
    for item in value:  # a dict's keys
        found = fault(item, depth, strict)
        if found is not None:
            return found
    if type(value) is dict:
        for item in value.values():
            found = fault(item, depth, strict)
            if found is not None:
                return found
    return None


def first_object(frame: bytes) -> object:
    """The JSON at the beginning of a message, whatever follows it. Raises ValueError when there is none."""
    import json

    try:
        return json.JSONDecoder().raw_decode(frame.decode("utf-8", "replace").lstrip())[0]
    except RecursionError:
        raise ValueError("nested too deeply") from None
