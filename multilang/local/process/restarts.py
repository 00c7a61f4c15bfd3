"""The rule by which a task's dead child is followed by another one, or given up."""

from __future__ import annotations

from multilang.child.process import UNUSABLE
from multilang.runtime import task

_LONGEST_DELAY_SECS = 10.0  # before another start of a child that dies while it starts


class Restarts:
    """The deaths of a task's children, and the delay before the next start.

    A child is started again at once after a life with some work, otherwise after a growing delay. A child that dies
    again and again while it starts is given up, and so is a spout's that emits nothing before it dies. A bolt's that dies of
    its tuples is not, since the next tuples may be different.

    Attributes:
        deaths: Deaths in a row of children that did no work.
        bad_starts: Deaths in a row of children that neither worked nor answered a heartbeat.
    """

    def __init__(self) -> None:
        self.deaths = 0
        self.bad_starts = 0

    def delay_after(self, status: int, secs: float, *, worked: bool, answered: bool, ended_by_us: bool) -> float | None:
        """Note a death, and return the seconds until the next start; None: the task is given up.

        Args:
            status: The child's exit status; negative for a signal.
            secs: The length of its life.
            worked: Whether it did something beyond the handshake; a spout's: whether it emitted.
            answered: Whether it answered a heartbeat, so that its start was over.
            ended_by_us: Whether it was ended here, for example because it broke the protocol.
        """
        if worked or secs > task.LONG_ENOUGH_SECS:
            self.deaths = self.bad_starts = 0
        elif status == -9 and not ended_by_us:
            self.deaths = max(self.deaths, 1)  # it was killed from outside, which says nothing about its start
        else:
            self.deaths += 1
            self.bad_starts = 0 if answered else self.bad_starts + 1
        if self.bad_starts >= task.START_ATTEMPTS or (status == UNUSABLE and self.bad_starts):
            return None
        longest = _LONGEST_DELAY_SECS if self.bad_starts else task.LONGEST_DELAY_SECS
        return min(task.FIRST_DELAY_SECS * 2 ** min(self.deaths, 10), longest) if self.deaths else 0.0
