"""The keys of windows inside of a task: values that JSON and Storm's worker tell apart are different keys.

To Python, 1, 1.0 and True are equal, and so are 0.0 and -0.0. To a fields grouping they are not: it may send them to
different tasks. So windows in one task keep them apart, too, and the answer does not depend on the number of tasks.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAIN = frozenset({str, int, type(None)})
"""The types whose values are keys as they are."""


class Told:
    """A boolean or a fraction as a key: it is equal to itself alone."""

    __slots__ = ("_text", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self._text = repr(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Told and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text


def inner(value: Any) -> Any:
    """Return the key of a value, or of a tuple of values, inside of a task; one that can't be a key as it is."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is bool or kind is float:
        return Told(value)
    if kind is tuple and not PLAIN.issuperset(map(type, value)):
        return tuple(map(inner, value))
    return value


def outer(key: Any) -> Any:
    """Return the value, or the tuple of values, that a key inside of a task is made of."""
    kind = type(key)
    if kind is Told:
        return key.value
    if kind is tuple and not PLAIN.issuperset(map(type, key)):
        return tuple(map(outer, key))
    return key


def to_text(key: Any) -> str:
    """Return a key as JSON."""
    return dumps(outer(key))


def from_text(text: str) -> Any:
    """Return the key that ``to_text`` turned into ``text``."""
    return from_json(loads(text))


def from_json(value: Any) -> Any:
    """Return the key of a value that was read from JSON, where a tuple is a list."""
    return inner(tuple(value) if isinstance(value, list) else value)
