from petrel import storm
from petrel.emitter import BasicBolt


class Split(BasicBolt):
    def __init__(self):
        super(Split, self).__init__(script="splitting.py")

    def declareOutputFields(self):
        return ["word"]

    def process(self, tup):
        storm.emitMany([[word] for word in tup.values[0].split() if len(word) < 5])
        for word in tup.values[0].split():
            if len(word) >= 5:
                storm.emit([word], stream="long")


def test():
    from nose.tools import assert_equal

    assert_equal(Split().declareOutputFields(), ["word"])


def run():
    Split().run()
