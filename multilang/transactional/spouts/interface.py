"""The interface of a source whose rows can be read again, and the error that it raises.

A source has partitions, and each row of a partition has a position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    Position: TypeAlias = Any  # a JSON value
    Rows: TypeAlias = Sequence[Sequence[Any]]


class Source(ABC):
    """A source of rows that can be read again. Each task of a spout opens one.

    Its ``__init__`` raises ConfigError if there is no such source.

    Checksums of the rows that were read are stored with each position, and compared when the spout resumes there: another
    source is refused (see ``multilang.transactional.spouts.history``). So rows that were read must not change, unless the
    source ``forgets``.

    Attributes:
        forgets: Whether rows that were read may be removed later, as messages of a topic are. Then the remaining rows are
            compared.
        compares_itself: Whether ``resume`` and the positions prove that the source is the same. Then nothing else is stored or
            compared.
    """

    forgets: bool = False

    compares_itself: bool = False

    def discover(self) -> None:  # noqa: B027  # not every source can grow
        """Look for new partitions. Only the coordinator calls it."""

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the number of partitions. A partition keeps its number for ever."""

    @abstractmethod
    def first(self, partition: int) -> Position:
        """Return the position at which a partition begins.

        Args:
            partition: The partition's number.
        """

    def describe(self) -> str:
        """Return the source in the words of a message: ``folder /var/log``; unless overridden, its class."""
        return type(self).__name__

    def identity(self, partition: int) -> Mapping[str, Any]:
        """Return what identifies a partition beside its rows, by name: ``{"file": "orders.log"}``.

        It is stored with each position. A source with another identity is refused; an entry that is None, or that was not
        there before, is not compared.

        Args:
            partition: The partition's number.

        Returns:
            JSON values by their names in messages; nothing unless overridden.

        Raises:
            SourceUnavailable: It is unknown now.
        """
        return {}

    def stamp(self, partition: int) -> Any:
        """Return a value that changes when a partition may have been replaced, so that its rows are compared again.

        Args:
            partition: The partition's number.

        Returns:
            A value that is cheap to get; None unless overridden: the rows are compared once in each task.
        """
        return None

    def left(self, partition: int, start: Position, end: Position) -> Rows | None:
        """Return the rows between two positions that are left, to be compared with those that were read.

        Args:
            partition: The partition's number.
            start: The position to begin at.
            end: The position after the last row.

        Returns:
            The rows of ``read_again`` unless overridden; None if the identity is enough, so that none need be compared.

        Raises:
            SourceUnavailable: They can't be read now.
        """
        return self.read_again(partition, start, end)

    def resume(self, positions: Mapping[int, Position]) -> None:  # noqa: B027  # the rows are compared anyway
        """Check more than the rows that were read before. The coordinator calls it once, before it reads anything.

        Args:
            positions: The position after the last row that was read of each partition, including removed partitions.

        Raises:
            SourceUnavailable: That can't be checked now. Any other exception ends the task.
        """

    @abstractmethod
    def read(self, partition: int, position: Position, most: int) -> tuple[Rows, Position]:
        """Return rows from ``position`` on that are there now.

        Args:
            partition: The partition's number.
            position: The position to begin at.
            most: The largest number of rows to return.

        Returns:
            The rows, and the position after them.

        Raises:
            SourceUnavailable: They can't be read now.
        """

    @abstractmethod
    def read_again(self, partition: int, start: Position, end: Position) -> Rows:
        """Return the rows between two positions, which were read before.

        Args:
            partition: The partition's number.
            start: The position to begin at.
            end: The position after the last row.

        Raises:
            SourceUnavailable: They can't be read now.
        """

    @abstractmethod
    def has_more(self, partition: int, position: Position) -> bool:
        """Return whether ``read`` would return any row.

        Args:
            partition: The partition's number.
            position: The position to begin at.

        Raises:
            SourceUnavailable: That is unknown now.
        """

    def committed(self, positions: Mapping[int, Position]) -> None:  # noqa: B027  # few sources need it
        """Note that all rows before these positions are committed.

        The coordinator calls it now and then, and at the end.

        Args:
            positions: The positions by partition.
        """

    def notices(self) -> list[str]:
        """Return, once each, the problems noticed while rows were read, such as lost rows. They are reported as errors.

        A problem that prevents reading is a SourceUnavailable instead.
        """
        return []

    def close(self) -> None:  # noqa: B027  # not every source has something to close
        """Close open files and connections: the task ends."""
