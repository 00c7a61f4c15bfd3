"""Values as JSON has them, each of one type: in JSON a tuple is a list, and an object of a subclass of str is a str."""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Row: TypeAlias = list[Any] | tuple[Any, ...]  # the values of one row

_FLAT = {str, int, float, bool, type(None)}
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (  # the method returns the plain value
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


def plain_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows with values as JSON has them; they are the same object if nothing had to be changed."""
    if set(map(type, chain.from_iterable(rows))) <= _FLAT:
        return rows
    return [row if set(map(type, row)) <= _FLAT else list(map(_plain, row)) for row in rows]


def _plain(value: Any) -> Any:
    """Return what JSON would give back; a value that JSON does not have is returned as it is."""
    if type(value) in _FLAT:
        return value
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    for base, convert in _BASES:
        if isinstance(value, base):
            return convert(value)
    return value
