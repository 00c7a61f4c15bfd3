"""Every kind of emit, allowed or not, by a spout, by a bolt and by a program in another language."""

from __future__ import annotations

import re
import sys
from itertools import product
from pathlib import Path

from multilang.component import BasicBolt, Bolt, Spout, Stream
from multilang.protocol import LocalProtocolError
from multilang.topology import ShellBolt, TopologyBuilder

STREAMS = {"default": ["n"], "routed": Stream(["n"], direct=True), "said": ["n", "what"]}
NOBODY = 999  # no task of the topology
# The stream, the number of values, and whose task the emit names; "unsubscribed" takes neither stream.
CASES = list(
    product(["default", "routed", "nowhere"], [1, 2], [None, "shuffled", "directed", "unsubscribed", "nobody"])
)
SPEAKER = str(Path(__file__).with_name("speaker.py"))
SENT = "sent"


def expected(n: int) -> tuple[str, list[str]]:
    """Return what is said of a case (in part), and which components get a tuple."""
    stream, width, target = CASES[n]
    if stream == "nowhere":
        return "emits on stream 'nowhere', which it does not declare", []
    if stream == "routed" and target is None:
        return "stream 'routed' is subscribed by direct grouping", []
    if target == "nobody":
        return f"emits to task {NOBODY}, which the topology does not have", []
    if stream == "default" and target == "shuffled":
        return "of 'shuffled', which takes stream 'default' by SHUFFLE grouping", []
    if width != 1:
        return f"emits {width} values on stream '{stream}', which declares 1: n", []
    if stream == "default":
        return SENT, [] if target else ["shuffled"]
    return SENT, ["directed"] if target == "directed" else []


def whole(what: str) -> str:
    """Return what was said, without the parts that differ from run to run: task numbers and the component."""
    return re.sub(r"task \d+", "task T", re.sub(r"component '\w+'", "component C", what))


def say(component, n: int, **options) -> str:
    """Emit a case; what came of it."""
    stream, width, target = CASES[n]
    task = NOBODY if target == "nobody" else component.context.tasks(target)[0] if target else None
    try:
        ids = component.emit([n] * width, stream=stream, direct_task=task, **options)
    except LocalProtocolError as error:
        return str(error)
    if ids is not None and (len(ids) != 1 or task not in (None, *ids)):
        return f"answered with {ids}"
    return SENT


class Says(Spout):
    """Emits each case, and what came of it."""

    output_streams = STREAMS

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < len(CASES):
            self.emit([self.n, say(self, self.n)], stream="said")
            self.n += 1

    def exhausted(self):
        return self.n == len(CASES)


class Repeats(Bolt):
    """The same from a bolt."""

    output_streams = STREAMS

    def process(self, tup):
        n = tup["n"]
        self.emit([n, say(self, n, anchors=[tup], need_task_ids=True)], stream="said", anchors=[tup])
        self.ack(tup)


class Receives(BasicBolt):
    """Emits the component that a tuple came from, and which tuple it was."""

    output_fields = ["from", "n", "what"]

    def process(self, tup):
        self.emit([tup.component, tup["n"], tup.get("what")])


class Once(Spout):
    """One tuple."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.done = False

    def next_tuple(self):
        if not self.done:
            self.done = True
            self.emit([0])

    def exhausted(self):
        return self.done


def built(speaks: str):
    """The topology, whose bolt "speaks" is in Python, or another program with a task for each case."""
    builder = TopologyBuilder()
    if speaks == "python":
        builder.set_spout("says", Says)
        builder.set_bolt("speaks", Repeats).shuffle_grouping("says", stream="said")
    else:
        builder.set_spout("says", Once)
        program = ShellBolt([sys.executable, SPEAKER], output_streams=STREAMS)
        builder.set_bolt("speaks", program, parallelism=len(CASES)).all_grouping("says")
    for name in ("shuffled", "directed", "unsubscribed", "heard"):
        bolt = builder.set_bolt(name, Receives)
        for source in ["says", "speaks"] if speaks == "python" else ["speaks"]:
            if name == "shuffled":
                bolt.shuffle_grouping(source)
            elif name == "directed":
                bolt.direct_grouping(source, stream="routed")
            else:
                bolt.shuffle_grouping(source, stream="said")
    return builder.build(f"routing-{speaks}")


python, shell = built("python"), built("shell")


def check(source: str, rows: dict[str, list], refused: list[str] | None = None) -> None:
    """Check that each case of ``source`` ended, and that each tuple came to its place.

    ``rows``: what each bolt emitted.

    ``refused``: the errors of a component that dies of them.
    """
    said = sorted((n, what) for whose, n, what in rows["heard"] if whose == source)
    right = [(n, expected(n)[0]) for n in range(len(CASES))]
    if refused is None:
        assert [n for n, _ in said] == list(range(len(CASES)))
        assert [what for (_, what), (_, part) in zip(said, right, strict=True) if part not in what] == []
    else:
        assert [n for n, _ in said] == [n for n, part in right if part == SENT]
        parts = [part for _, part in right if part != SENT]
        assert len(refused) == len(parts)
        for part in parts:
            refused.remove(next(error for error in refused if part in error))
    for name in ("shuffled", "directed"):
        came = sorted(n for whose, n, _ in rows[name] if whose == source)
        assert came == [n for n in range(len(CASES)) if expected(n)[1] == [name]]
