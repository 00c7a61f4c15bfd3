"""Copies of values that user code may change in place."""

from __future__ import annotations

from collections import deque
from copy import deepcopy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIXED = frozenset({int, float, str, bool, type(None)})


def copied(value: Any) -> Any:
    """Return a copy of a collection; other objects are returned as they are."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is list:
        return [each if type(each) in _FIXED else copied(each) for each in value]
    if kind is tuple:
        return value if _FIXED.issuperset(map(type, value)) else tuple(map(copied, value))
    if kind is dict:
        return {key: each if type(each) in _FIXED else copied(each) for key, each in value.items()}
    return deepcopy(value) if isinstance(value, dict | list | set | tuple | deque | bytearray) else value
