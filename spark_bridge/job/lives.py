"""A spout's task that runs in the driver: what it has emitted, and its lives.

One that dies is started again, as everywhere, but not for ever.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from multilang.errors import SparkJobError
from multilang.runtime.task import Restarts

if TYPE_CHECKING:
    from typing import Any

    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan

    Emitted = tuple[Any, list[Any], str | None, int | None, int]  # message id, values, stream, direct task, life


class Emitting:
    """The tuples that a task has emitted since they were last taken.

    They come of any call: a spout may also emit when it is activated, or in answer to an ack.

    Args:
        left: How many tuples may be taken.
    """

    def __init__(self, left: float) -> None:
        self.emitted: list[Emitted] = []
        self._left = left

    @property
    def left(self) -> float:
        """The number of tuples that the spout may still emit."""
        return self._left - len(self.emitted)

    def take(self) -> list[Emitted]:
        """Return what was emitted, which is taken then."""
        taken = self.emitted[:]
        self.emitted.clear()
        self._left -= len(taken)
        return taken

    def bound(self, before: int) -> None:
        """Leave out what is beyond the bound of what was emitted unasked, after the first ``before`` tuples."""
        if self.left < 0:
            del self.emitted[max(before, len(self.emitted) + int(self.left)) :]


class Lives:
    """The deaths of one task in a row that led nowhere.

    A life led somewhere if it lasted long or emitted something, but not if its last tuple was that of the life before: a spout that
    begins anew each time, and dies at the same place, would do so for ever, and a job has an end.

    ``number``: of the present life, from 0; ``last``: the last tuple of this life, None before the first one.
    """

    def __init__(self, plan: TaskPlan, links: Links) -> None:
        self.number = 0
        self.last: tuple[Any, ...] | None = None
        self._plan = plan
        self._links = links
        self._before: tuple[Any, ...] | None = None
        self._restarts = Restarts()
        self._began = time.monotonic()

    def end(self, message: str) -> None:
        """Report a death, and wait a little before the next life, longer each time.

        Raises SparkJobError when the task is given up.
        """
        self._links.report(self._plan, message)
        is_same = self.last is not None and self.last == self._before
        secs = 0.0 if is_same else time.monotonic() - self._began
        worked = self.last is not None and not is_same
        delay = self._restarts.delay_after(secs, worked=worked)
        if delay is None:
            came_to = "getting beyond the same tuple" if is_same else "emitting a tuple"
            raise SparkJobError(f"{self._plan} died {self._restarts.bad_starts} times without {came_to}: {message}")
        self._before = self.last or self._before
        time.sleep(delay)
        self.number += 1
        self.last = None
        self._began = time.monotonic()
