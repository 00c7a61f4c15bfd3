"""Steps that ack a tuple before they emit for it, or fail it, in a module that a task's process imports without pytest."""

from __future__ import annotations

from multilang import BasicBolt, BatchBolt, BatchingBolt, Bolt, FailedException
from multilang.drpc import LinearDRPCTopologyBuilder


class Plain(Bolt):
    output_fields = ["id", "word"]

    def process(self, tup):
        self.ack(tup)
        for word in tup[1].split():
            self.emit([tup[0], word])


class Basic(BasicBolt):
    output_fields = ["id", "word"]

    def process(self, tup):
        self.ack(tup)
        for word in tup[1].split():
            self.emit([tup[0], word], anchors=[])


class Split(BasicBolt):
    output_fields = ["id", "word"]

    def process(self, tup):
        for word in tup[1].split():
            self.emit([tup[0], word])


class Count(BatchBolt):
    output_fields = ["id", "n"]

    def initialize(self, conf, context, collector, id):
        self.n = 0

    def process(self, tup):
        self.n += 1

    def finish_batch(self):
        self.emit([self.id, self.n])


class AcksAndFails(BasicBolt):
    """Acks, and does then what the text says."""

    output_fields = ["id", "word"]

    def process(self, tup):
        self.ack(tup)
        if tup[1] == "anchor":
            self.emit([tup[0], "late"], anchors=[tup])
        if tup[1] == "raise":
            raise ZeroDivisionError("nothing by naught")
        if tup[1] == "refuse":
            raise FailedException("refused")
        self.emit([tup[0], tup[1]], anchors=[])


class PlainAcksAndFails(Bolt):
    output_fields = ["id", "word"]
    process = AcksAndFails.process


class Groups(BatchingBolt):
    """Emits and acks the words in their order; at one with "!" it raises."""

    output_fields = ["id", "word"]
    batch_size = 6
    ticks_between_batches = 10**9

    def process_batch(self, key, tups):
        for tup in sorted(tups, key=lambda tup: tup[1]):
            if "!" in tup[1]:
                raise ZeroDivisionError("nothing by naught")
            self.emit([tup[0], tup[1]], anchors=[tup])
            self.ack(tup)


class GroupsAckedFirst(Groups):
    def process_batch(self, key, tups):
        for tup in tups:
            self.ack(tup)
        raise ZeroDivisionError("nothing by naught")


class LaterThanThat(Bolt):
    """Emits for each tuple with the next one."""

    output_fields = ["id", "word"]

    def initialize(self, conf, context):
        self.before = None

    def process(self, tup):
        self.ack(tup)
        if self.before is not None:
            self.emit([self.before, "late"])
        self.before = tup[0]


def counting(step, where="first"):
    builder = LinearDRPCTopologyBuilder("words")
    if where == "middle":
        builder.add_bolt(Split, parallelism=2)
    declared = builder.add_bolt(step)
    if where == "middle":
        declared.shuffle_grouping()
    builder.add_bolt(Count, parallelism=2).fields_grouping("id")
    return builder.build()
