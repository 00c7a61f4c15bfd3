"""What a coordinated bolt knows of each id."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from typing import Any

    from multilang.protocol.messages import Tuple


class Tracking:
    """One id.

    ``reports``: upstream tasks that have said how many tuples they sent here, ``expected`` all in all; ``received``: tuples
    that the delegate acked; ``identified``: the id tuple came, or none is needed; ``counts``: tuples emitted, by task;
    ``asked``: emits whose task ids are still to come; ``held``: tuples to be acked when the id is finished;
    ``finishing``: the delegate has finished, the counts may wait for task ids; ``failed``: so is whatever comes yet;
    ``came``: at which tick; ``results``: what the last step of a DRPC topology emitted.
    """

    __slots__ = (
        "_last_answer",
        "_lock",
        "asked",
        "came",
        "counts",
        "expected",
        "failed",
        "finishing",
        "held",
        "id",
        "identified",
        "received",
        "reports",
        "results",
    )

    def __init__(
        self, id: Hashable, identified: bool, came: int, last_answer: Callable[[Tracking], None], lock: Any
    ) -> None:
        self.id = id
        self.identified = identified
        self.came = came
        self.reports = self.expected = self.received = self.asked = self.results = 0
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
    """The ids of a task, in the order in which they came."""

    def let_go(self, before: float) -> Iterator[Tracking]:
        """The ids that came before that tick, taken out."""
        while self:
            id, info = next(iter(self.items()))  # the oldest first, as dicts keep them
            if info.came >= before:
                return
            del self[id]
            yield info
