"""Shuffle, none and local-or-shuffle grouping: tuples are spread evenly and at random over tasks."""

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


class NoneGrouping(ShuffleGrouping):
    """Sends the tuples to any tasks, since it does not matter; the same as shuffle."""

    __slots__ = ()

    type = "none"
    wire_type = "NONE"
    storm_method = "noneGrouping"


class LocalOrShuffleGrouping(Grouping):
    """Spreads the tuples over the tasks in the emitter's own worker, or over all tasks if it has none of them."""

    __slots__ = ()

    type = "local_or_shuffle"
    wire_type = "LOCAL_OR_SHUFFLE"
    storm_method = "localOrShuffleGrouping"
    is_trusted = True
    is_arbitrary = True
    prefers_local = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        local = tuple(task for task in tasks if task in context.local_tasks)
        return in_turn(local or tasks, context.random)
