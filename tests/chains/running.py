"""Topologies of the tests with processes; their bolts form one chain with ``multilang.chaining: shuffle``."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Bolt, Context, FailedException, TopologyBuilder, Tuple
from tests.exchange.running import NUMBERS, GivesUp, Note, Numbers, Three, line

if TYPE_CHECKING:
    from collections.abc import Callable


def killed() -> Any:
    """Two bolts behind one another, before one that is not joined with them."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers, 2)
    builder.set_bolt("three", Three, 2).shuffle_grouping("numbers")
    builder.set_bolt("late", Late, 2).local_or_shuffle_grouping("three")
    builder.set_bolt("note", Note, 2).fields_grouping("late", "key")
    return builder.build("killed", conf={"topology.max.spout.pending": 300})


class Late(Bolt):
    """Acks only when it has ten tuples, or after a while."""

    output_fields = ("n", "key")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.kept: list[Tuple] = []
        self.set_timer(0.02, self.give, every=0.02)

    def process(self, tup: Tuple) -> None:
        self.kept.append(tup)
        if len(self.kept) == 10:
            self.give()

    def give(self) -> None:
        for tup in self.kept:
            self.emit(tup.values, anchors=[tup])
            self.ack(tup)
        self.kept.clear()


class Threaded(Bolt):
    """Its own thread emits, acks and fails, also while the main thread waits for input."""

    output_fields = ("n", "key")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.work: queue.Queue[Any] = queue.Queue()
        self.failed: set[int] = set()
        threading.Thread(target=self.run_thread, daemon=True).start()

    def process(self, tup: Tuple) -> None:
        self.work.put(tup)

    def run_thread(self) -> None:
        while True:
            tup = self.work.get()
            n = tup["n"]
            if n % 100 == 0:
                time.sleep(0.002)  # the main thread has nothing to do meanwhile
            if n % 50 == 0 and n not in self.failed:
                self.failed.add(n)
                self.fail(tup)
                continue
            self.emit([n, "thread"], anchors=[tup])
            self.ack(tup)


class InMain(Note):
    """Notes numbers, and is called in the main thread alone."""

    def process(self, tup: Tuple) -> None:
        assert threading.current_thread() is threading.main_thread()
        super().process(tup)


def threaded() -> Any:
    return line("threaded", 200, Numbers, ("threaded", Threaded), ("note", InMain))


class Says(BasicBolt):
    """Logs, reports, measures, and speaks at its ticks."""

    output_fields = ("n", "key")
    output_streams = {"ticks": ["of"]}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.log(f"my conf: {conf.get('own')} {conf.get('topology.tick.tuple.freq.secs')}", "warn")
        self.logger.warning("from a logger")
        self.metrics.counter("seen").inc()

    def process(self, tup: Tuple) -> None:
        if tup["n"] == 5:
            self.report_error(f"five at {self.context.component}")
        self.emit([tup["n"], tup.component])

    def process_tick(self, tup: Tuple) -> None:
        self.emit([self.context.component], stream="ticks")


class Sink(BasicBolt):
    """Writes down its tuples with their source, in the order in which they come."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.known = {id: context.tasks(id) for id in set(context.task_component.values()) if id[0] != "_"}
        self.file = Path(conf["test.folder"], f"sink.{context.component}.{context.task_index}").open("a")  # noqa: SIM115

    def process(self, tup: Tuple) -> None:
        place = self.known[tup.component].index(tup.task)
        self.file.write(json.dumps([tup.component, tup.stream, place, *tup.values]) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def told() -> Any:
    """A fork and a join in one chain, ticks for one of its members, and a task for each outside."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("first", Says, conf={"own": "a"}).shuffle_grouping("numbers")
    ticks = {"topology.tick.tuple.freq.secs": 0.05, "own": "b"}
    builder.set_bolt("second", Says, conf=ticks).shuffle_grouping("first")
    builder.set_bolt("join", Says, conf={"own": "c"}).shuffle_grouping("first").shuffle_grouping("second")
    sink = builder.set_bolt("sink", Sink).global_grouping("join").global_grouping("second")
    sink.global_grouping("first", stream="ticks").global_grouping("second", stream="ticks")
    sink.global_grouping("join", stream="ticks")
    return builder.build("told", conf={"topology.max.spout.pending": 100})


class Dies(Bolt):
    """Dies of one number, once."""

    output_fields = ("n", "key")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.mark = Path(conf["test.folder"], "died")

    def process(self, tup: Tuple) -> None:
        if tup["n"] == 77 and not self.mark.exists():
            self.mark.write_text(str(os.getpid()))
            raise ValueError("seventy-seven")
        if tup["n"] == 78:
            raise FailedException("never")
        self.emit([tup["n"], ""], anchors=[tup])
        self.ack(tup)


def dies() -> Any:
    return line("dies", 100, GivesUp, ("first", Says), ("dies", Dies), ("note", Note))


class Asks(Late):
    """Waits for task ids in its timer, in which no other member may work."""

    def give(self) -> None:
        for tup in self.kept:
            Checks.asked = True
            self.emit(tup.values, anchors=[tup], need_task_ids=True)
            Checks.asked = False
            self.ack(tup)
        self.kept = []

    def process(self, tup: Tuple) -> None:
        self.kept.append(tup)


class Checks(Note):
    """Notes numbers, and is called when nobody waits."""

    asked = False

    def process(self, tup: Tuple) -> None:
        assert not Checks.asked
        super().process(tup)


def asking() -> Any:
    """A member that waits in a timer for the tasks outside of the chain."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("three", Three).shuffle_grouping("numbers")
    builder.set_bolt("asks", Asks).shuffle_grouping("three")
    builder.set_bolt("checks", Checks).shuffle_grouping("asks")
    builder.set_bolt("outside", BasicSink).global_grouping("asks")
    return builder.build("asking", conf={"topology.max.spout.pending": 100})


class BasicSink(BasicBolt):
    def process(self, tup: Tuple) -> None:
        pass


class Misuses(Bolt):
    """Writes down the errors of calls that are wrong, as its first tuple shows them."""

    output_fields = ("n", "text")

    def process(self, tup: Tuple) -> None:
        calls: list[Callable[[], object]] = [
            lambda: self.emit([1], anchors=[tup]),
            lambda: self.emit([1, {1}], anchors=[tup]),
            lambda: self.emit([1, ""], stream="nowhere"),
            lambda: self.emit([1, ""], anchors=tup),  # type: ignore[call-overload]
            lambda: self.emit([1, ""], direct_task=10_000),
            lambda: self.ack("never seen"),
        ]
        for number, call in enumerate(calls):
            try:
                call()
            except Exception as error:  # noqa: BLE001
                self.emit([number, f"{type(error).__name__}: {error}"], anchors=[tup])
        id = tup.id
        self.ack(id)
        calls = [lambda: self.ack(tup), lambda: self.emit([1, ""], anchors=[id])]
        for number, call in enumerate(calls):
            try:
                call()
            except Exception as error:  # noqa: BLE001
                self.emit([10 + number, f"{type(error).__name__}: {error}"])


class One(Numbers):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.left = self.left[:1]


def misuses() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", One)
    builder.set_bolt("misuses", Misuses).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink).shuffle_grouping("misuses")
    return builder.build("misuses")


__all__ = ["NUMBERS", "asking", "dies", "killed", "misuses", "threaded", "told"]
