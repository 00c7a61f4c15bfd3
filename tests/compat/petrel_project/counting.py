from collections import defaultdict

from petrel import storm
from petrel.emitter import Bolt


class Count(Bolt):
    def __init__(self):
        super(Count, self).__init__(script=__file__)
        self.counts = defaultdict(int)

    def declareOutputFields(declarer):
        return ["word", "count"]

    def getComponentConfiguration(self):
        return {"topology.tick.tuple.freq.secs": 300}

    def process(self, tup):
        if not tup.is_tick_tuple():
            self.counts[tup.values[0]] += 1
            storm.emit([tup.values[0], self.counts[tup.values[0]]], anchors=[tup])
        storm.ack(tup)


def run():
    Count().run()
