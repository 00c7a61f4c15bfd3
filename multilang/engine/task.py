"""The parts of a task's life cycle that are the same on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multilang.engine.links import OnTaskIds
    from multilang.engine.plan import TaskPlan

START_ATTEMPTS = 5  # deaths in a row after which the topology ends: in initialize(), or of a spout before any tuple
LONG_ENOUGH_SECS = 20.0  # a task that ran so long counts as started, even without any work
FIRST_DELAY_SECS = 0.05
LONGEST_DELAY_SECS = 1.0  # before a restart of a component that dies of its work: other work waits for it
_LONGEST_START_DELAY_SECS = 10.0  # before a restart of one that dies while it starts
IDLE_ROUNDS = 5  # empty nexts in a row after which a spout that can't tell counts as exhausted


class Later:
    """The receiver of an ``on_task_ids`` callback: it gets the ids at the point where a tuple would be executed."""

    __slots__ = ("countdown", "execute", "plan")

    def __init__(self, plan: TaskPlan, call: OnTaskIds) -> None:
        self.plan = plan
        self.execute = call
        self.countdown = -1  # it is not counted, so that this never reaches 0


class Restarts:
    """The deaths of one task in a row, and the delay before its next start.

    A task that did some work is restarted at once, otherwise after a growing delay. One that dies again and again while
    it starts is given up, and so is a spout's that emits nothing before it dies. A bolt's that dies of its tuples is not,
    since the next tuples may be different.

    Attributes:
        deaths: Deaths in a row without any work.
        bad_starts: Deaths in a row without any work, and before the start was over.
    """

    def __init__(self) -> None:
        self.deaths = 0
        self.bad_starts = 0

    def delay_after(
        self, secs: float, *, worked: bool, answered: bool = False, killed: bool = False, hopeless: bool = False
    ) -> float | None:
        """Note a death, and return the seconds until the next start; None: the task is given up.

        Args:
            secs: The seconds that it ran.
            worked: Whether the task did something beyond its start; a spout's: whether it emitted.
            answered: Whether its start was over.
            killed: Whether it was killed from elsewhere, which is no fault of the task.
            hopeless: Whether a restart would fail as well.
        """
        if worked or secs > LONG_ENOUGH_SECS:
            self.deaths = self.bad_starts = 0
        elif killed:
            self.deaths = max(self.deaths, 1)
        else:
            self.deaths += 1
            self.bad_starts = 0 if answered else self.bad_starts + 1
        if self.bad_starts >= START_ATTEMPTS or (hopeless and self.bad_starts):
            return None
        longest = _LONGEST_START_DELAY_SECS if self.bad_starts else LONGEST_DELAY_SECS
        return min(FIRST_DELAY_SECS * 2 ** min(self.deaths, 10), longest) if self.deaths else 0.0
