"""Custom grouping: an object of the user's chooses the tasks."""

from __future__ import annotations

from copy import deepcopy

from multilang.topology.errors import GroupingError
from multilang.topology.groupings.base import Grouping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
            raise GroupingError("a custom grouping needs an instance of CustomGrouping: Grouping('custom', custom=...)")
        custom.prepare(context, context.stream, tasks)
        choose_tasks = custom.choose_tasks
        source_task = context.source_task
        known = frozenset(tasks)

        def choose(values: Sequence[Any]) -> Sequence[int]:
            chosen = choose_tasks(source_task, values)
            if not isinstance(chosen, list | tuple) or not known.issuperset(chosen):
                raise GroupingError(
                    f"{type(custom).__name__}.choose_tasks returned {chosen!r} "
                    f"for {context.component!r} stream {context.stream!r}: return a list out of target_tasks, {list(tasks)}"
                )
            return chosen

        return choose

    def to_dict(self) -> dict[str, Any]:
        kind = type(self.custom)
        return {**super().to_dict(), **({"class": f"{kind.__module__}:{kind.__qualname__}"} if self.custom else {})}

    def __str__(self) -> str:
        return super().__str__() if self.custom is None else f"{self.name} {type(self.custom).__name__}"
