"""Topologies whose bolts emit from timers, for all engines; this module is imported by their processes."""

from __future__ import annotations

from multilang import BasicBolt, Bolt, ReliableSpout, Spout, TopologyBuilder

GAP = 0.02  # seconds between the two timers of a tuple


class Numbers(ReliableSpout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = list(range(conf.get("test.numbers", 30)))

    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop(0)])

    def exhausted(self):
        return not self.left


class Holds(Bolt):
    """Holds its tuples; a timer that the first of them sets emits and acks all of them, in order."""

    output_fields = ["n", "way"]

    def initialize(self, conf, context):
        self.kept = []

    def process(self, tup):
        if not self.kept:
            self.set_timer(0.1, self.flush)
        self.kept.append(tup)

    def flush(self):
        kept, self.kept = self.kept, []
        for tup in kept:
            self.emit([tup["n"], "held"], anchors=[tup])
            self.ack(tup)


class Sums(BasicBolt):
    """Emits the sum, once nothing has come for a while: each tuple puts its timer off. (A debounce.)"""

    output_fields = ["sum", "count"]

    def initialize(self, conf, context):
        self.sum = self.count = 0
        self.timer = None

    def process(self, tup):
        self.sum += tup["n"]
        self.count += 1
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.set_timer(0.2, self.tell)

    def tell(self):
        self.emit([self.sum, self.count])


class Twice(BasicBolt):
    """Sets two timers for each tuple, the later one first; what they emit comes in the order of their times."""

    output_fields = ["n", "time"]

    def process(self, tup):
        n = tup["n"]
        self.set_timer(5 * GAP, lambda: self.emit([n, "second"]))
        self.set_timer(GAP, lambda: self.emit([n, "first"]))


class Beats(BasicBolt):
    """Emits at a repeated timer, whether anything comes or not, and at a chain of timers."""

    output_fields = ["what"]

    def initialize(self, conf, context):
        self.set_timer(0.01, lambda: self.emit(["beat"]), every=0.01)
        self.set_timer(0.01, self.chain)

    def process(self, tup):
        pass

    def chain(self):
        self.emit(["chain"])
        self.set_timer(0.01, self.chain)


class Fails(Bolt):
    """Fails the first attempt of each tuple in a timer, and acks the second in one."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        n = tup["n"]

        def settle():
            if n in self.seen:
                self.emit([n], anchors=[tup])
                self.ack(tup)
            else:
                self.seen.add(n)
                self.fail(tup)

        self.set_timer(0.02, settle)


class Dies(Bolt):
    """Raises in a timer of its first life, which holds a tuple; the next one acks it when it is replayed."""

    output_fields = ["n"]
    component_conf = {"topology.message.timeout.secs": 1}

    def process(self, tup):
        import os

        path = self.conf["test.marker"]
        if os.path.exists(path):
            self.emit([tup["n"]], anchors=[tup])
            self.ack(tup)
        else:
            self.set_timer(0.01, self.die)

    def die(self):
        open(self.conf["test.marker"], "w").close()
        raise OSError("the disk is full")


class ReportsAndGoesOn(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        self.set_timer(0, self.breaks)
        self.emit([tup["n"]])

    def breaks(self):
        raise OSError("the disk is full")


class Timed(Spout):
    """Emits from timers alone, and knows when it is done."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = 5
        self.timer = self.set_timer(0.02, self.tell, every=0.02)

    def tell(self):
        self.left -= 1
        self.emit([self.left], self.left)
        if not self.left:
            self.timer.cancel()

    def next_tuple(self):
        pass

    def exhausted(self):
        return not self.left


def _of(bolt, spout=Numbers):
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("bolt", bolt).global_grouping("numbers")
    builder.set_bolt("sums", Sums).global_grouping("bolt") if "n" in (bolt.output_fields or ()) else None
    return builder.build(bolt.__name__.lower())


holds, twice, fails, dies, reports = map(_of, (Holds, Twice, Fails, Dies, ReportsAndGoesOn))
beats = _of(Beats)
timed = _of(Holds, Timed)
