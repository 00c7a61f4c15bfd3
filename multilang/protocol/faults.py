"""Find the values from a component that Storm changes on their way.

Measured on Storm 2.8.3, all in silence: NaN stays NaN, -Infinity becomes a string, a lone surrogate becomes "?", and
U+007F beside an escape disappears. A message that is nested too deeply is refused. ``tests/values`` compares with
Storm's own classes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 400  # of a message; Storm's parser refuses more
_LONGEST_DOUBLE = 18  # characters of a number that Storm reads as a double; a longer one becomes a BigDecimal
_LARGE = 1e11  # from here on, a number with an exponent may be long enough, and have no fraction

LARGE = "is or holds a float that Storm may make an integer of"
"""No fault yet: ``as_storm_reads`` finds out."""


def fault(value: Any, depth: int, strict: bool) -> str | None:
    """Return what is wrong with ``value``, or None when it arrives as it is.

    Args:
        value: The value to look at.
        depth: The number of objects and arrays that it stands in.
        strict: Also find what Storm changes in silence.
    """
    kind = type(value)
    if kind is list or kind is dict:
        return _nested_fault(value, depth + 1, strict)
    if kind is float:
        if -_LARGE < value < _LARGE:
            return None
        # "1e400" is read as an infinity, too
        return LARGE if value - value == 0.0 or not strict else f"is or holds {value!r}, which JSON does not have"
    if strict and kind is str and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "is or holds a lone surrogate, which Storm turns into '?'"
    return None


def _nested_fault(value: Any, depth: int, strict: bool) -> str | None:
    if depth > _MAX_DEPTH:
        return f"is nested so deeply that the message has more than {_MAX_DEPTH} levels, which Storm refuses"
    large = None
    for item in value:  # iterating a dict gives its keys
        found = fault(item, depth, strict)
        if found is LARGE:
            large = found
        elif found is not None:
            return found
    if type(value) is dict:
        for item in value.values():
            found = fault(item, depth, strict)
            if found is LARGE:
                large = found
            elif found is not None:
                return found
    return large


def as_storm_reads(frame: bytes) -> dict[str, Any] | None:
    """Return the message with Storm's reading of long numbers: those without a fraction are integers.

    None when the message has no such number.
    """
    import re

    # Most large numbers have no exponent, or only a few digits before it.
    if re.search(rb"[\d.]{12}[eE][+-]?\d", frame) is None:
        return None
    import json
    from decimal import Decimal

    integers = 0

    def number(text: str) -> float | int:
        nonlocal integers
        if len(text) > _LONGEST_DOUBLE:
            exact = Decimal(text)
            if exact.as_tuple().exponent == 0:
                integers += 1
                return int(exact)
        return float(text)

    try:
        message = json.loads(frame, parse_float=number)
    except (ValueError, RecursionError):
        return None  # only ujson can read it
    return message if integers else None


def loses_delete(frame: bytes) -> bool:
    """Return whether a string of this message holds U+007F beside an escape, so that Storm drops the character."""
    import re

    strings = re.finditer(rb'"[^"\\]*(?:\\.[^"\\]*)*"', frame, re.DOTALL)
    return any(b"\x7f" in found[0] and b"\\" in found[0] for found in strings)


def first_object(frame: bytes) -> object:
    """Return the JSON object at the beginning of a message, whatever follows it.

    Raises:
        ValueError: There is none.
    """
    import json

    try:
        return json.JSONDecoder().raw_decode(frame.decode("utf-8", "replace").lstrip())[0]
    except RecursionError:
        raise ValueError("nested too deeply") from None
