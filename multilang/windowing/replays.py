"""Replays of tuples that windows hold: they are counted once, where the source gives ids."""

from __future__ import annotations

from multilang.windowing.fields import message_id
from multilang.windowing.panes import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypeAlias

    from multilang.protocol.messages import Tuple
    from multilang.windowing.panes import Waiting
    from multilang.windowing.settings import Settings

    Id: TypeAlias = "tuple[str, str, Any]"
    """A component, one of its streams, and the message id of a tuple."""


class Replays:
    """The message ids of the tuples that the windows of a task hold.

    Args:
        field: The field that has them.
        settings: The settings of the task's bolt.

    Attributes:
        expired: Those of tuples that no window holds any more, where a replay must not be counted again, with the time.
    """

    def __init__(self, field: str, settings: Settings) -> None:
        self._field = field
        self._settings = settings
        self._places: dict[Id, Pane | Waiting] = {}
        self.expired: dict[Id, int] = {}
        self._next: list[Tuple] = []  # replays of the tuple that is added next

    def has_taken(self, tup: Tuple) -> bool:
        """Return whether a tuple is a replay of one that is held or that expired; if it is held, it is acked with that one."""
        id = self.id_of(tup)
        place = self._places.get(id)
        if place is None:
            return id in self.expired
        (place.held if isinstance(place, Pane) else place.again).append(tup)
        return True

    def first_ones(self, held: Iterable[Tuple]) -> list[Tuple]:
        """Return the tuples among those that a pane holds, without their replays."""
        return [*{self.id_of(tup): tup for tup in reversed([*held])}.values()][::-1]

    def put(self, tup: Tuple, pane: Pane) -> None:
        """Note that a tuple is in a pane."""
        self.hold([self.id_of(tup)], pane)
        if self._next:
            pane.held += self._next
            self._next = []

    def hold(self, ids: Sequence[Id], pane: Pane) -> None:
        """Note that the tuples with these ids are in a pane; they may have been added together."""
        if pane.ids is None:
            pane.ids = []
        pane.ids += ids
        for id in ids:
            self._places[id] = pane

    def forget(self, ids: Iterable[Id]) -> None:
        """Remove the ids of tuples that no window holds any more."""
        for id in ids:
            self._places.pop(id, None)

    def wait(self, waiting: Waiting) -> None:
        """Note that a tuple waits for earlier ones."""
        self._places[self.id_of(waiting.tup)] = waiting

    def release(self, waiting: Waiting) -> None:
        """Note that a tuple's wait is over: it is added next, with its replays."""
        self._places.pop(self.id_of(waiting.tup), None)
        self._next = waiting.again

    def unassigned(self) -> list[Tuple]:
        """Return the replays of the tuple that was added last, which no window has."""
        found, self._next = self._next, []
        return found

    def id_of(self, tup: Tuple) -> Id:
        """Return the message id of a tuple, with its component and stream."""
        return tup.component, tup.stream, message_id(tup, self._field, self._settings)
