"""Ordinary bolts and spouts, which know nothing of the tester, and broken ones: `python programs.py NAME`.

They were written from the protocol's page alone, as a user would write them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque


class Program:
    """Reading, writing and the handshake."""

    def __init__(self):
        self.lock = threading.Lock()

    def read(self):
        lines = []
        while True:
            line = sys.stdin.buffer.readline()
            if not line:
                sys.exit(0)
            if line == b"end\n":
                return self.decode(b"".join(lines))
            lines.append(line)

    def decode(self, data):
        return json.loads(data)

    def send(self, **message):
        with self.lock:
            sys.stdout.buffer.write(json.dumps(message).encode() + b"\nend\n")
            sys.stdout.buffer.flush()

    def run(self):
        setup = self.read()
        self.conf = setup["conf"]
        open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
        self.send(pid=os.getpid())
        self.start()
        while True:
            self.handle(self.read())

    def start(self):
        pass


class SplitBolt(Program):
    """Emits the words of a sentence, takes task ids when they come, and acks."""

    def handle(self, message):
        if isinstance(message, list):
            return
        if message["stream"] == "__heartbeat":
            self.send(command="sync")
        elif message["stream"] == "__tick":
            self.tick(message)
        else:
            self.process(message)

    def process(self, tup):
        for word in tup["tuple"][0].split():
            self.send(command="emit", tuple=[word], anchors=[tup["id"]])
        self.ack(tup)

    def tick(self, tup):
        self.ack(tup)

    def ack(self, tup):
        self.send(command="ack", id=tup["id"])


class SilentBolt(SplitBolt):
    """Emits nothing: a sink."""

    def process(self, tup):
        self.ack(tup)


class WaitingBolt(SplitBolt):
    """Waits for the task ids of each emit, as old libraries do."""

    def __init__(self):
        super().__init__()
        self.queue = deque()

    def run(self):
        self.came = self.read
        self.read = lambda: self.queue.popleft() if self.queue else self.came()
        super().run()

    def process(self, tup):
        for word in tup["tuple"][0].split():
            self.send(command="emit", tuple=[word], anchors=[tup["id"]])
            while not isinstance(message := self.came(), list):
                self.queue.append(message)
        self.ack(tup)


class WaitsByRecursion(WaitingBolt):
    """Calls itself for each tuple that comes before the task ids: Python's stack holds 1,000 calls."""

    def process(self, tup):
        for word in tup["tuple"][0].split():
            self.send(command="emit", tuple=[word], anchors=[tup["id"]])
            self.wait_ids()
        self.ack(tup)

    def wait_ids(self):
        message = self.came()
        if not isinstance(message, list):
            self.queue.append(message)
            self.wait_ids()


class BatchBolt(SplitBolt):
    """Acks what it has when a tick comes, or with every third tuple."""

    def start(self):
        self.batch = []

    def process(self, tup):
        self.batch.append(tup)
        if len(self.batch) == 3:
            self.flush()

    def tick(self, tup):
        self.batch.append(tup)
        self.flush()

    def flush(self):
        for tup in self.batch:
            self.ack(tup)
        self.batch.clear()


class ThreadedBolt(SplitBolt):
    """Works in a thread, and answers heartbeats beside it."""

    def start(self):
        self.work = deque()
        self.there = threading.Semaphore(0)
        threading.Thread(target=self.worker, daemon=True).start()

    def process(self, tup):
        self.work.append(tup)
        self.there.release()

    def worker(self):
        while True:
            self.there.acquire()
            time.sleep(0.01)
            super().process(self.work.popleft())


class CountSpout(Program):
    """Emits numbers, keeps what is under way, and repeats what failed."""

    def start(self):
        self.number = 0
        self.pending = {}

    def handle(self, message):
        if isinstance(message, list):
            return
        getattr(self, message["command"])(message)
        self.send(command="sync")

    def next(self, _message):
        if len(self.pending) >= 100:
            time.sleep(0.002)
            return
        self.number += 1
        self.emit(str(self.number))

    def emit(self, id):
        self.pending[id] = int(id)
        self.send(command="emit", tuple=[int(id)], id=id)

    def ack(self, message):
        del self.pending[message["id"]]  # a KeyError for one that is not under way

    def fail(self, message):
        self.emit(message["id"])

    def activate(self, message):
        pass

    def deactivate(self, message):
        pass


class QuietSpout(CountSpout):
    """Emits unreliably, and asks for no task ids."""

    def next(self, _message):
        self.number += 1
        self.send(command="emit", tuple=[self.number], need_task_ids=False)


class FewSpout(CountSpout):
    """Has five tuples, and then none."""

    def next(self, message):
        if self.number < 5:
            super().next(message)
        else:
            time.sleep(0.002)


