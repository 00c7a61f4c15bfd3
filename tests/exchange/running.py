"""Topologies of the tests with processes."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path
from typing import Any

from multilang import BasicBolt, Bolt, Context, FailedException, ReliableSpout, Spout, TopologyBuilder, Tuple, Tuples

NUMBERS = 4000


class Numbers(ReliableSpout):
    """A source that gives everything again when its process was killed, as a queue would."""

    output_fields = ("n",)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        path = Path(conf["test.folder"], f"acked.{context.task}")
        done = set(path.read_text().split()) if path.exists() else set()
        mine = range(context.task_index, NUMBERS, len(context.tasks(context.component)))
        self.left = [n for n in mine if str(n) not in done]
        self.file = path.open("a")

    def next_tuple(self) -> None:
        if self.left:
            n = self.left.pop()
            self.emit([n], n)

    def acked(self, tup_id: int) -> None:
        self.file.write(f"{tup_id}\n")
        self.file.flush()

    def exhausted(self) -> bool:
        return not self.left

    def close(self) -> None:
        self.file.close()


class EveryOther(Spout):
    """Numbers together, of which the even ones have a message id."""

    output_fields = ("n",)
    given = False

    def next_tuple(self) -> None:
        if not self.given:
            self.given = True
            for n in range(40):
                self.emit([n], None if n % 2 else n)


class Passes(BasicBolt):
    output_fields = ("n",)

    def process(self, tup: Tuple) -> None:
        self.emit([tup["n"]])


class KeepsOdd(Bolt):
    """Acks even numbers alone."""

    def process(self, tup: Tuple) -> None:
        if tup["n"] % 2 == 0:
            self.ack(tup)


def line(name: str, pending: int, spout: Any, *bolts: tuple[str, Any], **tasks: int) -> Any:
    """Return a topology of the spout "numbers" and bolts behind one another, each with its id and one task or more."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout, tasks.get("numbers", 1))
    before = "numbers"
    for id, bolt in bolts:
        builder.set_bolt(id, bolt, tasks.get(id, 1)).shuffle_grouping(before)
        before = id
    return builder.build(name, conf={"topology.max.spout.pending": pending})


class Three(BasicBolt):
    output_fields = ("n", "key")

    def process(self, tup: Tuple) -> None:
        for i in range(3):
            self.emit([3 * tup["n"] + i, f"key {i}"])


class Note(BasicBolt):
    output_fields = ("n",)  # nobody reads them

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.file = Path(conf["test.folder"], "noted").open("a")  # noqa: SIM115 - until the process ends

    def process(self, tup: Tuple) -> None:
        self.file.write(f"{tup['n']}\n")
        self.file.flush()
        self.emit([tup["n"]])

    def close(self) -> None:
        self.file.close()


def killed() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers, 2)
    builder.set_bolt("three", Three, 2).shuffle_grouping("numbers")
    builder.set_bolt("note", Note, 2).fields_grouping("three", "key")
    return builder.build("killed", conf={"topology.max.spout.pending": 300})


class Threaded(Bolt):
    """Its own thread emits and acks, also while the main thread waits for input."""

    output_fields = ("n", "key")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.work: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self.run_thread, daemon=True).start()

    def process(self, tup: Tuple) -> None:
        if tup["n"] % 3:
            self.emit([tup["n"], "main"], anchors=[tup])
            self.ack(tup)
        else:
            self.work.put(tup)

    def run_thread(self) -> None:
        while True:
            tup = self.work.get()
            if tup["n"] % 100 == 0:
                time.sleep(0.01)  # the main thread has nothing to do meanwhile
            if tup["n"] % 30 == 0 and not getattr(self, f"failed_{tup['n']}", False):
                setattr(self, f"failed_{tup['n']}", True)
                self.fail(tup)
                continue
            self.emit([tup["n"], "thread"], anchors=[tup])
            self.ack(tup)


def threaded() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("threaded", Threaded).shuffle_grouping("numbers")
    builder.set_bolt("note", Note).fields_grouping("threaded", "key")
    return builder.build("threaded", conf={"topology.max.spout.pending": 200})


