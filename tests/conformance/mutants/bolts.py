"""Faults of bolts."""

from __future__ import annotations

import json
import os
import sys

from .registry import Bolt, mutant, plain


@mutant("bolt", "bolt/heartbeat/1")
class NoSync(Bolt):
    def send(self, message):
        if message.get("command") != "sync":
            super().send(message)


@mutant("bolt", "bolt/heartbeat/4")
class AcksHeartbeats(Bolt):
    def handle(self, message):
        super().handle(message)
        if message["stream"] == "__heartbeat":
            self.send({"command": "ack", "id": message["id"]})


@mutant("bolt", "bolt/heartbeat/1")
class HeartbeatsNeedAComponent(Bolt):
    def handle(self, message):
        if message["stream"] != "__heartbeat" or message["comp"]:
            super().handle(message)


@mutant("bolt", "bolt/heartbeat/11")
class TwoSyncs(Bolt):
    def send(self, message):
        super().send(message)
        if message.get("command") == "sync":
            super().send(message)


@mutant("bolt", "bolt/tick/1")
class NeverAcksTicks(Bolt):
    def process(self, tup):
        if tup["stream"] != "__tick":
            super().process(tup)


@mutant("bolt", "bolt/tick/2")
class TicksAreHeartbeats(Bolt):
    def handle(self, message):
        if message["task"] == -1:
            self.send({"command": "sync"})
            if message["stream"] == "__tick":
                self.send({"command": "ack", "id": message["id"]})
        else:
            super().handle(message)


@mutant("bolt", "bolt/tuple/4")
class IdsAreDoubles(Bolt):
    def handle(self, message):
        if message["id"].lstrip("-").isdigit() and abs(int(message["id"])) > 9 * 10**18:
            message["id"] = str(int(float(message["id"])))
        super().handle(message)


@mutant("bolt", "bolt/tuple/5")
class IdsAreNumbers(Bolt):
    def handle(self, message):
        if message["id"].isdigit():
            message["id"] = str(int(message["id"]))
        super().handle(message)