# ---- broken bolts ----


class DiesOnItsTuple(SplitBolt):
    def process(self, tup):
        raise RuntimeError("no such word")


class DiesBehindItsEmit(SilentBolt):
    def process(self, tup):
        self.send(command="emit", tuple=["x"], anchors=[tup["id"]], need_task_ids=False)
        os._exit(0)


class HangsOnItsTuple(SplitBolt):
    def process(self, tup):
        time.sleep(3600)


class NeverAcks(SplitBolt):
    def ack(self, tup):
        pass


class AcksEverySecond(SplitBolt):
    count = 0

    def ack(self, tup):
        self.count += 1
        if self.count % 2:
            super().ack(tup)


class TakesTaskIdsForATuple(SplitBolt):
    def handle(self, message):
        super().handle({**message})


class StopsReadingAtTaskIds(SplitBolt):
    def handle(self, message):
        if isinstance(message, list):
            time.sleep(3600)
        super().handle(message)


class SplitsATick(SplitBolt):
    def tick(self, tup):
        self.process(tup)


class HangsOnATick(SplitBolt):
    def tick(self, tup):
        time.sleep(3600)


class ReadsPartOfALongLine(SplitBolt):
    def read(self):
        text = sys.stdin.buffer.readline(1 << 17)
        if not text:
            sys.exit(0)
        sys.stdin.buffer.readline()
        return json.loads(text)


class KnowsAsciiAlone(SplitBolt):
    def process(self, tup):
        tup["tuple"][0].encode("ascii")
        super().process(tup)


class ItsThreadKnowsAsciiAlone(ThreadedBolt):
    def ack(self, tup):
        str(tup["tuple"][0]).encode("ascii")
        super().ack(tup)


class KnowsOneTaskOfItsSource(SplitBolt):
    def process(self, tup):
        if tup["task"] != 2:
            raise LookupError(tup["task"])
        super().process(tup)


class ReadsLatin1(SplitBolt):
    def decode(self, data):
        return json.loads(data.decode("latin-1"))


class DiesOnItsTenthTuple(SplitBolt):
    count = 0

    def process(self, tup):
        self.count += 1
        if self.count == 10:
            raise MemoryError
        super().process(tup)


# ---- broken spouts ----


class DiesOnAnAck(CountSpout):
    def ack(self, message):
        del self.pending[int(message["id"])]


class SilentAfterAnAck(CountSpout):
    def handle(self, message):
        if isinstance(message, dict) and message["command"] == "ack":
            self.ack(message)
        else:
            super().handle(message)


class DiesOnAFail(CountSpout):
    def fail(self, message):
        raise NotImplementedError


class SilentAfterAFail(CountSpout):
    def handle(self, message):
        if isinstance(message, dict) and message["command"] == "fail":
            self.fail(message)
        else:
            super().handle(message)


class TakesTaskIdsForACommand(CountSpout):
    def handle(self, message):
        getattr(self, message["command"])(message)
        self.send(command="sync")


class SyncsToTaskIds(CountSpout):
    def handle(self, message):
        if isinstance(message, list):
            self.send(command="sync")
        else:
            super().handle(message)


class SilentWhileInactive(CountSpout):
    active = True

    def handle(self, message):
        if isinstance(message, dict):
            if message["command"] in ("activate", "deactivate"):
                self.active = message["command"] == "activate"
            elif not self.active:
                return
        super().handle(message)


class SilentWhenItHasNothing(FewSpout):
    def handle(self, message):
        if isinstance(message, dict) and message["command"] == "next" and self.number == 5:
            return
        super().handle(message)


class DiesOf200UnderWay(CountSpout):
    def next(self, _message):
        self.number += 1
        self.emit(str(self.number))
        if len(self.pending) == 200:
            raise MemoryError


class DiesOnSeveralTaskIds(CountSpout):
    def handle(self, message):
        if isinstance(message, list):
            [self.task] = message
        else:
            super().handle(message)


class DiesOnASecondAck(CountSpout):
    acked = 0

    def ack(self, message):
        self.acked += 1
        if self.acked == 2:
            raise RuntimeError
        super().ack(message)


class FindsTheFirstIdOfTheLine(SplitBolt):
    def decode(self, data):
        message = super().decode(data)
        if "tuple" in message:
            message["id"] = re.findall(rb'"id\\?":\\?"([^"\\]*)', data)[0].decode()
        return message


class FindsHeartbeatsInTheText(SplitBolt):
    def handle(self, message):
        if "__heartbeat" in str(message):
            self.send(command="sync")
        else:
            super().handle(message)


class CutsTextsAt100Bytes(SplitBolt):
    def process(self, tup):
        for word in tup["tuple"][0].split():
            cut = word.encode()[:100].decode("utf-8", "replace")
            self.send(command="emit", tuple=[cut], anchors=[tup["id"]])
        self.ack(tup)


