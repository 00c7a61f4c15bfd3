"""Bounds on what a message takes when it is parsed, and what is still known of one that can't be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SMALLEST_RATIO = 100
"""A message takes at most so many times its text: one whose text is so much smaller than the limit needs no counting."""

# Bytes of memory of each thing, as CPython 3.10 to 3.14 need them with what ujson allocates ahead, rounded up.
_LIST, _DICT, _VALUE, _KEY = 96, 200, 80, 100
_AT_LEAST = 1000
_WIDE = rb"[\xf0-\xf4]|\\u[dD]8|\\u[dD][9a-fA-F]"
_TOKEN = rb'(?s:"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s"\[\]{},:]+)'
_DEEPEST = 1024  # levels that ujson reads
_MOST_DIGITS = 4300  # of an integer that Python reads
_LONGEST_SCALAR = 10_000  # bytes of a member of a tuple's message that is no list


def memory_of(frame: bytes) -> int:
    """Return the bytes of memory that the parsed message takes at most, counted by its signs.

    Signs in strings count, too, so that it may be less.
    """
    text = len(frame) + _AT_LEAST
    if not frame.isascii() or b"\\u" in frame:
        import re  # here, because few messages need it, and a child would start later

        # A string with a character beyond the BMP has 4 bytes for each of its characters; with another, 2.
        text *= 4 if re.search(_WIDE, frame) else 2
    count = frame.count
    return text + _LIST * count(b"[") + _DICT * count(b"{") + _VALUE * count(b",") + _KEY * count(b":")


def tuple_beyond_bounds(frame: bytes) -> tuple[dict[str, Any], str] | None:
    """Return the id and origin of a tuple that can't be read, and why; None if the message is no tuple or broken otherwise.

    Only the values' nesting or the digits of an integer are such a reason: the message itself is whole JSON.
    """
    import re

    known: dict[str, Any] = {}
    key, why = "", ""
    depth, has_values = 0, False
    for found in re.finditer(_TOKEN, frame):
        token = found[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > _DEEPEST:
                why = why or f"is nested deeper than {_DEEPEST} levels"
        elif token in (b"]", b"}"):
            depth -= 1
            if depth < 0:
                return None
        elif token == b":":
            has_values = has_values or (depth == 1 and key == "tuple")
        elif token == b",":
            if depth == 1:
                key = ""
        elif token[:1] != b'"' and len(token) > _MOST_DIGITS and token.lstrip(b"-").isdigit():
            why = why or f"has an integer of {len(token)} digits"
        elif depth == 1 and not key:
            key = _scalar(token) if token[:1] == b'"' else ""
        elif depth == 1 and key != "tuple":
            known[key] = _scalar(token)
    if depth or not why or not has_values or not {"id", "comp", "stream", "task"} <= set(known):
        return None
    return known, why


def _scalar(token: bytes) -> Any:
    import json

    if len(token) > _LONGEST_SCALAR:
        return None
    try:
        return json.loads(token)
    except ValueError:
        return None
