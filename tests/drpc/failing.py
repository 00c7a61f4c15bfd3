"""Steps that go wrong in every way that one can, as the arguments of a request say."""

from __future__ import annotations

from multilang import BasicBolt, BatchBolt, Bolt, FailedException
from multilang.drpc import LinearDRPCTopologyBuilder


def work(place, text):
    """Do what each step does at each place: ``raise PLACE`` and ``refuse PLACE`` fail there."""
    if text == f"raise {place}":
        raise ZeroDivisionError(f"nothing by naught in {place}")
    if text == f"refuse {place}":
        raise FailedException(f"refused in {place}")


class Basic(BasicBolt):
    output_fields = ["id", "text"]

    def process(self, tup):
        work("basic", tup[1])
        self.emit(tup.values)


class Plain(Bolt):
    output_fields = ["id", "text"]

    def process(self, tup):
        work("plain", tup[1])
        if tup[1] == "fail plain":
            self.fail(tup)
            return
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class Batch(BatchBolt):
    output_fields = ["id", "text"]

    def initialize(self, conf, context, collector, id):
        self.texts = []

    def process(self, tup):
        work("batch", tup[1])
        self.texts.append(tup[1])

    def finish_batch(self):
        for text in self.texts:
            work("finish", text)
            self.emit([self.id, text])


class Last(BasicBolt):
    """Emits nothing, something else's id, or twice, where it is told so."""

    output_fields = ["id", "result"]

    def process(self, tup):
        request, text = tup.values
        work("last", text)
        if text == "foreign":
            self.emit([f"{request}0", text])
        elif text != "nothing":
            self.emit([request, text])
        if text == "twice":
            self.emit([request, "again"])


class Keeps(Bolt):
    """Keeps every request, until one is told to raise."""

    output_fields = ["id", "result"]

    def process(self, tup):
        work("keeps", tup[1])


CAUSES = {
    "raise basic": ("step 0", "ZeroDivisionError: nothing by naught in basic"),
    "refuse basic": ("step 0", ": refused in basic"),
    "raise plain": ("step 1", "ZeroDivisionError: nothing by naught in plain"),
    "refuse plain": ("step 1", ": refused in plain"),
    "fail plain": ("step 1", ": a tuple of it was failed"),
    "raise batch": ("step 2", "ZeroDivisionError: nothing by naught in batch"),
    "refuse batch": ("step 2", ": refused in batch"),
    "raise finish": ("step 2", "ZeroDivisionError: nothing by naught in finish"),
    "refuse finish": ("step 2", ": refused in finish"),
    "raise last": ("step 3", "ZeroDivisionError: nothing by naught in last"),
    "foreign": ("step 3", "which is no request that is under way at this task"),
    "twice": ("step 3", "emits a second result of one request, ['again']"),
    "nothing": ("last step", "emitted no result for it"),
}


def line(last_parallelism=1, name="line"):
    builder = LinearDRPCTopologyBuilder(name)
    builder.add_bolt(Basic)
    builder.add_bolt(Plain).shuffle_grouping()
    builder.add_bolt(Batch).fields_grouping("id")
    builder.add_bolt(Last, last_parallelism).shuffle_grouping()
    return builder.build()


alone, several = line(), line(3, "several")

keeps_builder = LinearDRPCTopologyBuilder("keeps")
keeps_builder.add_bolt(Keeps)
keeps = keeps_builder.build()
