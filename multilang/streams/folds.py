"""Operations with a memory of each key: running results, and partial results of a batch."""

from __future__ import annotations

from collections import Counter

from multilang.helpers.copies import copied
from multilang.streams.operations import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.streams.memory import Memory


class Fold:
    """The way in which values become an accumulator, and that a result.

    Attributes:
        init: Returns a new accumulator.
        add: Returns the accumulator with one value more.
        merge: Returns the accumulator of two; None: partial results can't be merged.
        result: Returns the result for an accumulator; None: the accumulator itself.
        needs_values: Whether ``add`` uses its value.
    """

    __slots__ = ("add", "init", "merge", "needs_values", "result")

    def __init__(
        self,
        init: Callable[[], Any],
        add: Callable[[Any, Any], Any],
        merge: Callable[[Any, Any], Any] | None = None,
        result: Callable[[Any], Any] | None = None,
        needs_values: bool = True,
    ) -> None:
        self.init = init
        self.add = add
        self.merge = merge
        self.result = result
        self.needs_values = needs_values

    def results(self, accumulators: dict[Any, Any]) -> list[Any]:
        """Return pairs of keys and results."""
        result = self.result
        if result is None:  # later stages may change their elements
            return [(key, copied(accumulator)) for key, accumulator in accumulators.items()]
        return [(key, result(accumulator)) for key, accumulator in accumulators.items()]

    def partial(self, pairs: list[Any]) -> dict[Any, Any]:
        """Return the accumulator of each key's values."""
        init, add = self.init, self.add
        found: dict[Any, Any] = {}
        for key, value in pairs:
            found[key] = add(found[key] if key in found else init(), value)
        return found

    def partial_of_keys(self, keys: list[Any]) -> Mapping[Any, Any]:
        """Return the accumulator of each key, with as many values as the key is in the list; they are not used."""
        return Counter(keys) if self.add is add_one else self.partial([(key, None) for key in keys])


def zero() -> int:
    """Return the count of nothing."""
    return 0


def add_one(count: int, _: object) -> int:
    """Return a count with one more."""
    return count + 1


def add_counts(first: int, second: int) -> int:
    """Return the sum of two counts."""
    return first + second


def counting() -> Fold:
    """Return the fold that counts."""
    return Fold(zero, add_one, add_counts, needs_values=False)


class Reduction(Fold):
    """The fold of a function that makes one value of two; an accumulator is a list with the value, or empty."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        super().__init__(list, self._add, self._merge, _first)

    def _add(self, accumulator: list[Any], value: Any) -> list[Any]:
        return [self.function(accumulator[0], value) if accumulator else value]

    def _merge(self, first: list[Any], second: list[Any]) -> list[Any]:
        return [self.function(first[0], second[0])] if first and second else first or second


def _first(accumulator: list[Any]) -> Any:
    return accumulator[0]


def collecting() -> Fold:
    """Return the fold that collects all values in a list."""
    return Fold(list, _append, _joined)


def _append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _joined(first: list[Any], second: list[Any]) -> list[Any]:
    return first + second


class Keyed(Operation):
    """The base of operations with a memory of each key.

    Attributes:
        memory: The memory of the task; set when it starts.
    """

    is_head = True
    memory: Memory

    def __init__(self, name: str) -> None:
        self.name = name


class Aggregate(Keyed):
    """The running result of each key: pairs become one pair for each key among them, with its newest result."""

    def __init__(self, name: str, fold: Fold) -> None:
        super().__init__(name)
        self.fold = fold

    def apply(self, elements: list[Any]) -> list[Any]:
        fold, memory = self.fold, self.memory
        touched: dict[Any, Any] = {}
        add = fold.add
        for key, value in elements:
            accumulator = touched[key] if key in touched else memory.get(key, fold.init)
            touched[key] = add(accumulator, value)
        memory.put_all(touched)
        return fold.results(touched)

    def merge(self, elements: list[Any]) -> list[Any]:
        """Return what ``apply`` returns, for pairs of keys and accumulators."""
        fold, memory = self.fold, self.memory
        touched: dict[Any, Any] = {}
        merge: Any = fold.merge
        for key, other in elements:
            accumulator = touched[key] if key in touched else memory.get(key, fold.init)
            touched[key] = merge(accumulator, other)
        memory.put_all(touched)
        return fold.results(touched)


class Update(Keyed):
    """The state of each key: each pair becomes the pair of its key and the key's new state."""

    def __init__(self, init: Callable[[], Any], update: Callable[[Any, Any], Any]) -> None:
        super().__init__("update_state")
        self.init = init
        self.update = update

    def apply(self, elements: list[Any]) -> list[Any]:
        init, update, memory = self.init, self.update, self.memory
        touched: dict[Any, Any] = {}
        found = []
        for key, value in elements:
            state = touched[key] if key in touched else memory.get(key, init)
            touched[key] = state = update(state, value)
            found.append((key, copied(state)))  # as it is now
        memory.put_all(touched)
        return found


class Query(Keyed):
    """Each pair becomes the pair of its key, and its value with the key's state, or None.

    Attributes:
        table: The stage with the states, in whose component it runs.
    """

    def __init__(self, table: str) -> None:
        super().__init__("state_query")
        self.table = table

    def apply(self, elements: list[Any]) -> list[Any]:
        memory = self.memory
        return [(key, (value, memory.get(key, _nothing))) for key, value in elements]


def _nothing() -> None:
    """Return the state of a key without one."""
