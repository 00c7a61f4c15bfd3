"""Custom grouping: the user's object chooses the tasks."""

from __future__ import annotations

from copy import deepcopy
from functools import partial

from multilang.topology.errors import TopologyError
from multilang.topology.groupings.base import Grouping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class ByCustomGrouping(Grouping):
    """Asks an instance of CustomGrouping, ``custom``, for the tasks of each tuple. No worker of Storm's can do it."""

    __slots__ = ()

    type = "custom"
    is_to_one = False

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        custom = deepcopy(self.custom)
        if custom is None:
            raise TopologyError("a custom grouping needs an instance of CustomGrouping: Grouping('custom', custom=...)")
        custom.prepare(context, context.stream, tasks)
        return partial(custom.choose_tasks, context.source_task)

    def to_dict(self) -> dict[str, Any]:
        kind = type(self.custom)
        return {**super().to_dict(), **({"class": f"{kind.__module__}:{kind.__qualname__}"} if self.custom else {})}

    def __str__(self) -> str:
        return super().__str__() if self.custom is None else f"{self.name} {type(self.custom).__name__}"
