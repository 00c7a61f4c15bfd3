"""The tuples that a bolt's ``process_many`` gets together."""

from __future__ import annotations

from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Base = Sequence[Tuple]
else:
    Base = object  # a list has a sequence's methods, and needs none of its own


class Tuples(Base):
    """Tuples of one stream of one task, in order: a sequence that is never empty.

    If they arrived in a block, a tuple is made when it is asked for. ``column`` and ``rows`` need none.
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
