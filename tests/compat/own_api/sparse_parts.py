"""Components in the style of streamparse, each with something of its own."""

from collections import Counter, namedtuple

from streamparse import BatchingBolt, Bolt, ReliableSpout, Spout, Stream

Pair = namedtuple("Pair", "word n")  # noqa: PYI024


class Count(Bolt):
    """It counts words."""

    outputs = ["word", "count"]  # the fields
    config = {"topology.tick.tuple.freq.secs": 60}
    par = 2

    def initialize(self, stormconf, context):
        self.counts = Counter()
        self.context = context
        self.step = stormconf.get("step", 1)

    def process(self, tup):
        word = tup.values.word  # by name
        self.counts[word] += self.step
        if word == "bad":
            raise ValueError(word)
        self.emit([word, self.counts[word]])
        self.logger.info("%s", word)
        self.log("counted %s" % word, level="warn")

    def process_tick(self, tup):
        self.emit(tup=["tick", len(self.counts)], need_task_ids=True)


class Slices(Bolt):
    outputs = [
        "value",
        Stream(fields=["a", "b"], name="two"),
        Stream(["a"], "direct", True),
    ]

    def process(self, tup):
        word, n = tup.values
        self.emit([tup.values[1:] + (self.task_id, self.component_name)])
        self.emit([word, n], stream="two", anchors=[])
        self.emit(tup.values, "two", [tup])
        self.emit([tup.values[-1]], stream="direct", anchors=[tup.id], direct_task=2)
        self.helper(1, tup)

    def helper(self, number, given):
        self.emit([[number, given.values.word, given.values[0], given.component, given.stream, len(given.values)]])


class ByHand(Bolt):
    outputs = ["word"]
    auto_ack = False
    auto_anchor = False
    auto_fail = False

    def process(self, tup):
        if self.is_tick(tup):
            return
        if tup.values.word == "bad":
            raise KeyError(tup.id)
        self.emit([tup.values.word], anchors=[tup])
        if tup.values.n % 2:
            self.ack(tup)
        else:
            self.fail(tup.id)


class Anchored(Bolt):
    outputs = ["word"]
    auto_ack = False  # it acks by itself

    def process(self, tup):
        self.emit([tup.values.word])
        self.emit(
            [tup.values.word],
            need_task_ids=True,
        )
        if tup.values.word == "bad":
            raise KeyError("bad")
        self.ack(tup)


class Mild(Bolt):
    exit_on_exception = False
    outputs = ("word",)

    def process(self, tup):
        if tup.values.word == "bad":
            raise KeyError("bad")
        self.emit((tup.values.word,))


class Base(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([self.changed(tup.values.word)])

    def changed(self, word):
        return word


class Upper(Base):
    def changed(self, word):
        return word.upper() + str(self.storm_conf.get("step")) + self.topology_name


class Nothing(Bolt):
    outputs = []

    def process(self, tup):
        if tup.values.word == "bad":
            self.report_metric("bad", 1)


class Lines(Spout):
    outputs = ["line"]

    def initialize(self, conf, context):
        self.conf = conf
        self.number = 0
        self.done = []

    def next_tuple(self):
        self.number += 1
        if self.number == 4:
            raise ValueError("four")
        self.emit(["line %d" % self.number], tup_id=self.number, need_task_ids=True)
        self.emit([str(self.done)], None)

    def ack(self, tup_id):
        self.done.append(tup_id)

    def fail(self, tup_id):
        self.emit(["again"], tup_id)


# ---- what stays as it is ----


class Groups(BatchingBolt):
    outputs = ["word"]

    def process_batch(self, key, tups):
        self.emit([len(tups)])


class Kept(ReliableSpout):
    outputs = ["word"]


class Early(Spout):
    outputs = ["word"]

    def initialize(self, conf, context):
        self.start()

    def start(self):
        self.emit(["early"])

    def next_tuple(self):
        pass


class Undeclared(Bolt):
    def process(self, tup):
        self.emit([1])


class Wide(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([1, 2])


class Bytes(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([tup.values.word.encode()])


class Collision(Bolt):
    outputs = ["word"]

    def initialize(self, conf, context):
        self.metrics = {}

    def process(self, tup):
        self.emit([1])


class Hands(Bolt):
    outputs = ["word"]

    def initialize(self, conf, context):
        self.waiting = []

    def process(self, tup):
        self.waiting.append(tup)


class AsTuple(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([tup.values._asdict()])


class Formatted(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([f"{tup.values.word}!"])


class Reports(Bolt):
    outputs = ["word"]

    def process(self, tup):
        try:
            self.emit([tup.values.word])
        except ValueError as error:
            self.raise_exception(error, tup)


class NoAnchors(Bolt):
    outputs = ["word"]
    auto_anchor = False

    def process(self, tup):
        self.emit([tup.values.word])


class OddLevel(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.log("x", "notice")


class Unpacks(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([tup[0]])


class OfKept(Groups):
    pass
