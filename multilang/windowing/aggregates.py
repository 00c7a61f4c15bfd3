"""Aggregates: accumulators of a window's tuples, which then need not be stored."""

from __future__ import annotations

from multilang.component.errors import ConfigError, ReportedFailedException
from multilang.windowing.keys import inner, outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.protocol.messages import Tuple


class Aggregate:
    """The base of aggregates. A subclass folds each tuple into an accumulator.

    Neither ``merge`` nor ``result`` may change an accumulator; ``add`` may. Tuples may be added in any order, and in
    parts that are merged: the result must not depend on it.
    """

    def init(self) -> Any:
        """Return a new accumulator."""
        raise TypeError(f"{type(self).__name__} has no init method: define init(self), which returns an accumulator")

    def add(self, accumulator: Any, tup: Tuple) -> Any:
        """Return the accumulator with one tuple more; it may be the same object, changed."""
        raise TypeError(f"{type(self).__name__} has no add method: define add(self, accumulator, tup)")

    def merge(self, first: Any, second: Any) -> Any:
        """Return a new accumulator for the tuples of both."""
        raise TypeError(
            f"{type(self).__name__} has no merge method, which sliding windows and sessions need: define merge(self, first, second)"
        )

    def result(self, accumulator: Any) -> Any:
        """Return the result for an accumulator, ``window.result``; the accumulator itself unless overridden."""
        return accumulator

    def save(self, accumulator: Any) -> Any:
        """Return the accumulator as a value that JSON has, for a checkpoint; as it is unless overridden."""
        return accumulator

    def load(self, saved: Any) -> Any:
        """Return the accumulator that ``save`` turned into ``saved``."""
        return saved


class Count(Aggregate):
    """The number of tuples."""

    def init(self) -> int:
        return 0

    def add(self, accumulator: int, tup: Tuple) -> int:
        return accumulator + 1

    def merge(self, first: int, second: int) -> int:
        return first + second


def checked_field(aggregate: str, field: object) -> str:
    """Return the name of a field that an aggregate is given.

    Raises:
        ConfigError: It is no name.
    """
    if not isinstance(field, str) or not field:
        raise ConfigError(f"{aggregate} needs a field's name, such as 'amount', not {field!r}")
    return field


class _OfField(Aggregate):
    """The base of aggregates of one field's values."""

    takes = "numbers"  # in the words of a message

    def __init__(self, field: str) -> None:
        self.field = checked_field(type(self).__name__, field)

    def _refused(self, value: Any) -> ReportedFailedException:
        """Return the error for a value that the aggregate can't have."""
        return ReportedFailedException(
            f"{type(self).__name__} takes {self.takes}, and field {self.field!r} has the value {value!r:.80}; the tuple fails"
        )


class Sum(_OfField):
    """The sum of a field's values. None is left out, as SQL does.

    Args:
        field: The field.
    """

    def init(self) -> Any:
        return 0

    def add(self, accumulator: Any, tup: Tuple) -> Any:
        value = tup[self.field]
        try:
            return accumulator + value
        except TypeError:
            if value is None:
                return accumulator
            raise self._refused(value) from None

    def merge(self, first: Any, second: Any) -> Any:
        return first + second


class Mean(_OfField):
    """The mean of a field's values. None is left out, as SQL does.

    Args:
        field: The field.
    """

    def init(self) -> tuple[Any, int]:
        return 0, 0

    def add(self, accumulator: tuple[Any, int], tup: Tuple) -> tuple[Any, int]:
        value = tup[self.field]
        try:
            return accumulator[0] + value, accumulator[1] + 1
        except TypeError:
            if value is None:
                return accumulator
            raise self._refused(value) from None

    def merge(self, first: tuple[Any, int], second: tuple[Any, int]) -> tuple[Any, int]:
        return first[0] + second[0], first[1] + second[1]

    def result(self, accumulator: tuple[Any, int]) -> Any:
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def load(self, saved: Any) -> tuple[Any, int]:
        return saved[0], saved[1]


class _Extreme(_OfField):
    """The base of Min and Max."""

    takes = "numbers alone, or text alone"
    _chosen: Any  # a function that returns one of two values

    def init(self) -> Any:
        return None

    def add(self, accumulator: Any, tup: Tuple) -> Any:
        value = tup[self.field]
        if value is None:
            return accumulator
        try:
            if accumulator is None and type(value) not in (list, dict):
                return value
            return self._chosen(accumulator, value)
        except TypeError:
            raise self._refused(value) from None

    def merge(self, first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return self._chosen(first, second)


class Min(_Extreme):
    """The least of a field's values, which are all numbers or all text. None is left out, as SQL does.

    Args:
        field: The field.
    """

    _chosen = min


class Max(_Extreme):
    """The greatest of a field's values, which are all numbers or all text. None is left out, as SQL does.

    Args:
        field: The field.
    """

    _chosen = max


class Distinct(_OfField):
    """The exact number of different values of a field; it stores each value once.

    Args:
        field: The field, whose values are strings, numbers, booleans or None.
    """

    takes = "strings, numbers, booleans and None"

    def init(self) -> set[Any]:
        return set()

    def add(self, accumulator: set[Any], tup: Tuple) -> set[Any]:
        value = tup[self.field]
        try:
            accumulator.add(value)
        except TypeError:
            raise self._refused(value) from None
        return accumulator

    def merge(self, first: set[Any], second: set[Any]) -> set[Any]:
        return first | second

    def result(self, accumulator: set[Any]) -> int:
        return len(accumulator)

    def save(self, accumulator: set[Any]) -> list[Any]:
        return list(accumulator)

    def load(self, saved: Any) -> set[Any]:
        return set(saved)


class TopN(_OfField):
    """The most frequent values of a field, as ``[[value, count], ...]``; it stores a count for each value.

    Values with equal counts are in the order of their text, so that the result does not depend on the order of arrival.
    1, 1.0 and ``true`` are different values, as in ``key_by``.

    Args:
        n: The number of values.
        field: The field, whose values are strings, numbers, booleans or None.
    """

    takes = "strings, numbers, booleans and None"

    def __init__(self, n: int, field: str) -> None:
        super().__init__(field)
        if type(n) is not int or n < 1:
            raise ConfigError(f"TopN needs a whole number of values from 1, not {n!r}: write TopN(10, {field!r})")
        self.n = n

    def init(self) -> dict[Any, int]:
        return {}

    def add(self, accumulator: dict[Any, int], tup: Tuple) -> dict[Any, int]:
        value = inner(tup[self.field])
        try:
            accumulator[value] = accumulator.get(value, 0) + 1
        except TypeError:
            raise self._refused(outer(value)) from None
        return accumulator

    def merge(self, first: dict[Any, int], second: dict[Any, int]) -> dict[Any, int]:
        merged = dict(first)
        for value, count in second.items():
            merged[value] = merged.get(value, 0) + count
        return merged

    def result(self, accumulator: dict[Any, int]) -> list[list[Any]]:
        from heapq import nsmallest

        best = nsmallest(
            self.n, accumulator.items(), key=lambda item: (-item[1], str(item[0]), isinstance(item[0], str))
        )
        return [[outer(value), count] for value, count in best]

    def save(self, accumulator: dict[Any, int]) -> list[list[Any]]:
        return [[outer(value), count] for value, count in accumulator.items()]

    def load(self, saved: Any) -> dict[Any, int]:
        return {inner(value): count for value, count in saved}
