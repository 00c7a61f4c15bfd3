"""The topologies of these tests, at module level, where a task's process can import them."""

from __future__ import annotations

import os
import time

from multilang.component import BasicBolt, BatchingBolt, Bolt, FailedException, ReliableSpout, Spout, Stream
from multilang.topology import TopologyBuilder

SENTENCES = [
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
]


class Sentences(ReliableSpout):
    output_fields = ["sentence"]
    max_replays = None

    def initialize(self, conf, context):
        self.total = conf.get("test.sentences", 200)
        self.n = 0

    def next_tuple(self):
        if self.n < self.total:
            self.emit([SENTENCES[self.n % len(SENTENCES)]], tup_id=self.n)
            self.n += 1

    def exhausted(self):
        return self.n >= self.total


class Numbers(ReliableSpout):
    """0, 1, 2 … up to conf test.numbers, each emitted as [n, task]."""

    output_fields = ["n", "from"]
    max_replays = None

    def initialize(self, conf, context):
        self.total = conf.get("test.numbers", 100)
        self.n = 0

    def next_tuple(self):
        if self.n < self.total:
            self.n += 1
            self.emit([self.n - 1, self.context.task], tup_id=self.n - 1)

    def exhausted(self):
        return self.n >= self.total


class Patient(Numbers):
    """Replays after a while, and says with each number how many were under way when it was emitted."""

    output_fields = ["n", "under way"]
    replay_delay_secs = 0.05

    def next_tuple(self):
        if self.n < self.total:
            self.n += 1
            self.emit([self.n - 1, self.under_way + 1], tup_id=self.n - 1)


class Asked(Spout):
    """Has never anything, and reports when it was asked."""

    output_fields = ["n", "from"]

    def next_tuple(self):
        self.report_error(f"asked at {self.clock()}")

    def clock(self):
        return time.monotonic()


class Opens(Numbers):
    """Numbers, and notes what happens to it."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.path = conf["test.opened"]
        self.note("numbers")

    def activate(self):
        self.note("activated")

    def note(self, what):
        with open(self.path, "a") as file:
            file.write(f"{what}\n")


class OpensToo(BasicBolt):
    def initialize(self, conf, context):
        with open(conf["test.opened"], "a") as file:
            file.write("pass\n")

    def process(self, tup):
        pass


class NeverStarts(BasicBolt):
    def initialize(self, conf, context):
        raise ValueError("it can't be opened")


class Unreliable(Spout):
    """Numbers without message ids, and no word on when they end."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < 50:
            self.n += 1
            self.emit([self.n - 1])


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        for word in tup["sentence"].split():
            self.emit([word])


class Count(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup["word"]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, self.counts[word]])


class Pass(BasicBolt):
    """Emits the number that came, and the task that it came to."""

    output_fields = ["n", "task"]

    def process(self, tup):
        self.emit([tup["n"], self.context.task])


class Prompt(Spout):
    """Tells of each emit, in the next one, what it was told of its id before the emit returned."""

    output_fields = ["n"]
    ids = [1, "a", 2.5, "\u00e9", 2**40, "last"]

    def initialize(self, conf, context):
        self.told = []
        self.before = []
        self.at = 0

    def next_tuple(self):
        if self.at < len(self.ids):
            before, self.before, self.told = self.before, [], []
            self.at += 1
            self.emit([before], tup_id=self.ids[self.at - 1])
            self.before = list(self.told)

    def ack(self, tup_id):
        self.told.append(tup_id)

    def exhausted(self):
        return self.at == len(self.ids)


class Undecided(Spout):
    """Knows for a while after its one tuple was acked that there is more, and can't tell afterwards."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.emitted = False
        self.left = 3

    def next_tuple(self):
        if self.emitted:
            self.left -= 1
        else:
            self.emitted = True
            self.emit([1], tup_id=1)

    def ack(self, tup_id):
        self.left = 3

    def exhausted(self):
        return False if self.left > 0 else None


class FailsTwice(BasicBolt):
    """Fails each number until its third time."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.seen = {}

    def process(self, tup):
        n = tup["n"]
        self.seen[n] = self.seen.get(n, 0) + 1
        if self.seen[n] < 3:
            raise FailedException(f"{n} for the {self.seen[n]}. time")
        self.emit([n])


