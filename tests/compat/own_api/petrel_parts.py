"""Components in the style of Petrel, each with something of its own."""

import logging

from petrel import storm
from petrel.emitter import BasicBolt, Bolt, Spout

log = logging.getLogger("parts")


class Split(BasicBolt):
    def __init__(self):
        super(Split, self).__init__(script=__file__)

    def declareOutputFields(self):
        return ["word", "n"]

    def process(self, tup):
        log.debug("a tuple: %s", tup.values)
        if tup.values[0] == "bad":
            raise ValueError("bad")
        storm.emit([tup.values[0], tup.values[1]])


class Count(Bolt):
    def __init__(self):
        super(Count, self).__init__(script=__file__)
        self.counts = {}

    @classmethod
    def declareOutputFields(cls):
        return ["word", "count"]

    def getComponentConfiguration(self):
        return {"topology.tick.tuple.freq.secs": 300}

    def process(self, tup):
        if tup.is_tick_tuple():
            storm.emit([len(self.counts), 0])
        else:
            word = tup.values[0]
            self.counts[word] = self.counts.get(word, 0) + 1
            storm.emit([word, self.counts[word]], anchors=[tup])
        storm.ack(tup)


class Numbers(Spout):
    def __init__(self):
        super(Numbers, self).__init__(script=__file__)
        self.n = 0

    def declareOutputFields(self):
        return ["n"]

    def nextTuple(self):
        self.n += 1
        storm.emit([self.n], id=self.n)


# ---- what stays as it is ----


class Told(Spout):
    def __init__(self):
        super(Told, self).__init__(script=__file__)

    def declareOutputFields(self):
        return ["n"]

    def activate(self):
        log.info("never told")


class Asked(Bolt):
    def __init__(self):
        super(Asked, self).__init__(script=__file__)

    def declareOutputFields(self):
        return [str(n) for n in range(2)]

    def process(self, tup):
        storm.ack(tup)
