"""Global grouping: all tuples go to one task."""

from __future__ import annotations

from multilang.topology.groupings.base import Grouping, always

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class GlobalGrouping(Grouping):
    """Sends all tuples to one task, the one with the lowest id. To Storm it is a fields grouping without fields."""

    __slots__ = ()

    type = "global"
    wire_type = "FIELDS"
    storm_method = "globalGrouping"
    is_to_same = True
    is_trusted = True
    is_stable = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return always(tasks[:1])

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.wire_type, "fields": list(self.fields)}

    def to_flux(self, parts: str) -> str:
        return "type: GLOBAL"

    def to_thrift(self, types: Any) -> Any:
        return types.Grouping(fields=list(self.fields))
