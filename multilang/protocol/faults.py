"""What a value from a component becomes in Storm, where that is something else than what was meant.

Measured on Storm 2.8.3: NaN stays NaN, -Infinity becomes a string, a lone surrogate "?", U+007F beside an escape nothing, all
in silence; a message that is nested too deeply is refused. ``tests/values`` compares with Storm's own classes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 400  # of a message; Storm's parser refuses more
_LONGEST_DOUBLE = 18  # characters of a number that Storm reads as a double; what is longer becomes a BigDecimal
_LARGE = 1e11  # from here on a number with an exponent may be so long, and without a fraction

LARGE = "is or holds a float that Storm may make an integer of"
"""No fault, but ``as_storm_reads`` is to tell."""


def fault(value: Any, depth: int, strict: bool) -> str | None:
    """What is wrong with ``value``, which stands inside ``depth`` objects and arrays; None when nothing is.

    ``strict``: what Storm changes in silence is wrong, too.
    """
    kind = type(value)
    if kind is list or kind is dict:
        return _nested_fault(value, depth + 1, strict)
    if kind is float:
        if -_LARGE < value < _LARGE:
            return None
        # "1e400" reads as an infinity, too
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
    for item in value:  # a dict's keys
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
    """A message whose long numbers without a fraction are integers, as after Storm's BigDecimal; None: it has none."""
    import re

    # Most large numbers have no exponent, or few digits before it.
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
        return None  # what ujson alone can read
    return message if integers else None


def loses_delete(frame: bytes) -> bool:
    """Whether a string of this message holds U+007F beside an escape, from which Storm drops it."""
    import re

    strings = re.finditer(rb'"[^"\\]*(?:\\.[^"\\]*)*"', frame, re.DOTALL)
    return any(b"\x7f" in found[0] and b"\\" in found[0] for found in strings)


def first_object(frame: bytes) -> object:
    """The JSON at the beginning of a message, whatever follows it. Raises ValueError when there is none."""
    import json

    try:
        return json.JSONDecoder().raw_decode(frame.decode("utf-8", "replace").lstrip())[0]
    except RecursionError:
        raise ValueError("nested too deeply") from None
