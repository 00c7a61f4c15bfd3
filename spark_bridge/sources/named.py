"""The values of an RDD's row by the names that it has for them, as pyspark's Row and a named tuple do."""

from __future__ import annotations

from functools import lru_cache

from multilang.component.errors import ConnectorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def in_order(row: Sequence[Any], fields: tuple[str, ...]) -> list[Any]:
    """Return a row's values in the order of the fields.

    A row that has a value of each field's name gives these, wherever they stand in it, as a DataFrame does with its columns. Any
    other row is taken by position.

    Args:
        row: The row: a list, a tuple, or a tuple whose values have names.
        fields: The stream's fields.

    Raises:
        ConnectorError: Some fields are among the row's names, at other places, so that neither names nor places can be meant.
    """
    kind = type(row)
    if kind is tuple or kind is list:
        return list(row)
    names = getattr(row, "__fields__", None) or getattr(row, "_fields", None)
    places = _places(tuple(names), fields) if names else None
    return list(row) if places is None else [row[place] for place in places]


@lru_cache(1024)
def _places(names: tuple[str, ...], fields: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the place of each field's value among the row's values, or None if the values are taken as they stand."""
    if names == fields:
        return None
    twice = [field for field in fields if names.count(field) > 1]
    if twice:
        raise ConnectorError(f"the row has two values {twice[0]!r}, of {', '.join(names)}; rename one")
    if all(field in names for field in fields):
        return tuple(map(names.index, fields))
    moved = [field for place, field in enumerate(fields) if field in names and names.index(field) != place]
    if moved:
        missing = [field for field in fields if field not in names]
        raise ConnectorError(
            f"the row's values are {', '.join(names)}, and the fields {', '.join(fields)}: {moved[0]!r} stands elsewhere, and "
            f"{missing[0]!r} is not there; give the values the fields' names, or map the rows to plain tuples in the fields' order"
        )
    return None
