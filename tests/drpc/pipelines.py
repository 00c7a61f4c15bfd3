"""Topologies of random steps, and what they must answer, worked out in plain Python."""

from __future__ import annotations

import json
import time
from pathlib import Path
from zlib import crc32

from multilang import BasicBolt, BatchBolt, Bolt
from multilang.drpc import LinearDRPCTopologyBuilder

MODULUS = 1_000_003


def children(seed, step, value, fan):
    """Return the values that a step makes of a value: up to ``fan`` of them."""
    number = crc32(b"%d %d %d" % (seed, step, value)) % (fan + 1)
    return [(value * 31 + each * 7 + step) % MODULUS for each in range(number)]


def answer(text):
    """Return the right answer of the topology: the caller, the number of values at the end, and their sum."""
    request = json.loads(text)
    values = [request["start"]]
    for step, fan in enumerate(request["fans"]):
        values = [child for value in values for child in children(request["seed"], step, value, fan)]
    return f"{request['seed']}: {len(values)} {sum(values)}"


class Start(BasicBolt):
    """Every tuple carries what a step needs to know of its request, so that a mixed-up one would show."""

    output_fields = ["id", "value", "text"]

    def process(self, tup):
        request = json.loads(tup[1])
        self.emit([tup[0], request["start"], tup[1]])
        self.emit([tup[0], -1, tup[1]])  # the mark: that there was a request, however little comes of it


class Expand(BasicBolt):
    output_fields = ["id", "value", "text"]

    def __init__(self, step):
        self.step = step

    def process(self, tup):
        for value in expanded(self.step, tup):
            self.emit([tup[0], value, tup[2]])


class ExpandPlain(Bolt):
    """Anchors and acks itself, one tuple late."""

    output_fields = ["id", "value", "text"]

    def __init__(self, step):
        self.step = step

    def process(self, tup):
        for value in expanded(self.step, tup):
            self.emit([tup[0], value, tup[2]], anchors=[tup])
        self.ack(tup)


class ExpandAtTheEnd(BatchBolt):
    output_fields = ["id", "value", "text"]

    def __init__(self, step):
        self.step = step

    def initialize(self, conf, context, collector, id):
        self.kept = []

    def process(self, tup):
        self.kept.append(tup)

    def finish_batch(self):
        for tup in self.kept:
            assert tup[0] == self.id
            for value in expanded(self.step, tup):
                self.emit([self.id, value, tup[2]])


class Total(BatchBolt):
    output_fields = ["id", "result"]

    def initialize(self, conf, context, collector, id):
        self.values, self.texts = [], set()

    def process(self, tup):
        self.texts.add(tup[2])
        if tup[1] >= 0:
            self.values.append(tup[1])

    def finish_batch(self):
        (text,) = self.texts  # of one request alone
        self.emit([self.id, f"{json.loads(text)['seed']}: {len(self.values)} {sum(self.values)}"])


def expanded(step, tup):
    _, value, text = tup.values
    request = json.loads(text)
    return [-1] if value < 0 else children(request["seed"], step, value, request["fans"][step])


KINDS = [Expand, ExpandPlain, ExpandAtTheEnd]


def pipeline(steps, last_parallelism=1, name="pipe"):
    """``steps``: for each (kind, parallelism, grouping), between a first step and the last, which adds up."""
    builder = LinearDRPCTopologyBuilder(name)
    builder.add_bolt(Start(), 2)
    for number, (kind, parallelism, grouping) in enumerate(steps):
        declarer = builder.add_bolt(KINDS[kind](number), parallelism)
        if grouping == "fields":
            declarer.fields_grouping("value")
        else:
            getattr(declarer, f"{grouping}_grouping")()
    builder.add_bolt(Total, last_parallelism).fields_grouping("id")
    return builder.build()


GROUPINGS = ["shuffle", "fields", "global", "none"]


def drawn(rng, steps=(1, 5), parallelism=(1, 8)):
    """Return random arguments for ``pipeline``."""
    number = rng.randint(*steps)
    drawn = [(rng.randrange(len(KINDS)), rng.randint(*parallelism), rng.choice(GROUPINGS)) for _ in range(number)]
    return drawn, rng.randint(*parallelism)


def requests(rng, number, steps, fan):
    """Requests of random fan-outs, none of which comes to much more than ``fan`` tuples in the end."""
    made = []
    for seed in range(number):
        fans, left = [], fan
        for _ in range(steps):
            most = rng.choice([1, 2, 3, left])
            fans.append(min(most, left))
            left = max(1, left // max(1, fans[-1]))
        made.append(json.dumps({"seed": seed, "start": rng.randrange(MODULUS), "fans": fans}))
    return made


class Stuck(BasicBolt):
    """Never comes to the end of one kind of request."""

    output_fields = ["id", "result"]

    def process(self, tup):
        if tup[1] == "now":
            Path(self.conf["test.started"]).touch()
            while True:
                time.sleep(1)
        self.emit([tup[0], tup[1]])


stuck_builder = LinearDRPCTopologyBuilder("stuck")
stuck_builder.add_bolt(Stuck())
stuck = stuck_builder.build()
