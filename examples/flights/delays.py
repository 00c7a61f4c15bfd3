"""The topology of this example: how late the flights out of New York arrived, per carrier and per airport.

The rows come from a partition source, whose URL is in the conf as "multilang.source". `flights.py` beside this file
makes the sources and runs the topology on the embedded cluster and as a Spark job. On a Storm cluster, from published
partitions:

    multilang submit examples/flights/delays.py --requirements examples/flights/requirements.txt -c multilang.source=URL
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Context, Topology, TopologyBuilder, Tuple
from spark_bridge import PartitionSpout

if TYPE_CHECKING:
    from spark_bridge import PartitionSource

FIELDS = ["carrier", "airline", "dest", "airport", "arr_delay"]
LATE_MINUTES = 15  # late by the definition of the US Department of Transportation


class Delays(BasicBolt):
    """Statistics per key: flights, how many were late, the sum of all delays and the worst one, in minutes.

    At each tick it emits the keys that have changed, with all their figures, so that the last tuple of a key is
    complete.
    """

    output_fields = ["key", "name", "flights", "late", "minutes", "worst"]
    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.name = name

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.rows: dict[str, list[Any]] = {}
        self.news: set[str] = set()

    def process(self, tup: Tuple) -> None:
        key, delay = tup[self.key], tup["arr_delay"]
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = [key, tup[self.name], 0, 0, 0, delay]
        row[2] += 1
        row[3] += delay >= LATE_MINUTES
        row[4] += delay
        row[5] = max(row[5], delay)
        self.news.add(key)

    def process_tick(self, tup: Tuple) -> None:
        for key in sorted(self.news):
            self.emit(self.rows[key])
        self.news.clear()


class Report(BasicBolt):
    """Holds the last tuple of each key and, if the conf names a folder for it, writes the report at each tick."""

    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        folder = conf.get("flights.folder")
        self.file = None if folder is None else os.path.join(folder, "report.json")
        self.report: dict[str, dict[str, list[Any]]] = {"carriers": {}, "airports": {}}
        self.news = False

    def process(self, tup: Tuple) -> None:
        self.report[str(tup.component)][tup["key"]] = list(tup.values)
        self.news = True

    def process_tick(self, tup: Tuple) -> None:
        if self.file is not None and self.news:
            with open(f"{self.file}.part", "w", encoding="utf-8") as file:
                json.dump(self.report, file)
            os.replace(f"{self.file}.part", self.file)
            self.news = False


def delays(source: PartitionSource | str | None = None) -> Topology:
    """Return the topology over ``source``; None: over the source in the conf."""
    builder = TopologyBuilder()
    builder.set_spout("flights", PartitionSpout(source, fields=FIELDS), parallelism=2)
    builder.set_bolt("carriers", Delays("carrier", "airline"), parallelism=2).fields_grouping("flights", "carrier")
    builder.set_bolt("airports", Delays("dest", "airport"), parallelism=2).fields_grouping("flights", "dest")
    builder.set_bolt("report", Report).global_grouping("carriers").global_grouping("airports")
    conf = {"topology.max.spout.pending": 1000, "topology.message.timeout.secs": 300}
    return builder.build("flight-delays", conf=conf)


topology = delays()
