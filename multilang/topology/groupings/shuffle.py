"""Shuffle grouping: tuples are spread evenly and at random over the tasks."""

from __future__ import annotations

from itertools import cycle

from multilang.topology.groupings.base import Grouping, always

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class ShuffleGrouping(Grouping):
    """Spreads the tuples evenly and at random over the tasks."""

    __slots__ = ()

    type = "shuffle"
    wire_type = "SHUFFLE"
    storm_method = "shuffleGrouping"
    is_trusted = True
    is_arbitrary = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return in_turn(tasks, context.random)


def in_turn(tasks: Tasks, random: Random) -> Chooser:
    """Return a function that chooses the tasks in a random order, again and again, as Storm's ShuffleGrouping does."""
    if len(tasks) == 1:
        return always(tasks)
    turns = [(task,) for task in tasks]
    random.shuffle(turns)
    turn = cycle(turns).__next__
    return lambda _values: turn()