@mutant("bolt", "bolt/emit/3")
class OneStream(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit(values, {**(options or {}), "stream": "default"})


@mutant("bolt", "bolt/emit/8")
class StreamOfItsOwn(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit(values, {**(options or {}), "stream": "mine"} if values == ["plain"] else options)


@mutant("bolt", "bolt/emit/8")
class EmptyStream(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit(values, {"stream": "", **(options or {})})


@mutant("bolt", "bolt/emit/6")
class OneValueWithoutAList(Bolt):
    def send(self, message):
        if message.get("tuple") == ["plain"]:
            message["tuple"] = "plain"
        super().send(message)


@mutant("bolt", "bolt/emit/10")
class ValueTooMuch(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit([*values, None] if values == ["plain"] else values, options)


@mutant("bolt", "bolt/task_ids/1")
class TakesTaskIdsForTuples(Bolt):
    def send(self, message):
        message.pop("need_task_ids", None)
        super().send(message)

    def take_ids(self, ids):
        self.process({"id": ids[0] if ids else None, "tuple": []})


@mutant("bolt", "bolt/task_ids/5")
class TaskIdsInReverse(Bolt):
    """Of two that ask at once, each gets the other's: here the first emit's answer is given to all."""

    first = None

    def wait_for_ids(self, wanted):
        ids = super().wait_for_ids(wanted)
        self.first = self.first or ids
        return self.first


@mutant("bolt", "bolt/task_ids/7")
class DropsTuplesWhileItWaits(Bolt):
    def came_meanwhile(self, message):
        if message["stream"] == "__heartbeat":
            super().came_meanwhile(message)


@mutant("bolt", "bolt/task_ids/4")
class WaitsForATask(Bolt):
    def take_ids(self, ids):
        if ids:
            super().take_ids(ids)


@mutant("bolt", "bolt/anchors/1")
class NoAnchors(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, {**message, "anchors": []})


@mutant("bolt", "bolt/anchors/2")
class AlwaysAnchors(Bolt):
    def do_emit(self, values, options=None):
        options = dict(options or {})
        if not options.get("anchors", True):
            del options["anchors"]
        super().do_emit(values, options)


@mutant("bolt", "bolt/anchors/3")
class OneAnchor(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, {**message, "anchors": message["anchors"][:1]})


@mutant("bolt", "bolt/anchors/8")
class AcksBeforeEmits(Bolt):
    def process(self, tup):
        self.later = []
        super().process(tup)
        for message in self.later:
            super().send(message)

    def send(self, message):
        if message.get("command") == "emit":
            self.later.append(message)
        else:
            super().send(message)


@mutant("bolt", "bolt/anchors/11")
class AnchorWithoutAList(Bolt):
    def send(self, message):
        if message.get("anchors"):
            message["anchors"] = message["anchors"][0]
        super().send(message)


@mutant("bolt", "bolt/anchors/12")
class AnchorTwice(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, {**message, "anchors": message["anchors"] * 2})


@mutant("bolt", "bolt/ack/6")
class AcksTwice(Bolt):
    def finish(self, command, name):
        super().finish(command, name)
        if name == "this":
            self.send({"command": "ack", "id": self.this["id"]})


@mutant("bolt", "bolt/ack/7")
class AcksAnotherId(Bolt):
    def do_ack(self, name="this"):
        super().do_ack(name)
        self.send({"command": "ack", "id": "0"})


@mutant("bolt", "bolt/ack/8")
class AcksNumbers(Bolt):
    def send(self, message):
        if message.get("command") == "ack":
            message["id"] = int(message["id"])
        super().send(message)


@mutant("bolt", "bolt/ack/2")
class AcksWhatIsKept(Bolt):
    def do_keep(self, name):
        super().do_keep(name)
        self.is_open = True


@mutant("bolt", "bolt/fail/1")
class AcksFailures(Bolt):
    def do_fail(self, name="this"):
        self.do_ack(name)


@mutant("bolt", "bolt/fail/5")
class FailsAndAcks(Bolt):
    def do_fail(self, name="this"):
        super().do_ack(name)
        self.send({"command": "fail", "id": self.this["id"]})


@mutant("bolt", "bolt/direct/2")
class WaitsForIdsOfDirectEmits(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, message)
        if "task" in options:
            self.ids_due.append(wanted := [])
            self.wait_for_ids(wanted)


@mutant("bolt", "bolt/direct/1")
class AnotherTask(Bolt):
    def emit(self, values, options, message):
        if "task" in options:
            options = {**options, "task": 17 - options["task"]}
        super().emit(values, options, message)


@mutant("bolt", "bolt/direct/5")
class TaskAsText(Bolt):
    def send(self, message):
        if "task" in message:
            message["task"] = str(message["task"])
        super().send(message)


@mutant("bolt", "bolt/direct/7")
class ForgetsTheTask(Bolt):
    def send(self, message):
        message.pop("task", None)
        super().send(message)


@mutant("bolt", "bolt/direct/9")
class PlainTask(Bolt):
    def send(self, message):
        if "task" in message:
            message["task"] -= plain.OFFSET
        super().send(message)


@mutant("bolt", "bolt/order/1")
class LogsLast(Bolt):
    def process(self, tup):
        self.logs = []
        super().process(tup)
        for message in self.logs:
            super().send(message)

    def send(self, message):
        if message.get("command") == "log":
            self.logs.append(message)
        else:
            super().send(message)


@mutant("bolt", "bolt/ack/9")
class FailsWhatItAcked(Bolt):
    def do_throw(self, text):
        self.do_fail()


@mutant("bolt", "bolt/task_ids/8")
class KeepsSixtyTuplesWhileItWaits(Bolt):
    def came_meanwhile(self, message):
        if len(self.waiting) < 60:
            super().came_meanwhile(message)


@mutant("bolt", "bolt/task_ids/8")
class WaitsByRecursion(Bolt):
    """Works on what comes while it waits for task ids, and so on, to the end of the stack."""

    def came_meanwhile(self, message):
        if message.get("stream") == "__heartbeat":
            super().came_meanwhile(message)
        else:
            this, is_open = self.this, self.is_open
            for step in message["tuple"][0]:
                step[2:] = [{"ids": True}]
            self.process(message)
            self.this, self.is_open = this, is_open


@mutant("bolt", "bolt/tuple/12")
class EqualTuplesAreOne(Bolt):
    """Takes a tuple of the same values for a replay of the one before."""

    before = None

    def process(self, tup):
        if tup["tuple"] and tup["tuple"] == self.before:
            self.send({"command": "ack", "id": tup["id"]})
            return
        self.before = tup["tuple"]
        super().process(tup)


@mutant("bolt", "bolt/ack/10")
class KeepsAHundredTuples(Bolt):
    def do_keep(self, name):
        if len(self.kept) == 100:
            del self.kept[next(iter(self.kept))]
        super().do_keep(name)


@mutant("bolt", "bolt/order/5")
class TheNewestFirst(Bolt):
    """Works on the newest of the tuples that one read brings."""

    held, came = b"", []

    def read_message(self):
        while not self.came:
            self.held += os.read(0, 1 << 16) or sys.exit(0)
            *whole, self.held = self.held.split(b"\nend\n")
            self.came += map(json.loads, whole)
        return self.came.pop()


@mutant("bolt", "bolt/tuple/13")
class SmallIdsAreNumbers(Bolt):
    def process(self, tup):
        if len(tup["id"]) < 10:
            tup["id"] = int(tup["id"])
        super().process(tup)


@mutant("bolt", "bolt/anchors/14")
class AnchorsStick(Bolt):
    last = ("this",)

    def do_emit(self, values, options=None):
        names = (options or {}).get("anchors", self.last)
        self.last = names if len(names) > 1 else self.last
        super().do_emit(values, {**(options or {}), "anchors": names})


@mutant("bolt", "bolt/emit/12")
class SendsEqualEmitsOnce(Bolt):
    before = None

    def emit(self, values, options, message):
        if (self.this["id"], values, options) != self.before:
            self.before = (self.this["id"], values, options)
            super().emit(values, options, message)


@mutant("bolt", "bolt/emit/13")
class LeavesOutEmptyEmits(Bolt):
    def do_emit(self, values, options=None):
        if values:
            super().do_emit(values, options)


class OfOthers(Bolt):
    """Reads all that there is, and gives a tuple another end than its own when others wait after it."""

    text = b""
    instead = ("fail", "ack")

    def read_message(self):
        while b"\nend\n" not in self.text:
            data = os.read(0, 1 << 16)
            if not data:
                sys.exit(0)
            self.text += data
        message, _, self.text = self.text.partition(b"\nend\n")
        return json.loads(message)

    def send(self, message):
        own, others = self.instead
        if message.get("command") == own and b"\nend\n" in self.text:
            message["command"] = others
        super().send(message)


@mutant("bolt", "bolt/fail/9")
class AcksFailuresWhileOthersWait(OfOthers):
    pass


@mutant("bolt", "bolt/fail/9")
class FailsWhileOthersWait(OfOthers):
    instead = ("ack", "fail")


@mutant("bolt", "bolt/task_ids/17")
class TakesAnyTaskIds(Bolt):
    def send(self, message):
        message.pop("need_task_ids", None)  # so each emit is answered, and what comes is taken for what is awaited
        super().send(message)

    def take_ids(self, ids):
        if self.ids_due:
            super().take_ids(ids)


@mutant("bolt", "bolt/fail/10")
class PassesOverTheTupleBehindAnException(Bolt):
    is_passing = False

    def process(self, tup):
        if self.is_passing:
            self.is_passing = False
            self.send({"command": "ack", "id": tup["id"]})
            return
        super().process(tup)

    def do_throw(self, text):
        self.is_passing = True
        super().do_throw(text)


@mutant("bolt", "bolt/ack/11")
class AcksWhatItHoldsAgain(Bolt):
    """Forgets what was acked when all steps are done, and acks all that it holds when one of them fails."""

    def finish(self, word, name):
        held = dict(self.kept)
        super().finish(word, name)
        self.kept.update(held)

    def do_throw(self, text):
        for name in list(self.kept):
            super().finish("ack", name)
        super().do_throw(text)
