"""Streams whose sources run at different paces, in a module that a task's process imports without pytest and hypothesis.

An element is ``[time, number]``; the elements of one source's task come in the order of their times.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter

from multilang import BasicBolt, Bolt, ReliableSpout
from multilang.streams import StreamBuilder
from multilang.windowing import Session, Tumbling, seconds

END = 10_000_000  # the time of the elements that end all windows
ENDS = 60  # enough of them that some come by each way
STEP = 500  # milliseconds between the times of elements
EACH = 24  # elements of a task
WINDOWS = {"tumbling": Tumbling(seconds(5)), "session": Session(seconds(2))}
CONF = {"topology.message.timeout.secs": 10_000}


class Paced(ReliableSpout):
    """Emits its elements, each task after a time of its own, and in steps; those of a number only when a file is there."""

    output_fields = ["ts", "n"]

    def __init__(self, number: int, after: float, pause: float) -> None:
        self.number, self.after, self.pause = number, after, pause

    def initialize(self, conf, context):
        self.began = self.clock()
        self.left = elements_of(self.number, context.task_index)[::-1]
        self.due = self.after * (1 + context.task_index)

        self.go = conf.get(f"test.go.{self.number}")

    def next_tuple(self):
        if self.go is not None and not os.path.exists(self.go):
            return
        while self.left and self.clock() - self.began >= self.due:
            self.emit(self.left.pop())
            self.due += self.pause

    def exhausted(self):
        return not self.left


class Shown(BasicBolt):
    """The end of a stream, whose tuples are captured."""

    output_fields = ["value"]

    def process(self, tup):
        self.emit([list(tup.values)])


class Passes(BasicBolt):
    """A bolt in the middle of a stream."""

    output_fields = ["ts", "n"]

    def process(self, tup):
        self.emit(list(tup.values))


class PassesByHand(Bolt):
    output_fields = ["ts", "n"]

    def process(self, tup):
        self.emit(list(tup.values), anchors=[tup])
        self.ack(tup)


class PassesAtTicks(Passes):
    def process_tick(self, tup):
        """Do nothing."""


class PassesMany(BasicBolt):
    output_fields = ["element"]

    def process_many(self, tups):
        for tup in tups:
            self.emit([tup.values[0]], anchors=[tup])


def elements_of(number, task):
    own = [[STEP * (n + 1), 1000 * (10 * number + task) + n] for n in range(EACH)]
    return own + [[END + n, -1 - n] for n in range(ENDS)]


def taken(tup):
    return [tup["ts"], tup["n"]]


def element_of(tup):
    return tup["element"]


def all_of(tup):
    return list(tup.values)


def kept(element):
    return _is_kept(element[1])


def kept_tuple(tup):
    return _is_kept(tup["n"])


def _is_kept(n):
    return n * 2654435761 % 1009 % 3 != 1  # not by turns, as elements go to tasks


def twice(element):
    ts, n = element
    return [[ts, 2 * n], [ts, 2 * n + 1]] if n >= 0 else [element]


async def looked_up(element):
    await asyncio.sleep(0)
    return element


async def looked_up_late(element):
    await asyncio.sleep(0.001 * (-element[1] % 3))
    return element


def by_number(element):
    return element[1] % 3


def by_each(element):
    return element[1]


def newest(_, element):
    return element


def nothing():
    return None


def second(pair):
    return pair[1]


def time_of(element):
    return element[0]


def everything(_):
    return "all"


STEPS = {
    "bolt": lambda stream, tasks: stream.through(Passes, fields=["ts", "n"], parallelism=tasks).map(all_of),
    "bolts": lambda stream, tasks: stream.through(PassesMany).through(PassesMany, parallelism=tasks).map(element_of),
    "filter": lambda stream, _: stream.filter(kept),
    "flat_map": lambda stream, _: stream.flat_map(twice),
    "repartition": lambda stream, tasks: stream.repartition(tasks),
    "map_async": lambda stream, _: stream.map_async(looked_up, limit=7),
    "unordered": lambda stream, _: stream.map_async(looked_up_late, limit=7, ordered=False),
    "state": lambda stream, tasks: (
        stream.key_by(by_each).repartition(tasks).update_state(nothing, newest).map(second, name=None)
    ),
    "fold": lambda stream, tasks: (
        stream.key_by(by_each).repartition(tasks).aggregate(nothing, newest, newest).map(second)
    ),
}


def built(shape):
    """Return the topology of a description: what comes out of the windows, and what came too late for them."""
    s = StreamBuilder()
    streams = []
    for number, (tasks, after, pause, tuples_first) in enumerate(shape["sources"]):
        stream = s.source(Paced(number, after, pause), parallelism=tasks, name=f"source{number}")
        if tuples_first:
            stream = stream.filter(kept_tuple).repartition(tuples_first)
        stream = stream.map(taken)
        for step, parallelism in shape["steps"]:
            stream = STEPS[step](stream, parallelism)
        streams.append(stream)
    stream = streams[0] if len(streams) == 1 else streams[0].merge(*streams[1:])
    for step, parallelism in shape["together"]:
        stream = STEPS[step](stream, parallelism)
    keyed = stream.key_by(everything if shape["tasks"] == 1 else by_number)
    windows = keyed.repartition(shape["tasks"]).window(WINDOWS[shape["window"]], time_of).group()
    windows.with_end().through(Shown, name="end")
    windows.late().through(Shown, name="lates")
    return s.build("skewed", CONF)


def worked_out(shape):
    """Return the numbers of the elements that come to the windows, each once."""
    found = []
    for number, (tasks, _, _, tuples_first) in enumerate(shape["sources"]):
        elements = [element for task in range(tasks) for element in elements_of(number, task) if element[1] >= 0]
        for step in [
            *(["filter"] if tuples_first else []),
            *(step for step, _ in [*shape["steps"], *shape["together"]]),
        ]:
            if step == "filter":
                elements = [element for element in elements if kept(element)]
            elif step == "flat_map":
                elements = [each for element in elements for each in twice(element)]
        found += [n for _, n in elements]
    return Counter(found)


def seen(values):
    """Return what windows have, without the elements that end them."""
    return Counter(n for value in values for _, n in value["value"][1][1] if n >= 0)
