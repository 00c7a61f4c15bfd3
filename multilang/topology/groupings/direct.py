"""Direct grouping: the emitter names the task of each tuple."""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.groupings.base import Grouping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext


class DirectGrouping(Grouping):
    """Lets the emitter name the task, on a stream that is declared as direct. Engines route its tuples without it."""

    __slots__ = ()

    type = "direct"
    wire_type = "DIRECT"
    storm_method = "directGrouping"
    is_trusted = True
    is_direct = True
    is_to_one = False

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return _refuse


def _refuse(_values: Sequence[Any]) -> Sequence[int]:
    raise TopologyError(
        "a regular emit on a stream that a subscriber reads by direct grouping: "
        "name the task in the emit, direct_task=..., or subscribe by another grouping"
    )
