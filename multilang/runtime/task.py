"""The parts of a task's life that are the same on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multilang.runtime.links import OnTaskIds
    from multilang.runtime.plan import TaskPlan

START_ATTEMPTS = 5  # deaths in a row after which the topology ends: in initialize(), or of a spout before any tuple
LONG_ENOUGH_SECS = 20.0  # a life that counts as a successful start, even without any work
FIRST_DELAY_SECS = 0.05
LONGEST_DELAY_SECS = 1.0  # before another start of a component that dies of its work: other work waits for it
IDLE_ROUNDS = 5  # empty nexts in a row after which a spout that can't tell counts as exhausted


class Later:
    """The receiver of an ``on_task_ids`` callback: it gets the ids at the point where a tuple would be executed."""

    __slots__ = ("countdown", "execute", "plan")

    def __init__(self, plan: TaskPlan, call: OnTaskIds) -> None:
        self.plan = plan
        self.execute = call
        self.countdown = -1  # it is not counted, so that this never reaches 0
