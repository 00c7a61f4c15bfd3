"""Components that raise each time, in a module that a task's process imports without pytest."""

from __future__ import annotations

from multilang import BasicBolt, Bolt, ReliableSpout, Spout, StatefulBasicBolt, TopologyBuilder


class Raising(Spout):
    output_fields = ["n"]

    def next_tuple(self):
        raise RuntimeError("no such row")


class Silent(Raising):
    """Lives for some turns, and emits nothing."""

    def initialize(self, conf, context):
        self.turns = 0

    def next_tuple(self):
        self.turns += 1
        if self.turns > 2:
            super().next_tuple()


class Emitting(Raising):
    """Emits a tuple in each life, which is another one each time only for its source."""

    def initialize(self, conf, context):
        self.emits = 0

    def next_tuple(self):
        if self.emits:
            super().next_tuple()
        self.emits += 1
        self.emit(["row"])


class EmittingAtOnce(Raising):
    """Emits a tuple and dies in one turn."""

    def next_tuple(self):
        self.emit(["row"])
        super().next_tuple()


class Sink(BasicBolt):
    def process(self, tup):
        pass


class Three(Spout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < 3:
            self.n += 1
            self.emit([self.n], tup_id=self.n)

    def exhausted(self):
        return self.n == 3


class Dying(Bolt):
    def process(self, tup):
        raise RuntimeError("no such row")


def topology_of(spout, bolt=Sink):
    builder = TopologyBuilder()
    builder.set_spout("source", spout)
    builder.set_bolt("bolt", bolt).shuffle_grouping("source")
    return builder.build("raising", conf={"topology.message.timeout.secs": 1})


class Again(ReliableSpout):
    """Gives one row again and again, until it is acked."""

    output_fields = ["n"]
    max_replays = None

    def initialize(self, conf, context):
        self.given = False

    def next_tuple(self):
        if not self.given:
            self.given = True
            self.emit([1], tup_id=1)

    def exhausted(self):
        return self.given


class Kept(StatefulBasicBolt):
    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put("rows", tup[0])


def dies_at(namespace, step, txid):
    if namespace == "$checkpointspout-0" and step == "PREPARE emit":
        raise RuntimeError("no such row")


def stateful():
    builder = TopologyBuilder()
    builder.set_spout("source", Again)
    builder.set_bolt("bolt", Kept).shuffle_grouping("source")
    conf = {"topology.state.checkpoint.interval.ms": 100, "multilang.trace": f"{__name__}.dies_at"}
    return builder.build("stateful", conf=conf)


topologies = {each.__name__: topology_of(each) for each in (Raising, Silent, Emitting, EmittingAtOnce)}
raising, silent, emitting, emitting_at_once = topologies.values()
dying = topology_of(Three, Dying)
checkpointed = stateful()
