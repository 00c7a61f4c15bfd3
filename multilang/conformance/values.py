"""Comparing JSON values, and showing them in a report."""

from __future__ import annotations

import json
from typing import Any

# Tuples that come while task ids are awaited: a pipe of 64 KB holds about as many, and Python's stack fewer calls.
WAITING = 1100


def same(a: Any, b: Any) -> bool:
    """Return whether two JSON values are the same. Numbers are compared by value, and a boolean is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    return type(a) is type(b) and bool(a == b)


def cut_texts(size: int) -> list[str]:
    """Return texts of letters of two, three and four bytes: a cut behind any number of bytes is inside of a letter in one of them.

    Args:
        size: The number of bytes of each, or nearly so many.
    """
    return ["x" * offset + letter * (size // len(letter.encode())) for letter in "é漢🐍" for offset in range(2)]


def shown(value: Any) -> str:
    """Return a value as text for the report; long ones are cut."""
    if isinstance(value, bytes):
        text = repr(value)[1:]
    else:
        try:
            text = json.dumps(value, ensure_ascii=True)
        except (TypeError, ValueError):
            text = repr(value)
    return cut(text, 400)


def cut(text: str, most: int) -> str:
    """Return the text for a report: if it is long, its beginning, its length and its end."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}… ({len(text)} characters) …{text[-most // 4 :]}"
