"""The components that generated topologies are made of, and how a description becomes a topology.

A tuple is ``[id, key, n]``: ``id`` ends with the attempt ("7/2"; "7/r" where each attempt looks the same), so that what fails
is a matter of the tuple alone and not of when it comes. Every component writes down what it got, and every spout what it
was told, in ``test.record``: a file, or a list of this process. This module imports nothing of the tests: it also goes to
Storm's workers as it is.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict

from multilang import (
    BasicBolt,
    BatchBolt,
    BatchingBolt,
    Bolt,
    CustomGrouping,
    ReliableSpout,
    ShellBolt,
    ShellSpout,
    Spout,
    TopologyBuilder,
)
from multilang.component import FailedException, Stream
from multilang.coordination import COORD_STREAM, SINGLE, BatchBoltExecutor, CoordinatedBolt
from multilang.state import StatefulBasicBolt, StatefulBolt

FIELDS = ["id", "key", "n"]
STREAMS = {"default": FIELDS, "side": FIELDS, "again": FIELDS, "direct": Stream(FIELDS, direct=True)}
TICK = "tick"  # the key of what ticks alone bring, however many of them there are
TICKS = "topology.tick.tuple.freq.secs"
IN_MEMORY = "memory:"

records: dict[str, list[list]] = defaultdict(list)
_files: dict[str, int] = {}


def write_down(conf, context, *what):
    """One line of the record."""
    where = conf["test.record"]
    line = [context.component, context.task_index, *what]
    if where.startswith(IN_MEMORY):
        records[where].append(line)
        return
    if where not in _files:
        _files[where] = os.open(where, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(
        _files[where], (json.dumps(line) + "\n").encode()
    )  # in one write, so that lines of several tasks don't mix


def fails(spec, id, n):
    """Return whether this attempt is one of those that fail."""
    attempt = id.rpartition("/")[2]
    return attempt.isdigit() and int(attempt) <= spec.get("fails", 0) and n % spec.get("every", 1) == 0


def ways(spec, context, n):
    """On which streams, and directly to which task, a tuple leaves."""
    out = spec.get("out", "default")
    if out == "parity":
        return [("side" if n % 2 else "default", None)]
    if out == "both":
        return [("default", None), ("side", None)]
    if out == "direct":
        tasks = [context.tasks(target) for target in sorted(context.targets.get("direct", {}))]
        return [("direct", each[n % len(each)]) for each in tasks]
    return [("default", None)]


def copies(spec, key):
    """The keys of what comes of one tuple."""
    fan = spec.get("fan", 1)
    return [key] if fan == 1 else [f"{key}{'abc'[i]}" for i in range(fan)]


class _Part:
    output_streams = STREAMS

    def initialize(self, conf, context):
        self.spec = json.loads(conf["test.spec"])
        self.begin()

    def begin(self):
        pass


class _Source(_Part):
    def begin(self):
        spec, index = self.spec, self.context.task_index
        first = 100 * (spec["number"] + 1) + 20 * index
        self.left = list(range(first, first + spec["values"]))

    def told(self, what, id):
        write_down(self.conf, self.context, what, id)

    def exhausted(self):
        if not self.spec.get("tells", True):
            return None
        return not self.left

    def next_tuple(self):
        for _ in range(self.spec.get("burst", 1)):
            if self.left:
                self.give(self.left.pop(0))

    def send(self, n, attempt, tup_id):
        for way, (stream, task) in enumerate(ways(self.spec, self.context, n)):
            own = None if tup_id is None else f"{tup_id}/{way}"
            self.emit([f"{n}/{attempt}", f"k{n % 3}", n], own, stream=stream, direct_task=task)


class Plain(_Source, Spout):
    """Emits without ids."""

    def give(self, n):
        self.send(n, "p", None)


class Reliable(_Source, ReliableSpout):
    """Emits what failed once more, as it was."""

    emits_again = True
    max_replays = 10

    def give(self, n):
        self.send(n, "r", str(n))

    def acked(self, tup_id):
        self.told("acked", tup_id)

    def fail(self, tup_id):
        self.told("failed", tup_id)
        super().fail(tup_id)


class Replays(_Source, Spout):
    """Emits what failed with the number of its attempt."""

    emits_again = True

    def begin(self):
        super().begin()
        self.again = []

    def exhausted(self):
        return False if self.again else super().exhausted()

    def next_tuple(self):
        if self.again:
            n, attempt, way = self.again.pop(0)
            stream, task = ways(self.spec, self.context, n)[way]
            self.emit([f"{n}/{attempt}", f"k{n % 3}", n], f"{n}/{attempt}/{way}", stream, task)
        else:
            super().next_tuple()

    def give(self, n):
        self.send(n, 1, f"{n}/1")

    def ack(self, tup_id):
        self.told("acked", tup_id)

    def fail(self, tup_id):
        self.told("failed", tup_id)
        n, attempt, way = map(int, tup_id.split("/"))
        self.again.append((n, attempt + 1, way))


class _Step(_Part):
    """``got`` writes down a tuple; ``pass_on`` emits what comes of it."""

    def got(self, tup):
        write_down(self.conf, self.context, tup.component, tup.stream, *tup.values)

    def pass_on(self, tup, **how):
        id, key, n = tup.values
        for each in copies(self.spec, key):
            for stream, task in ways(self.spec, self.context, n):
                self.emit([id, each, n], stream=stream, direct_task=task, **how)


class Basic(_Step, BasicBolt):
    def process(self, tup):
        self.got(tup)
        self.pass_on(tup)


class Fails(_Step, BasicBolt):
    """Fails the first attempts; or, of a spout whose attempts look alike, each tuple so many times."""

    def begin(self):
        self.seen = Counter()

    def process(self, tup):
        self.got(tup)
        id, _, n = tup.values
        if tup.component == self.spec.get("of"):
            self.seen[id, tup.stream] += 1
            if self.seen[id, tup.stream] <= self.spec["fails"] and n % self.spec["every"] == 0:
                raise FailedException(f"{id} for the {self.seen[id, tup.stream]}. time")
        elif fails(self.spec, id, n):
            raise FailedException(id)
        self.pass_on(tup)


class Raw(_Step, Bolt):
    """Chooses its anchors itself, and may ask where its tuples went."""

    acks_by_itself = True

    def process(self, tup):
        self.got(tup)
        how = self.spec["how"]
        if how == "asks":
            for stream, task in ways(self.spec, self.context, tup[2]):
                sent = self.emit(tup.values, stream, [tup], task, need_task_ids=True)
                known = {each for name in self.context.targets.get(stream, {}) for each in self.context.tasks(name)}
                assert set(sent) <= known, (sent, known)
            self.ack(tup)
        elif how == "calls back":
            left = ways(self.spec, self.context, tup[2])
            waiting = [len(left)]

            def told(_):
                waiting[0] -= 1
                if not waiting[0]:
                    self.ack(tup)

            for stream, task in left:
                self.emit(tup.values, stream, [tup], task, on_task_ids=told)
            if not left:
                self.ack(tup)
        elif how == "late":
            self.ack(tup)
            self.pass_on(tup)
        else:
            self.pass_on(tup, anchors=[tup] if how == "each" else [])
            self.ack(tup)


class Forgets(_Step, Bolt):
    """Neither acks nor fails the first attempts."""

    def process(self, tup):
        self.got(tup)
        self.pass_on(tup, anchors=[tup])
        if not fails(self.spec, tup[0], tup[2]):
            self.ack(tup)


class _Batches(_Step, BatchingBolt):
    def __init__(self, size=None):
        super().__init__()
        self.batch_size = size

    def group_key(self, tup):
        return tup["key"] if self.spec.get("grouped") else None

    def process_batch(self, key, tups):
        how = {"group": {}, "none": {"anchors": []}}.get(self.spec["how"])
        for tup in tups:
            self.got(tup)
            if fails(self.spec, tup[0], tup[2]):
                self.fail(tup)
            else:
                self.pass_on(tup, **({"anchors": [tup]} if how is None else how))


class Batches(_Batches):
    """Groups that are due at ticks, or when they have the size."""


class Single(_Batches):
    """Groups of one, which need no ticks."""

    component_conf = {}

    def __init__(self):
        super().__init__(1)


class Holds(_Step, Bolt):
    """Keeps tuples until the second tick after them."""

    def begin(self):
        self.older, self.newer = [], []

    def process(self, tup):
        self.got(tup)
        self.newer.append(tup)

    def process_tick(self, tup):
        for kept in self.older:
            self.pass_on(kept, anchors=[kept] if self.spec["how"] == "each" else [])
            self.ack(kept)
        self.older, self.newer = self.newer, []


class Says(_Step, BasicBolt):
    """Passes tuples on, and says something at each tick of its own accord."""

    def process(self, tup):
        self.got(tup)
        self.pass_on(tup)

    def process_tick(self, tup):
        for stream, task in ways(self.spec, self.context, 0):
            self.emit(
                [TICK, TICK, 0], stream=stream, direct_task=task, anchors=[] if self.spec["how"] == "none" else None
            )


class Joins(_Step, Bolt):
    """Waits for each tuple on two streams, and emits one that is anchored to both."""

    def begin(self):
        self.waiting = defaultdict(list)

    def process(self, tup):
        self.got(tup)
        if tup["key"].startswith(TICK):
            self.ack(tup)
            return
        others = self.waiting[json.dumps([*tup.values, "default" if tup.stream == "side" else "side"])]
        if not others:
            self.waiting[json.dumps([*tup.values, tup.stream])].append(tup)
            return
        other = others.pop(0)
        for stream, task in ways(self.spec, self.context, tup[2]):
            self.emit(tup.values, stream, [other, tup], task)
        self.ack(other)
        self.ack(tup)


class Loops(_Step, BasicBolt):
    """Sends each tuple round so many times."""

    def process(self, tup):
        self.got(tup)
        id, key, n = tup.values
        if key.count("~") < self.spec["loops"]:
            self.emit([id, key + "~", n], stream="again")
        else:
            self.emit([id, key.rstrip("~"), n])


class _Counting(_Step):
    def init_state(self, state):
        self.state = state

    def count(self, tup):
        self.got(tup)
        key = tup["key"]
        count = self.state.get(key, 0) + 1
        self.state.put(key, count)
        return [TICK if key.startswith(TICK) else f"{count}/s", key, count]


class Counts(_Counting, StatefulBasicBolt):
    def process(self, tup):
        self.emit(self.count(tup))


class RawCounts(_Counting, StatefulBolt):
    def process(self, tup):
        self.emit(self.count(tup), anchors=[tup])
        self.ack(tup)


class Spreads(_Step, Bolt):
    """The first of two coordinated bolts."""

    def process(self, tup):
        self.got(tup)
        id, key, n = tup.values
        for each in range(n % 4):
            self.emit([id, f"{key}{each}", n], anchors=[tup])
        self.ack(tup)


class Sums(BatchBolt):
    """The second: how many there were of an id, said at its end."""

    output_streams = STREAMS

    def initialize(self, conf, context, collector, id):
        self.all = []

    def process(self, tup):
        write_down(self.conf, self.context, tup.component, tup.stream, *tup.values)
        self.all.append(tup["key"])

    def finish_batch(self):
        self.emit([self.id, "".join(sorted(self.all)), len(self.all)])


class ByNumber(CustomGrouping):
    def prepare(self, context, stream, target_tasks):
        self.tasks = target_tasks

    def choose_tasks(self, source_task, values):
        return [self.tasks[values[2] % len(self.tasks)]]


class ShellSteps(_Step, Bolt):
    """The same as child.py, where nothing can run a program."""

    def process(self, tup):
        self.got(tup)
        id, key, n = tup.values
        if fails(self.spec, id, n):
            self.fail(tup)
            return
        for each in copies(self.spec, key):
            for stream, task in ways(self.spec, self.context, n):
                self.emit([id, each, n], stream, [tup] if self.spec["how"] == "each" else [], task)
        self.ack(tup)


SPOUTS = {"plain": Plain, "reliable": Reliable, "replays": Replays, "shell spout": Replays}
BOLTS = {
    "basic": Basic,
    "fails": Fails,
    "raw": Raw,
    "forgets": Forgets,
    "batches": Batches,
    "single": Single,
    "holds": Holds,
    "says": Says,
    "joins": Joins,
    "loops": Loops,
    "counts": Counts,
    "raw counts": RawCounts,
    "shell": ShellSteps,
}
SHELL = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")]


def declare(builder, shape, record, tick, shell, prefix=""):
    """Add a description's components. ``shell``: the command of child.py, None where programs can't run."""
    for part in shape["components"]:
        kind, id = part["kind"], prefix + part["id"]
        spec = {**part, "of": prefix + part["of"]} if "of" in part else part
        conf = {"test.spec": json.dumps(spec), "test.record": record}
        if part.get("pending"):
            conf["topology.max.spout.pending"] = part["pending"]
        if part.get("ticks"):
            conf[TICKS] = tick
        if kind in SPOUTS:
            spout = (
                ShellSpout([*shell, "spout"], output_streams=STREAMS)
                if kind == "shell spout" and shell
                else SPOUTS[kind]
            )
            builder.set_spout(id, spout, parallelism=part["tasks"], conf=conf)
            continue
        if kind == "shell" and shell:
            bolt = ShellBolt(shell, output_streams=STREAMS)
        elif kind == "batches":
            bolt = Batches(part.get("size"))
        elif kind == "spreads":
            bolt = CoordinatedBolt(Spreads(), factory=Spreads)
        elif kind == "sums":
            bolt = CoordinatedBolt(BatchBoltExecutor(Sums(), Sums), {prefix + part["inputs"][0]["from"]: SINGLE})
        else:
            bolt = BOLTS[kind]
        declarer = builder.set_bolt(id, bolt, parallelism=part["tasks"], conf=conf)
        for put in part["inputs"]:
            source, grouping, stream = prefix + put["from"], put["grouping"], put["stream"]
            if grouping in ("fields", "partial_key"):
                getattr(declarer, f"{grouping}_grouping")(source, *put["fields"], stream=stream)
            elif grouping == "custom":
                declarer.custom_grouping(source, ByNumber(), stream=stream)
            else:
                getattr(declarer, f"{grouping}_grouping")(source, stream=stream)
        if kind == "sums":
            declarer.direct_grouping(prefix + part["inputs"][0]["from"], stream=COORD_STREAM)


def built(shape, record, tick, shell=None, name="shape"):
    """The topology of one description."""
    builder = TopologyBuilder()
    declare(builder, shape, record, tick, shell)
    return builder.build(name, conf=conf_of(shape))


def conf_of(shape):
    """Return the topology's conf for this shape."""
    conf = {"topology.acker.executors": shape["ackers"]}
    if shape["stateful"]:
        conf["topology.state.checkpoint.interval.ms"] = 100
        conf["topology.state.provider"] = "memory"
    return conf


def packed(shapes, record, name="packed"):
    """Many descriptions in one topology, for Storm: each a graph of its own."""
    builder = TopologyBuilder()
    for number, shape in enumerate(shapes):
        declare(builder, shape, record, 1, ["python3", "child.py"], prefix=f"g{number}_")
    conf = conf_of({"ackers": 1, "stateful": any(shape["stateful"] for shape in shapes)})
    if any(part.get("fails") for shape in shapes for part in shape["components"]):
        conf["multilang.exchange"] = "root"  # what fails takes no other with it: even the repeats are the same
    return builder.build(name, conf=conf)
