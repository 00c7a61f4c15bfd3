"""Operations with which a component begins: sources, new numbers of tasks, and bolts of the user's."""

from __future__ import annotations

from multilang.streams.operations import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


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
