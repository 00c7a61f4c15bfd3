"""The tuples that a bolt's ``process_many`` gets together."""

from __future__ import annotations

from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Base = Sequence[Tuple]
else:
    Base = object  # a list has a sequence's methods, and needs none of its own


class Tuples(Base):
    """Tuples of one stream of one task, in order: a sequence that is never empty.

    Where they came in a block, a tuple is made when it is asked for. ``column`` and ``rows`` need none.
    """

    __slots__ = ()

    @property
    def rows(self) -> list[list[Any]]:
        """The values of each tuple."""
        return [tup.values for tup in self]

    @property
    def component(self) -> str:
        """The component that emitted them."""
        return self[0].component

    @property
    def stream(self) -> str:
        """The stream that they were emitted to."""
        return self[0].stream

    @property
    def task(self) -> int:
        """The id of the task that emitted them."""
        return self[0].task

    def column(self, field: int | str) -> list[Any]:
        """Return the values of one field, given by its name or position.

        Args:
            field: The field.

        Raises:
            KeyError: The stream has no such field.
        """
        return [tup[field] for tup in self]


class TupleList(list[Tuple], Tuples):  # a list's own methods are the sequence's
    """Tuples that came one by one."""

    __slots__ = ()


class LazyTuples(Tuples):
    """Tuples whose values are known, each of which is made when it is asked for.

    Attributes:
        rows: The values of each.
        made: The tuples that were made, by their places.
        settled: Whether all were acked or failed together.
    """

    __slots__ = ("made", "rows", "settled")

    def __init__(self, rows: list[list[Any]]) -> None:
        self.rows = rows  # type: ignore[misc]
        self.made: dict[int, Any] = {}
        self.settled = False

    def make(self, index: int) -> Tuple:
        """Return a new tuple for this place, which is unfinished."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.at(each) for each in range(*index.indices(len(self.rows)))]
        return self.at(range(len(self.rows))[index])

    def __iter__(self) -> Iterator[Tuple]:
        return map(self.at, range(len(self.rows)))

    def at(self, index: int) -> Any:
        """Return the tuple at a place, which is not negative."""
        tup = self.made.get(index)
        if tup is None:
            tup = self.made[index] = self.make(index)
            tup.unfinished = not self.settled
        return tup

    @property
    def positions(self) -> dict[str, int]:
        """The positions of the fields."""
        raise NotImplementedError

    def column(self, field: int | str) -> list[Any]:
        try:
            at: Any = field if isinstance(field, int) else self.positions[field]
            return [row[at] for row in self.rows]
        except LookupError:
            return super().column(field)  # which says what is wrong

    @property
    def open(self) -> bool:
        """True if some are neither acked nor failed."""
        made = self.made
        return not self.settled and (
            len(made) < len(self.rows) or next((True for tup in made.values() if tup.unfinished), False)
        )

    def settle(self) -> int:
        """Have none of them unfinished any more, and return how many were."""
        if self.settled:
            return 0
        self.settled = True
        left = len(self.rows)
        for tup in self.made.values():
            left -= not tup.unfinished
            tup.unfinished = False
        return left
