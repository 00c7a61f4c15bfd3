"""Stateful topologies for these tests, at module level, where a task's process can import them."""

from __future__ import annotations

from collections import Counter

from multilang import BasicBolt, ReliableSpout, StatefulBasicBolt, StatefulBolt, TopologyBuilder
from multilang.state import ReplayableSpout
from multilang.store.settings import name_in

SENTENCES = [
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
]


def words_of(sentences: int) -> Counter[str]:
    """Return the counts of so many sentences' words."""
    return Counter(word for n in range(sentences) for word in SENTENCES[n % len(SENTENCES)].split())


class Sentences(ReliableSpout):
    """Emits ``test.sentences`` of them; a task that is started again begins anew with what it has not seen acked."""

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


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        for word in tup["sentence"].split():
            self.emit([word])


class Count(StatefulBolt):
    """As on Storm's page: anchors and acks by itself."""

    output_fields = ["word", "count"]

    def init_state(self, state):
        self.counts = state

    def process(self, tup):
        word = tup["word"]
        count = self.counts.get(word, 0) + 1
        self.counts.put(word, count)
        self.emit([word, count], anchors=[tup])
        self.ack(tup)


class Lengths(StatefulBasicBolt):
    """Behind a stateful bolt: how many words of each length there were."""

    def init_state(self, state):
        self.lengths = state

    def process(self, tup):
        length = len(tup["word"])
        self.lengths.put(length, self.lengths.get(length, 0) + 1)


def build(conf=None, spout=Sentences, spouts=1):
    builder = TopologyBuilder()
    builder.set_spout("sentences", spout, parallelism=spouts)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
    builder.set_bolt("lengths", Lengths).global_grouping("count")
    return builder.build("stateful", conf=conf)


topology = build()


def named(provider):
    """The provider of the only topology that has its state there, unless its conf names one."""
    if "topology.name" in provider.conf or not hasattr(provider, "store"):  # that of somebody's own has none
        return provider
    (name,) = {name_in(place.split("/")[1]) for place in provider.store.places("state/")} or {"none"}
    return type(provider)(provider.config, {**provider.conf, "topology.name": name})


def stored(provider, component, tasks):
    """Everything that the tasks of a component have stored, one mapping; each key is in one of them."""
    found = {}
    provider = named(provider)
    for index in range(tasks):
        state = provider.new_state(f"{component}-{index}")
        for key, value in state:
            assert key not in found
            found[key] = value
        state.close()
    return found


class Lines(ReplayableSpout):
    """The same sentences, by position; with several tasks, each has its share."""

    output_fields = ["sentence"]
    max_replays = None

    def initialize(self, conf, context):
        self.total = conf.get("test.sentences", 200)
        self.n, self.step = context.task_index, len(context.tasks(context.component))
        self.burst, self.calls = conf.get("test.burst", 0), 0

    def next_tuple(self):
        self.calls += 1
        if self.burst and self.calls % self.burst == 0:
            return  # nothing at the moment
        if self.n < self.total:
            n, self.n = self.n, self.n + self.step
            self.emit([SENTENCES[n % len(SENTENCES)]], tup_id=n)

    def position(self):
        return self.n

    def seek(self, position):
        self.n = position

    def exhausted(self):
        return self.n >= self.total


exact = build({"multilang.state.alignment": "exact"}, Lines, 2)