class ForgetsOnce(Bolt):
    """Neither acks nor fails a number the first time."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        if tup["n"] in self.seen:
            self.emit([tup["n"]], anchors=[tup])
            self.ack(tup)
        self.seen.add(tup["n"])


class DiesOn(Bolt):
    """Dies of number 7, as often as the file of conf test.deaths has no line for it yet."""

    output_fields = ["n"]

    def process(self, tup):
        if tup["n"] == 7 and not os.path.exists(self.conf["test.deaths"]):
            with open(self.conf["test.deaths"], "w") as file:
                file.write("once\n")
            raise RuntimeError("seven is too much")
        self.emit([tup["n"]], anchors=[tup])
        self.ack(tup)


class Pairs(Bolt):
    """Joins each two tuples into one, anchored to both."""

    output_fields = ["a", "b"]

    def initialize(self, conf, context):
        self.held = None

    def process(self, tup):
        if self.held is None:
            self.held = tup
            return
        first, self.held = self.held, None
        self.emit([first["n"], tup["n"]], anchors=[first, tup])
        self.ack(first)
        self.ack(tup)


class Routes(BasicBolt):
    """Sends each number directly to a task of "mark", by its value, and says to whom a shuffled one went."""

    output_streams = {"routed": Stream(["n"], direct=True), "default": ["n"], "told": ["n", "tasks"]}

    def initialize(self, conf, context):
        self.targets = context.tasks("mark")

    def process(self, tup):
        n = tup["n"]
        self.emit([n], stream="routed", direct_task=self.targets[n % len(self.targets)])
        asked = self.emit([n], need_task_ids=True)
        self.emit([n, asked], stream="told")


class CallsBack(Bolt):
    """Asks for task ids without waiting, and acks when it has them."""

    output_fields = ["n"]
    output_streams = {"told": ["n", "tasks"]}

    def process(self, tup):
        def told(tasks):
            assert after == [True]  # never before emit has returned
            self.emit([tup["n"], tasks], stream="told", anchors=[tup])
            self.ack(tup)

        after = []
        self.emit([tup["n"]], anchors=[tup], on_task_ids=told)
        after.append(True)


class CountsDown(BasicBolt):
    """A cycle: each number comes back, one less, until it is 0."""

    output_fields = ["n"]
    output_streams = {"again": ["n"]}

    def process(self, tup):
        n = tup["n"]
        if n:
            self.emit([n - 1], stream="again")
        else:
            self.emit([n])


class Batches(BatchingBolt):
    output_fields = ["size"]
    component_conf = {"topology.tick.tuple.freq.secs": 0.2}

    def process_batch(self, key, tups):
        self.emit([len(tups)])


class Slow(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        time.sleep(self.conf.get("test.slow.secs", 0.001))
        self.emit([tup["n"]])


class Misbehaves(Bolt):
    """Does what conf test.fault says to its first tuple; a process started later behaves."""

    output_fields = ["n"]

    def process(self, tup):
        fault = self.conf["test.fault"]
        mark = self.conf["test.deaths"]
        if not os.path.exists(mark):
            with open(mark, "w") as file:
                file.write(fault)
            if fault == "undeclared stream":
                self.emit([1], stream="nowhere", anchors=[tup])
            elif fault == "wrong number of values":
                self.emit([1, 2, 3], anchors=[tup])
            elif fault == "double ack":
                self.ack(tup)
                self.ack(tup)
            elif fault == "anchor after ack":
                self.ack(tup)
                self.emit([tup["n"]], anchors=[tup])
            elif fault == "direct to a shuffled stream":
                self.emit([tup["n"]], anchors=[tup], direct_task=self.context.tasks("last")[0])
            elif fault == "not a number":
                self.emit([float("nan")], anchors=[tup])
            elif fault == "ack of a stranger":
                self.ack("4711")
        if tup.unfinished:
            self.emit([tup["n"]], anchors=[tup])
            self.ack(tup)


def _chain(name, spout, *bolts, parallelism=1):
    """spout -> first -> second … by shuffle, components named after their classes in small letters."""
    builder = TopologyBuilder()
    source = spout.__name__.lower()
    builder.set_spout(source, spout)
    for bolt in bolts:
        id = bolt.__name__.lower()
        builder.set_bolt(id, bolt, parallelism=parallelism).shuffle_grouping(source)
        source = id
    return builder.build(name)


def _word_count():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=3).fields_grouping("split", "word")
    return builder.build("word-count")


def _routed():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("routes", Routes).shuffle_grouping("numbers")
    builder.set_bolt("mark", Pass, parallelism=3).direct_grouping("routes", stream="routed").shuffle_grouping("routes")
    return builder.build("routed")


def _called_back():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("callsback", CallsBack).shuffle_grouping("numbers")
    builder.set_bolt("pass", Pass, parallelism=2).shuffle_grouping("callsback")
    return builder.build("called-back")


def _cycle():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    down = builder.set_bolt("down", CountsDown, parallelism=2)
    down.shuffle_grouping("numbers").shuffle_grouping("down", stream="again")
    return builder.build("cycle")


def _fan():
    builder = TopologyBuilder()
    builder.set_spout("one", Numbers, parallelism=2)
    builder.set_spout("two", Unreliable)
    everywhere = builder.set_bolt("everywhere", Pass, parallelism=3)
    everywhere.all_grouping("one").all_grouping("two")
    builder.set_bolt("first", Pass, parallelism=2).global_grouping("one")
    return builder.build("fan")


def _misbehaving():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("misbehaves", Misbehaves).shuffle_grouping("numbers")
    builder.set_bolt("last", Pass).shuffle_grouping("misbehaves")
    return builder.build("misbehaving")


def _idle_beside_busy():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_spout("asked", Asked, conf={"topology.sleep.spout.wait.strategy.time.ms": 300})
    builder.set_bolt("pass", Pass).shuffle_grouping("numbers").shuffle_grouping("asked")
    return builder.build("idle-beside-busy")


word_count = _word_count()
opens = _chain("opens", Opens, OpensToo)
never_starts = _chain("never-starts", Numbers, NeverStarts)
idle = _chain("idle", Asked, Pass)
idle_beside_busy = _idle_beside_busy()
passing = _chain("passing", Numbers, Pass)
fails_twice = _chain("fails-twice", Numbers, FailsTwice)
prompt = _chain("prompt", Prompt, Pass)
undecided = _chain("undecided", Undecided, Pass)
patient = _chain("patient", Patient, FailsTwice)
forgets_once = _chain("forgets-once", Numbers, ForgetsOnce)
dies_once = _chain("dies-once", Numbers, DiesOn)
pairs = _chain("pairs", Numbers, Pairs)
unreliable = _chain("unreliable", Unreliable, Pass)
batches = _chain("batches", Numbers, Batches)
slow = _chain("slow", Numbers, Pass, Slow)
routed = _routed()
called_back = _called_back()
cycle = _cycle()
fan = _fan()
misbehaving = _misbehaving()


class Endless(ReliableSpout):
    """Numbers until the file of conf test.stop is there; the acked ones are written to that of test.acked."""

    output_fields = ["n"]
    max_replays = None

    def initialize(self, conf, context):
        self.n = 0
        self.stop = conf["test.stop"]
        self.file = open(conf["test.acked"], "a", buffering=1)  # noqa: SIM115
        self.file.write("started\n")

    def next_tuple(self):
        if not self.exhausted():
            self.emit([self.n], tup_id=self.n)
            self.n += 1

    def acked(self, tup_id):
        self.file.write(f"{tup_id}\n")

    def exhausted(self):
        return os.path.exists(self.stop)


class Two(BasicBolt):
    """Two tuples out of each."""

    output_fields = ["n"]

    def process(self, tup):
        self.emit([tup["n"]])
        self.emit([tup["n"]])


class Big(ReliableSpout):
    """A few very large tuples."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.left = 3

    def next_tuple(self):
        if self.left:
            self.left -= 1
            self.emit(["x" * 10_000_000], tup_id=self.left)

    def exhausted(self):
        return not self.left


