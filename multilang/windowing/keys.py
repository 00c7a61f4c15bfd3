"""The keys of windows inside of a task: values that differ in JSON and in Storm's worker are different keys.

To Python, 1, 1.0 and True are equal, and so are 0.0 and -0.0. To a fields grouping they are not: it may send them to
different tasks. So they are different keys in one task, too, and results do not depend on the number of tasks.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAIN = frozenset({str, int, type(None)})
"""The types whose values are keys as they are."""


class Exact:
    """A boolean or a fraction as a key: it is equal to itself alone."""

    __slots__ = ("_text", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self._text = repr(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Exact and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text


def inner(value: Any) -> Any:
    """Return the key inside of a task of a value, or of a tuple of values, that can't be a key as it is."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is bool or kind is float:
        return Exact(value)
    if kind is tuple and not PLAIN.issuperset(map(type, value)):
        return tuple(map(inner, value))
    return value


def outer(key: Any) -> Any:
    """Return the value, or the tuple of values, of a key inside of a task."""
    kind = type(key)
    if kind is Exact:
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