class Poisoned(BasicBolt):
    """Fails one number always."""

    output_fields = ("n",)

    def process(self, tup: Tuple) -> None:
        if tup["n"] == 777:
            raise FailedException("poison")
        self.emit([tup["n"]])


class GivesUp(Numbers):
    max_replays = 2


def poisoned() -> Any:
    """The poison is found two hops behind the spout."""
    return line("poisoned", 1000, GivesUp, ("three", Adds), ("poisoned", Poisoned), ("note", Note))


class Adds(BasicBolt):
    """Adds one to each, many at once."""

    output_fields = ("n",)

    def process_many(self, tups: Tuples) -> None:
        self.emit_many([[n + 1] for n in tups.column("n")])


def many() -> Any:
    return line("many", 300, Numbers, ("adds", Adds), ("note", Note), adds=2)


class Goes(BasicBolt):
    """Emits, and works on until what it emitted has arrived."""

    output_fields = ("n",)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.noted = Path(conf["test.folder"], "noted")

    def process(self, tup: Tuple) -> None:
        self.emit([tup["n"]])
        limit = time.monotonic() + 60
        while not self.noted.exists() or str(tup["n"]) not in self.noted.read_text().split():
            assert time.monotonic() < limit, "what was emitted has not arrived"
            time.sleep(0.01)


class Few(Numbers):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        del self.left[3:]


class Pairs(ReliableSpout):
    """Halves that wait for their others until all first halves were emitted, with something between them that nobody keeps."""

    output_fields = ("kind", "n")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        halves = 8
        self.left = [each for n in range(halves) for each in (("first", n), ("between", n))]
        self.left += [("second", n) for n in range(halves)]
        self.left.reverse()

    def next_tuple(self) -> None:
        if self.left:
            self.emit([*self.left.pop()])

    def exhausted(self) -> bool:
        return not self.left


class Join(Bolt):
    """Keeps first halves until their others come."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.kept: dict[int, Tuple] = {}

    def process(self, tup: Tuple) -> None:
        if tup["kind"] == "first":
            self.kept[tup["n"]] = tup
            return
        if tup["kind"] == "second":
            self.ack(self.kept.pop(tup["n"]))
        self.ack(tup)


def joined() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("pairs", Pairs)
    builder.set_bolt("join", Join).shuffle_grouping("pairs")
    return builder.build("joined", conf={"topology.max.spout.pending": 10})


class Drops(Spout):
    """Emits nothing again."""

    output_fields = ("n",)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.left = list(range(NUMBERS))

    def next_tuple(self) -> None:
        if self.left:
            n = self.left.pop()
            self.emit([n], n)

    def exhausted(self) -> bool:
        return not self.left


class FailsSome(BasicBolt):
    """Fails each hundredth number, the first time or always."""

    output_fields = ("n",)

    def __init__(self, always: bool) -> None:
        self.always = always
        self.seen: set[int] = set()

    def process(self, tup: Tuple) -> None:
        n = tup["n"]
        if n % 100 == 0 and (self.always or n not in self.seen):
            self.seen.add(n)
            raise FailedException
        self.emit([n])


def dropped() -> Any:
    return line("dropped", 500, Drops, ("fails", FailsSome(always=True)), ("note", Note))


def failing() -> Any:
    return line("failing", 500, Numbers, ("fails", FailsSome(always=False)), ("note", Note))


class Slow(BasicBolt):
    output_fields = ("n",)

    def process(self, tup: Tuple) -> None:
        time.sleep(0.01)
        self.emit([tup["n"]])


class Hundred(Numbers):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        del self.left[100:]


def slow() -> Any:
    """Each stage takes a second for all of them."""
    return line("slow", 60, Hundred, ("first", Slow), ("second", Slow), ("third", Slow), ("note", Note))


def going() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Few)
    builder.set_bolt("goes", Goes).shuffle_grouping("numbers")
    builder.set_bolt("note", Note).shuffle_grouping("goes")
    return builder.build("going")
