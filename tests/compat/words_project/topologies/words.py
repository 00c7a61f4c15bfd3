from bolts.words import CountBolt, SplitBolt
from spouts.lines import LineSpout
from streamparse import Grouping, Topology


class Words(Topology):
    config = {"topology.max.spout.pending": 100}
    lines = LineSpout.spec()
    split = SplitBolt.spec(inputs=[lines], par=2)
    count = CountBolt.spec(inputs={split: Grouping.fields("word")}, par={"prod": 2, "beta": 3})
