"""Components in the style of storm.py, each with something of its own."""

import storm


class Split(storm.BasicBolt):
    def process(self, tuple):
        word, n = tuple.values
        if word == "bad":
            raise ValueError(word)
        ids = storm.emit([word, n])
        storm.emit([len(ids), tuple.values[1]], "two")
        storm.logInfo("split %s" % word)
        storm.log("plain", 4)


class ByHand(storm.Bolt):
    def initialize(self, conf, context):
        self._conf = conf
        storm.logWarn("ready")

    def process(self, tup):
        if tup.stream == "__tick":
            storm.emit(["tick"], "two")
            storm.ack(tup)
            return
        if tup.values[0] == "bad":
            raise ValueError("bad")
        storm.emit([tup.values[0]], anchors=[tup])
        storm.emitDirect(2, [tup.values[0]], "direct", [tup])
        storm.emitBolt([1], directTask=2, stream="direct")
        if tup.values[1] % 2:
            storm.ack(tup)
        else:
            storm.fail(tup)
        storm.reportError("reported")
        storm.rpcMetrics("m", 1)


class Numbers(storm.Spout):
    def initialize(self, conf, context):
        self.n = 0

    def nextTuple(self):
        self.n += 1
        storm.emit([self.n], None, self.n)
        storm.emit([self.n], id="second %d" % self.n, stream="two")
        if self.n == 3:
            self.nextTuple()

    def ack(self, id):
        storm.logDebug(f"acked {id}")

    def fail(self, id):
        storm.emitSpout([0], id=id)


# ---- what stays as it is ----


class Many(storm.BasicBolt):
    def process(self, tup):
        storm.emit([tup.values[0]], anchors=[])


class Level(storm.BasicBolt):
    def process(self, tup):
        storm.log("x", tup.values[1])


class Syncs(storm.BasicBolt):
    def process(self, tup):
        storm.sync()


if __name__ == "__main__":
    Split().run()