class Echo(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        self.emit([tup["n"]])


class Length(BasicBolt):
    output_fields = ["length"]

    def process(self, tup):
        self.emit([len(tup["n"])])


class Flood(BasicBolt):
    """Ten thousand tuples out of one, asking for the task ids of each."""

    output_fields = ["n"]

    def process(self, tup):
        for i in range(10_000):
            self.emit([i], on_task_ids=lambda _: None)


class BadStart(BasicBolt):
    output_fields = ["n"]

    def initialize(self, conf, context):
        raise OSError("the database is not there")


endless = _chain("endless", Endless, Two, Pass, parallelism=2)
big = _chain("big", Big, Echo, Length)
flood = _chain("flood", Numbers, Flood, Pass)
bad_start = _chain("bad-start", Numbers, BadStart)


class Bursts(BasicBolt):
    """A cycle that is fed much more at a time than a pipe or a queue takes."""

    output_fields = ["n"]
    output_streams = {"again": ["n"]}

    def process(self, tup):
        if tup["n"] == 1:
            self.emit_many([[0]] * 20_000, stream="again")
        else:
            self.emit([tup["n"]])


def _bursts():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    bolt = builder.set_bolt("bursts", Bursts, parallelism=2)
    bolt.shuffle_grouping("numbers").shuffle_grouping("bursts", stream="again")
    return builder.build("bursts")


bursts = _bursts()


class Ends(Spout):
    """Writes what it is told at the end to the file of conf test.end."""

    output_fields = ["n"]

    def next_tuple(self):
        pass

    def deactivate(self):
        self.write("deactivated")

    def close(self):
        self.write("spout closed")

    def write(self, line):
        with open(self.conf["test.end"], "a") as file:
            file.write(line + "\n")


class EndsToo(BasicBolt):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.write("bolt started")

    def process(self, tup):
        pass

    def close(self):
        self.write("bolt closed")

    write = Ends.write


ends = _chain("ends", Ends, EndsToo)


class Talks(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        self.log("watch out", "warn")
        self.logger.info("a logger's line")
        self.report_metric("m", [1])


talks = _chain("talks", Numbers, Talks)


class Says(BasicBolt):
    """Emits at each tick how many numbers it has seen, anchored to nothing."""

    output_fields = ["n"]
    component_conf = {"topology.tick.tuple.freq.secs": 0.1}

    def initialize(self, conf, context):
        self.seen = 0

    def process(self, tup):
        self.seen += 1

    def process_tick(self, tup):
        self.emit([self.seen], anchors=[])


class Keeps(Bolt):
    """Keeps what comes until the second tick after it, then sends it on, anchored to nothing."""

    output_fields = ["n"]
    component_conf = {"topology.tick.tuple.freq.secs": 0.1}

    def initialize(self, conf, context):
        self.older, self.newer = [], []

    def process(self, tup):
        self.newer.append(tup)

    def process_tick(self, tup):
        for kept in self.older:
            self.emit([kept["n"]])
            self.ack(kept)
        self.older, self.newer = self.newer, []


class ForgetsAll(Bolt):
    """Neither acks nor fails anything."""

    output_fields = ["n"]
    component_conf = {"topology.tick.tuple.freq.secs": 0.1}

    def process(self, tup):
        pass


class ForgetsPlain(ForgetsAll):
    component_conf = {}


class QuickBatches(Batches):
    component_conf = {"topology.tick.tuple.freq.secs": 0.1}


class Around(BasicBolt):
    """Each number goes round three times."""

    output_fields = ["n"]
    output_streams = {"again": ["n", "rounds"]}

    def process(self, tup):
        rounds = 0 if tup.stream == "default" else tup["rounds"]
        if rounds < 3:
            self.emit([tup["n"], rounds + 1], stream="again")
        else:
            self.emit([tup["n"]])


def _says_around():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("says", Says).shuffle_grouping("numbers")
    around = builder.set_bolt("around", Around)
    around.shuffle_grouping("numbers").shuffle_grouping("says").shuffle_grouping("around", stream="again")
    builder.set_bolt("quickbatches", QuickBatches).shuffle_grouping("around")
    return builder.build("says-around")


says_around = _says_around()
says = _chain("says", Numbers, Says, QuickBatches)
says_on = _chain("says-on", Numbers, Says, QuickBatches, Keeps)
keeps = _chain("keeps", Unreliable, Keeps, QuickBatches)
forgets_plain = _chain("forgets-plain", Unreliable, ForgetsPlain)
forgets_all = _chain("forgets-all", Unreliable, ForgetsAll)
