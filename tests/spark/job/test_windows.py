"""Windows, which Spark's jobs and queries refuse by the bolt's name."""

from __future__ import annotations

import pytest

from multilang import TopologyBuilder
from multilang.testing import FixedTupleSpout
from multilang.windowing import Count, StatefulWindowedBolt, Tumbling, WindowedBolt, seconds
from spark_bridge.job import NotOnSparkError
from spark_bridge.job.declared import as_declared


class PerTen(WindowedBolt):
    output_fields = ["n"]
    window = Tumbling(seconds(10))
    timestamp_field = "ts"
    aggregate = Count()

    def process_window(self, window):
        self.emit([window.result])


class StatefulPerTen(StatefulWindowedBolt, PerTen):
    pass


@pytest.mark.parametrize("bolt", [PerTen, StatefulPerTen])
def test_a_windowed_bolt_is_refused_by_name(bolt: type[WindowedBolt]) -> None:
    builder = TopologyBuilder()
    builder.set_spout("readings", FixedTupleSpout(["ts"], [[1000], [12_000]]))
    builder.set_bolt("tens", bolt).shuffle_grouping("readings")
    topology = builder.build("windows", conf={"topology.message.timeout.secs": 60})
    with pytest.raises(NotOnSparkError, match=rf"bolt 'tens' \({bolt.__name__}\) works on windows"):
        as_declared(topology)
