"""The kinds of differences between values that were sent and values that were returned, each of which has a case of its own."""

from __future__ import annotations

from typing import Any

from multilang.conformance.values import same

_OF_WORDS = "common/json/10"  # true, false and null
_OF_LISTS = _OF_MAPS = "common/json/12"
_OF_NUMBERS = "common/numbers/5"
_OF_BLANKS = "common/json/20"


def case_of_difference(received: Any, expected: Any) -> str | None:
    """Return the path of the case that all differences between two values are of; None: there is no such case.

    Args:
        received: The value that came.
        expected: The value that was due.
    """
    paths = _paths(received, expected)
    return next(iter(paths)) if len(paths) == 1 else None


def _paths(received: Any, expected: Any) -> set[str | None]:
    if same(received, expected):
        return set()
    if isinstance(received, list) and isinstance(expected, list) and same(_flat(received), _flat(expected)):
        return {_OF_LISTS}
    if isinstance(received, list) and isinstance(expected, list) and len(received) == len(expected):
        pairs = list(zip(received, expected, strict=True))
    elif isinstance(received, dict) and isinstance(expected, dict) and received.keys() == expected.keys():
        pairs = [(value, expected[key]) for key, value in received.items()]
    else:
        return {_path(received, expected)}
    return {path for pair in pairs for path in _paths(*pair)}


def _flat(value: list[Any]) -> list[Any]:
    """Return what is in a list and in the lists inside it, in order."""
    return [inner for each in value for inner in (_flat(each) if isinstance(each, list) else [each])]


def _path(received: Any, expected: Any) -> str | None:
    """Return the path of the case of one difference."""
    if isinstance(expected, bool):
        return _OF_WORDS
    if received is None or expected is None:
        return _OF_WORDS
    if isinstance(received, bool):
        return None
    if isinstance(expected, int | float) and isinstance(received, str):
        return _OF_NUMBERS
    if isinstance(expected, str) and isinstance(received, int | float):
        return _OF_NUMBERS
    if isinstance(expected, dict) and isinstance(received, str | list):
        return _OF_MAPS
    if isinstance(expected, str) and isinstance(received, str) and received.split() == expected.split():
        return _OF_BLANKS
    return None
