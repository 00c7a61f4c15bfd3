"""What a coordinated bolt knows of each id."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from typing import Any

    from multilang.protocol.messages import Tuple

_LIFE = 3  # generations, see Tracked


class Tracking:
    """One id.

    ``reports``: upstream tasks that have said how many tuples they sent here, ``expected`` all in all; ``received``: tuples
    that the delegate acked; ``identified``: the id tuple came, or none is needed; ``counts``: tuples emitted, by task;
    ``asked``: emits whose task ids are still to come; ``held``: tuples to be acked when the id is finished;
    ``finishing``: the delegate has finished, the counts may wait for task ids; ``failed``: so is whatever comes yet.
    """

    __slots__ = (
        "_last_answer",
        "_lock",
        "asked",
        "counts",
        "expected",
        "failed",
        "finishing",
        "generation",
        "held",
        "id",
        "identified",
        "received",
        "reports",
    )

    def __init__(
        self, id: Hashable, identified: bool, generation: int, last_answer: Callable[[Tracking], None], lock: Any
    ) -> None:
        self.id = id
        self.identified = identified
        self.generation = generation
        self.reports = self.expected = self.received = self.asked = 0
        self.failed = self.finishing = False
        self.counts: dict[int, int] = {}
        self.held: list[Tuple] = []
        self._last_answer = last_answer
        self._lock = lock

    def sent(self, tasks: Any) -> None:
        """A tuple of this id went to these tasks."""
        counts = self.counts
        for task in tasks:
            counts[task] = counts.get(task, 0) + 1

    def answered(self, tasks: list[int]) -> None:
        """The task ids of an emit came."""
        with self._lock:
            counts = self.counts
            for task in tasks:
                counts[task] = counts.get(task, 0) + 1
            self.asked -= 1
            if not self.asked and self.finishing:
                self._last_answer(self)


class Tracked(dict):  # type: ignore[type-arg]
    """The ids of a task. One that is never finished is let go in the third rotation after it came (Storm's TimeoutItems).

    Rotated twice per message timeout T, an id lives between T and 1.5 T.
    """

    generation = 0

    def rotate(self) -> Iterator[Tracking]:
        """Begin a generation; the ids whose time is over, taken out."""
        self.generation += 1
        oldest = self.generation - _LIFE
        while self:
            id, info = next(iter(self.items()))  # the oldest first, as dicts keep them
            if info.generation > oldest:
                return
            del self[id]
            yield info
