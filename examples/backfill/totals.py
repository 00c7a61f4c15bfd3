"""How late flights arrived, per carrier and per airport, kept in states: the topology of this example.

It is a live topology, whose flights come from a partition source (`multilang.source` in the conf), and each counts once,
whatever dies. `backfill.py` beside this file gives it its history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang import KeyValueState, StatefulBasicBolt, Topology, TopologyBuilder, Tuple
from spark_bridge import ReplayablePartitionSpout

if TYPE_CHECKING:
    from spark_bridge import PartitionSource

FIELDS = ["carrier", "airline", "dest", "airport", "arr_delay"]
LATE_MINUTES = 15  # what the US Department of Transportation calls late


class Totals(StatefulBasicBolt):
    """Per key: its name, flights, how many were late, the sum of all delays and the worst one, in minutes."""

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.name = name

    def init_state(self, state: KeyValueState[str, list[Any]]) -> None:
        self.totals = state

    def process(self, tup: Tuple) -> None:
        key, delay = tup[self.key], tup["arr_delay"]
        name, flights, late, minutes, worst = self.totals.get(key) or (tup[self.name], 0, 0, 0, delay)
        self.totals.put(key, [name, flights + 1, late + (delay >= LATE_MINUTES), minutes + delay, max(worst, delay)])


def totals(source: PartitionSource | str | None = None) -> Topology:
    """The topology over ``source``; None: over that of the conf."""
    builder = TopologyBuilder()
    builder.set_spout("flights", ReplayablePartitionSpout(source, fields=FIELDS), parallelism=2)
    builder.set_bolt("carriers", Totals("carrier", "airline"), parallelism=2).fields_grouping("flights", "carrier")
    builder.set_bolt("airports", Totals("dest", "airport"), parallelism=2).fields_grouping("flights", "dest")
    conf = {"multilang.state.alignment": "exact", "topology.message.timeout.secs": 300}
    return builder.build("flight-totals", conf=conf)


topology = totals()
"""As `multilang state ls examples/backfill/totals.py` finds it."""
