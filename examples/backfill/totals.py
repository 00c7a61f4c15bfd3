"""The topology of this example: how late flights arrived, per carrier and per airport, as states.

It is a live topology, whose flights come from a partition source (`multilang.source` in the conf). Each flight counts
once, whatever dies. `backfill.py` beside this file adds the history to its states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang import KeyValueState, StatefulBasicBolt, Topology, TopologyBuilder, Tuple
from spark_bridge import ReplayablePartitionSpout

if TYPE_CHECKING:
    from spark_bridge import PartitionSource

FIELDS = ["carrier", "airline", "dest", "airport", "arr_delay"]
LATE_MINUTES = 15  # late by the definition of the US Department of Transportation


class Totals(StatefulBasicBolt):
    """Counts per key: its name, flights, how many were late, the sum of all delays and the worst one, in minutes."""

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
    """Return the topology over ``source``; None: over the source in the conf."""
    builder = TopologyBuilder()
    builder.set_spout("flights", ReplayablePartitionSpout(source, fields=FIELDS), parallelism=2)
    builder.set_bolt("carriers", Totals("carrier", "airline"), parallelism=2).fields_grouping("flights", "carrier")
    builder.set_bolt("airports", Totals("dest", "airport"), parallelism=2).fields_grouping("flights", "dest")
    conf = {"multilang.state.alignment": "exact", "topology.message.timeout.secs": 300}
    return builder.build("flight-totals", conf=conf)


topology = totals()
"""The name under which `multilang state ls examples/backfill/totals.py` finds the topology."""