class RefusesToSayThatItFollowsTheContract(SilentBolt):
    """Carries out the step that logs, and fails a tuple whose step would emit a list."""

    def process(self, tup):
        for step in tup["tuple"][0] if isinstance(tup["tuple"][0], list) else []:
            if step[0] != "log":
                self.send(command="fail", id=tup["id"])
                return
            self.send(command="log", msg=step[1])
        super().process(tup)


class WaitsForATask(WaitingBolt):
    """Takes an empty list of task ids for no answer."""

    def came(self):
        return super().read()

    def process(self, tup):
        for word in tup["tuple"][0].split():
            self.send(command="emit", tuple=[word], anchors=[tup["id"]])
            while not (isinstance(message := self.came(), list) and message):
                if isinstance(message, dict) and message["stream"] == "__heartbeat":
                    self.handle(message)
                elif isinstance(message, dict):
                    self.queue.append(message)
        self.ack(tup)


class Stack(deque):
    popleft = deque.pop


class NewestFirst(WaitingBolt):
    def __init__(self):
        super().__init__()
        self.queue = Stack()


class AnchorsItsFirstEmit(SplitBolt):
    def process(self, tup):
        anchors = [tup["id"]]
        for word in tup["tuple"][0].split():
            self.send(command="emit", tuple=[word], anchors=anchors)
            anchors = []
        self.ack(tup)


class OverlooksNumbers(SplitBolt):
    def process(self, tup):
        try:
            super().process(tup)
        except (AttributeError, IndexError):
            pass


class TakesAnIdOfAValue(SplitBolt):
    """Looks for the first id in the text of a message: Storm writes the values before the message's own."""

    def decode(self, data):
        message = super().decode(data)
        if "tuple" in message:
            message["id"] = re.findall(rb'"id":"([^"]*)', data)[0].decode()
        return message

    def process(self, tup):
        tup["tuple"] = [str(tup["tuple"])]
        super().process(tup)


class ReadsTheFirst64KB(SplitBolt):
    """Ignores the pieces of a longer line: the first has no id, which Storm writes last."""

    def read(self):
        while text := sys.stdin.buffer.readline(1 << 16):
            if text.startswith(b"[") or b'"pidDir"' in text or (text.startswith(b"{") and b'"id":' in text):
                return json.loads(text)
        sys.exit(0)


class ManyEmitsBolt(SplitBolt):
    """Emits sixty tuples for each one."""

    def process(self, tup):
        for number in range(60):
            self.send(command="emit", tuple=[number], anchors=[tup["id"]], need_task_ids=False)
        self.ack(tup)


class SameIdTwice(CountSpout):
    def emit(self, id):
        super().emit(id)
        self.send(command="emit", tuple=["stop"], id=id, need_task_ids=False)


class IgnoresASecondFail(CountSpout):
    def fail(self, message):
        number = self.pending.pop(message["id"], None)
        if number is not None:
            self.send(command="emit", tuple=[number], id=message["id"], need_task_ids=False)

    def ack(self, message):
        self.pending.pop(message["id"], None)


class DiesOfAnEmptyMap(CountSpout):
    """Takes it for an empty list, as a language does that has no other."""

    def start(self):
        super().start()
        self.on = self.conf.get("conformance.on", {"": 0}) or []

    def activate(self, _message):
        self.on.get("activate")


class SilentAfterFourTuples(CountSpout):
    def next(self, message):
        if self.number == 4:
            time.sleep(3600)
        super().next(message)


class EmitsNothingWhenIdle(FewSpout):
    def next(self, message):
        if self.number == 5:
            self.send(command="emit", tuple=[])
        super().next(message)


class ForgetsWhatItSentAgain(CountSpout):
    def fail(self, message):
        del self.pending[message["id"]]
        self.send(command="emit", tuple=["again"], id=message["id"], need_task_ids=False)


class TakesAnAckForTaskIds(CountSpout):
    def emit(self, id):
        super().emit(id)
        self.read()


class HasListsForIds(CountSpout):
    def send(self, **message):
        if "id" in message:
            message["id"] = [message["id"]]
        super().send(**message)


class LeavesAHelperAtARefusal(SplitBolt):
    def process(self, tup):
        try:
            super().process(tup)
        except (AttributeError, IndexError):
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)
            self.send(command="fail", id=tup["id"])


class FailsAndAcksARefusal(SplitBolt):
    def process(self, tup):
        try:
            super().process(tup)
        except (AttributeError, IndexError):
            self.send(command="fail", id=tup["id"])
            self.ack(tup)


if __name__ == "__main__":
    globals()[sys.argv[1]]().run()
