"""None grouping: it does not matter which task gets a tuple."""

from __future__ import annotations

from multilang.topology.groupings.base import Grouping
from multilang.topology.groupings.shuffle import in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class NoneGrouping(Grouping):
    """Sends the tuples to any tasks, since it does not matter; the same as shuffle."""

    __slots__ = ()

    type = "none"
    wire_type = "NONE"
    storm_method = "noneGrouping"
    is_arbitrary = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return in_turn(tasks, context.random)
