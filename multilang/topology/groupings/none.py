"""None grouping: it does not matter which task gets a tuple."""

from __future__ import annotations

from multilang.topology.groupings.shuffle import ShuffleGrouping


class NoneGrouping(ShuffleGrouping):
    """Sends the tuples to any tasks, since it does not matter; the same as shuffle."""

    __slots__ = ()

    type = "none"
    wire_type = "NONE"
    storm_method = "noneGrouping"
