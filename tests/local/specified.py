"""Topologies for what Storm's page on guaranteed processing says, at module level, where a task's process can import them."""

from __future__ import annotations

from multilang.component import BasicBolt, Bolt, FailedException, Spout
from multilang.topology import TopologyBuilder


class Own(Spout):
    """Numbers whose message ids name the task. What it hears goes to the stream ``heard``: ack or fail, its task, that of the id."""

    output_fields = ["n", "id"]
    output_streams = {"heard": ["what", "task", "of"]}

    def initialize(self, conf, context):
        self.due = [f"{context.task}:{n}" for n in range(20)]
        self.under_way = set()

    def next_tuple(self):
        if self.due:
            id = self.due.pop()
            self.under_way.add(id)
            self.emit([len(self.due), id], tup_id=id)

    def ack(self, tup_id):
        self.heard("ack", tup_id)

    def fail(self, tup_id):
        self.heard("fail", tup_id)
        self.due.append(tup_id)

    def heard(self, what, tup_id):
        self.under_way.discard(tup_id)
        self.emit([what, self.context.task, int(tup_id.partition(":")[0])], stream="heard")

    def exhausted(self):
        return not self.due and not self.under_way


class FailsFirst(BasicBolt):
    """Fails each id the first time."""

    output_fields = ["id"]

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        if tup["id"] not in self.seen:
            self.seen.add(tup["id"])
            raise FailedException
        self.emit([tup["id"]])


class Loose(BasicBolt):
    """Passes on what came, anchored to nothing."""

    output_fields = ["n", "id"]

    def process(self, tup):
        self.emit(list(tup.values), anchors=[])


class Joins(Bolt):
    """Makes one tuple of two, anchored to both."""

    output_fields = ["id", "ids"]

    def initialize(self, conf, context):
        self.held = None

    def process(self, tup):
        if self.held is None:
            self.held = tup
            return
        first, self.held = self.held, None
        ids = [first["id"], tup["id"]]
        self.emit(["+".join(sorted(ids)), ids], anchors=[first, tup])
        self.ack(first)
        self.ack(tup)


class Half(BasicBolt):
    output_fields = ["n", "id"]

    def process(self, tup):
        self.emit(list(tup.values))


class Meets(Bolt):
    """Makes one tuple of the two halves of a number, anchored to both."""

    output_fields = ["id", "came"]

    def initialize(self, conf, context):
        self.held = {}

    def process(self, tup):
        other = self.held.pop(tup["id"], None)
        if other is None:
            self.held[tup["id"]] = tup
            return
        self.emit([tup["id"], sorted([other.component, tup.component])], anchors=[other, tup])
        self.ack(other)
        self.ack(tup)


class FailsOncePerTask(BasicBolt):
    """Fails the first tuple of all that it gets."""

    output_fields = ["id"]
    failed = False

    def process(self, tup):
        if not self.failed:
            self.failed = True
            raise FailedException
        self.emit([tup["id"]])


def _own():
    builder = TopologyBuilder()
    builder.set_spout("own", Own, parallelism=3)
    builder.set_bolt("fails", FailsFirst, parallelism=2).fields_grouping("own", "id")
    return builder.build("own")


def _unanchored():
    builder = TopologyBuilder()
    builder.set_spout("own", Own)
    builder.set_bolt("loose", Loose).shuffle_grouping("own")
    builder.set_bolt("fails", FailsFirst).shuffle_grouping("loose")
    return builder.build("unanchored")


def _joined():
    builder = TopologyBuilder()
    builder.set_spout("own", Own)
    builder.set_bolt("joins", Joins).shuffle_grouping("own")
    builder.set_bolt("fails", FailsOncePerTask).shuffle_grouping("joins")
    return builder.build("joined")


def _diamond():
    builder = TopologyBuilder()
    builder.set_spout("own", Own)
    builder.set_bolt("left", Half).shuffle_grouping("own")
    builder.set_bolt("right", Half).shuffle_grouping("own")
    builder.set_bolt("meets", Meets).shuffle_grouping("left").shuffle_grouping("right")
    builder.set_bolt("fails", FailsOncePerTask).shuffle_grouping("meets")
    return builder.build("diamond")


own = _own()
unanchored = _unanchored()
joined = _joined()
diamond = _diamond()


SENTENCES = ["the cow jumped over the moon", "the moon is full", "four score and seven years ago"] * 5


def words_of_the_page():
    """Return how often each word comes."""
    words = [word for sentence in SENTENCES for word in sentence.split()]
    return {word: words.count(word) for word in words}


class Sentences(Spout):
    output_fields = ["sentence"]

    def initialize(self, conf, context):
        self.due = list(SENTENCES)

    def next_tuple(self):
        if self.due:
            self.emit([self.due.pop()], tup_id=len(self.due))

    def exhausted(self):
        return not self.due


class SplitSentence(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        self.emit_many([[word] for word in tup["sentence"].split()])


class WordCount(BasicBolt):
    output_fields = ["word", "count", "task"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        count = self.counts[tup["word"]] = self.counts.get(tup["word"], 0) + 1
        self.emit([tup["word"], count, self.context.task])


_builder = TopologyBuilder()
_builder.set_spout("sentences", Sentences)
_builder.set_bolt("split", SplitSentence, 10).shuffle_grouping("sentences")
_builder.set_bolt("count", WordCount, 20).fields_grouping("split", "word")
page = _builder.build("page")
