"""Operations without a memory: each makes a list of elements from a list of elements, inside of any component.

Some are heads: a source, a new number of tasks, or a user's bolt begins a component of its own.
"""

from __future__ import annotations

from multilang.streams.keys import check_keys
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def called(operation: str, function: Any) -> Any:
    """Return the function of an operation.

    Raises:
        TopologyError: It can't be called.
    """
    if not callable(function):
        raise TopologyError(f"{operation} takes a function, not {function!r:.80}")
    return function


class Operation:
    """The base of operations.

    Attributes:
        name: The name of stages without a name by the user.
    """

    name = ""
    is_head = False
    """True if a component of its own begins with it."""

    def apply(self, elements: list[Any]) -> list[Any]:
        """Return the results for the elements."""
        raise NotImplementedError


class _OfFunction(Operation):
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = called(self.name, function)


class Map(_OfFunction):
    """Each element becomes the function's result."""

    name = "map"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        return [function(element) for element in elements]


class Filter(_OfFunction):
    """The elements for which the function's result is true."""

    name = "filter"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        return [element for element in elements if function(element)]


class FlatMap(_OfFunction):
    """Each element becomes all items of the function's result."""

    name = "flat_map"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        return [item for element in elements for item in function(element)]


class MapValues(_OfFunction):
    """Each pair's value becomes the function's result."""

    name = "map_values"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        return [(key, function(value)) for key, value in elements]


class FlatMapValues(_OfFunction):
    """Each pair becomes one for every item of the function's result for its value."""

    name = "flat_map_values"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        return [(key, item) for key, value in elements for item in function(value)]


class KeyBy(_OfFunction):
    """Each element becomes the pair of its key and itself."""

    name = "key_by"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        pairs = [(function(element), element) for element in elements]
        check_keys([key for key, _ in pairs])
        return pairs


class KeysOf(KeyBy):
    """The key of each element, where the element itself is not used."""

    def apply(self, elements: list[Any]) -> list[Any]:
        keys = list(map(self.function, elements))
        check_keys(keys)
        return keys


class Peek(_OfFunction):
    """The elements as they are, after the function was called with each."""

    name = "peek"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        for element in elements:
            function(element)
        return elements


class ForEach(Peek):
    """Nothing, after the function was called with each element."""

    name = "for_each"

    def apply(self, elements: list[Any]) -> list[Any]:
        super().apply(elements)
        return []


class Branch(Operation):
    """The elements by the first predicate that holds: one list for each, and a last one for those without."""

    name = "branch"

    def __init__(self, predicates: Sequence[Callable[[Any], object]]) -> None:
        self.predicates = list(predicates)

    def apply(self, elements: list[Any]) -> list[Any]:
        arms: list[list[Any]] = [[] for _ in range(len(self.predicates) + 1)]
        numbered = list(enumerate(self.predicates))
        for element in elements:
            for number, holds in numbered:
                if holds(element):
                    arms[number].append(element)
                    break
            else:
                arms[-1].append(element)
        return arms


class Arm(Operation):
    """The elements of one arm of a branch."""

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self.number = number

    def apply(self, elements: list[Any]) -> list[Any]:
        found: list[Any] = elements[self.number]
        return found


class Merge(Operation):
    """The elements of all its parents, in no particular order."""

    name = "merge"

    def apply(self, elements: list[Any]) -> list[Any]:
        return elements


class Keys(Merge):
    """The pairs as they are, for a new number of tasks after their exchange."""

    name = "repartition"


class Named(Merge):
    """The elements as they are, for a bolt that gets them under other names."""

    name = "fields"


class Untimed(Merge):
    """Pairs for windows by the time of their arrival."""

    name = "window"


class Stamp(_OfFunction):
    """Pairs for windows by event time: each becomes a key, a value, and the value's time."""

    name = "window"

    def apply(self, elements: list[Any]) -> list[Any]:
        function = self.function
        found = []
        for key, value in elements:
            ts = function(value)
            if type(ts) is not int:
                raise TypeError(
                    f"the timestamp is {ts!r:.80} ({type(ts).__name__}); it is a whole number of milliseconds since the epoch"
                )
            found.append((key, value, ts))
        return found


class Source(Operation):
    """A spout, whose component has the stage's name."""

    is_head = True

    def __init__(self, name: str) -> None:
        self.name = name


class Repartition(Operation):
    """The elements as they are, spread over other tasks."""

    name = "repartition"
    is_head = True

    def apply(self, elements: list[Any]) -> list[Any]:
        return elements


class UserBolt(Operation):
    """A bolt of the user's, whose component has the stage's name.

    Attributes:
        fields: The fields of the tuples that it gets; None: those that the stream has by itself.
    """

    is_head = True

    def __init__(self, name: str, fields: Sequence[str] | None) -> None:
        self.name = name
        self.fields = None if fields is None else list(fields)
