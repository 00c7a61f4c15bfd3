"""All grouping: every task gets each tuple."""

from __future__ import annotations

from multilang.topology.groupings.base import Grouping, always

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class AllGrouping(Grouping):
    """Sends every tuple to all tasks."""

    __slots__ = ()

    type = "all"
    wire_type = "ALL"
    storm_method = "allGrouping"
    is_trusted = True
    is_to_all = True
    is_to_one = False

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return always(tasks)
