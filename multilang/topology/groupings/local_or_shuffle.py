"""Local-or-shuffle grouping: tuples stay in the emitter's worker if the subscriber has tasks there."""

from __future__ import annotations

from multilang.topology.groupings.base import Grouping
from multilang.topology.groupings.shuffle import in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class LocalOrShuffleGrouping(Grouping):
    """Spreads the tuples over the tasks in the emitter's own worker, or over all tasks if it has none of them."""

    __slots__ = ()

    type = "local_or_shuffle"
    wire_type = "LOCAL_OR_SHUFFLE"
    storm_method = "localOrShuffleGrouping"
    is_trusted = True
    is_arbitrary = True
    is_near = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        near = tuple(task for task in tasks if task in context.local_tasks)
        return in_turn(near or tasks, context.random)
