"""The records of a coordinated bolt about each id."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from typing import Any

    from multilang.protocol.messages import Tuple


class Tracking:
    """The record of one id.

    Attributes:
        id: The id.
        reports: The number of upstream tasks that have reported how many tuples they sent here.
        reporters: The tasks that have reported; of a source that works with a single task, its component.
        expected: The sum of these reports.
        received: The number of tuples that the bolt acked.
        identified: Whether the id tuple came, or none is needed.
        counts: The number of emitted tuples by task.
        asked: The number of emits whose task ids are still to come.
        held: The tuples to ack when the id is finished.
        finishing: Whether the bolt has finished; the counts may still wait for task ids.
        failed: Whether the id failed, and all its later tuples with it.
        came: The tick at which it came.
        results: The number of tuples that the last step of a DRPC topology emitted.
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
        "reporters",
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
        self.reporters: set[int | str] = set()
        self.counts: dict[int, int] = {}
        self.held: list[Tuple] = []
        self._last_answer = last_answer
        self._lock = lock

    def sent(self, tasks: Any) -> None:
        """Count a tuple of this id for these tasks."""
        counts = self.counts
        for task in tasks:
            counts[task] = counts.get(task, 0) + 1

    def answered(self, tasks: list[int]) -> None:
        """Count the task ids of an emit, which have come."""
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
        """Remove the ids that came before tick ``before``, and yield them."""
        while self:
            id, info = next(iter(self.items()))  # the oldest first: dicts keep their order
            if info.came >= before:
                return
            del self[id]
            yield info
