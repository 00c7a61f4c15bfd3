"""Correct programs of unusual habits, which know nothing of the tester: `python correct.py NAME`."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import queue
import random
import sys
import threading
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import programs
from programs import CountSpout, Program, SplitBolt


class HeartbeatThreadBolt(SplitBolt):
    """Reads in a thread, which answers heartbeats at once; tuples are worked on in another."""

    def run(self):
        self.inbox = queue.Queue()
        read = self.read
        setup = read()
        open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
        self.send(pid=os.getpid())
        threading.Thread(target=self.worker, daemon=True).start()
        while True:
            message = read()
            if isinstance(message, dict) and message["stream"] == "__heartbeat":
                self.send(command="sync")
            else:
                self.inbox.put(message)

    def worker(self):
        while True:
            self.handle(self.inbox.get())


class SlowStartBolt(SplitBolt):
    """Takes three seconds to load what it needs."""

    def start(self):
        time.sleep(0)

    def run(self):
        time.sleep(3)
        super().run()


class SlowStartSpout(CountSpout):
    def run(self):
        time.sleep(3)
        super().run()


class ChattyBolt(SplitBolt):
    """Writes 100 KB to standard error with each tuple."""

    def process(self, tup):
        sys.stderr.write("debug " * 17_000 + "\n")
        sys.stderr.flush()
        super().process(tup)


class ChattySpout(CountSpout):
    """Writes 2 KB to standard error with each command."""

    def handle(self, message):
        sys.stderr.write("debug " * 340 + "\n")
        sys.stderr.flush()
        super().handle(message)


class TinyChunksBolt(SplitBolt):
    """Writes its output in pieces of 37 bytes."""

    def send(self, **message):
        data = json.dumps(message).encode() + b"\nend\n"
        with self.lock:
            for start in range(0, len(data), 37):
                os.write(1, data[start : start + 37])


class TinyChunksSpout(CountSpout):
    send = TinyChunksBolt.send


class LateAckBolt(SplitBolt):
    """Acks each tuple about a second and a half later, from a timer's thread."""

    def start(self):
        self.later, self.there, self.count = [], threading.Condition(), itertools.count()
        threading.Thread(target=self.acker, daemon=True).start()

    def ack(self, tup):
        with self.there:
            heapq.heappush(self.later, (time.monotonic() + 1.5 * random.random(), next(self.count), tup))
            self.there.notify()

    def acker(self):
        while True:
            with self.there:
                while not self.later:
                    self.there.wait()
                due, _, tup = self.later[0]
                if due > time.monotonic():
                    self.there.wait(due - time.monotonic())
                    continue
                heapq.heappop(self.later)
            self.send(command="ack", id=tup["id"])


class TickBatchBolt(SplitBolt):
    """Works on what it has collected when a tick comes, and acks it then."""

    def start(self):
        self.batch = []

    def process(self, tup):
        self.batch.append(tup)

    def tick(self, tup):
        for each in self.batch:
            self.send(command="emit", tuple=[each["tuple"][0].upper()], anchors=[each["id"]], need_task_ids=False)
            self.ack(each)
        self.batch.clear()
        self.ack(tup)


class JoinBolt(SplitBolt):
    """Acks a pair of tuples when it has both."""

    def start(self):
        self.first = None

    def process(self, tup):
        if self.first is None:
            self.first = tup
            return
        both = [self.first["id"], tup["id"]]
        self.send(command="emit", tuple=[tup["tuple"][0]], anchors=both)
        for id in both:
            self.send(command="ack", id=id)
        self.first = None


class QueuesBolt(Program):
    """Built as the older libraries for Python are: queues for commands and task ids, a wait for the ids of each emit."""

    def __init__(self):
        super().__init__()
        self.commands, self.ids = deque(), deque()
        self.current = None

    def read_task_ids(self):
        if self.ids:
            return self.ids.popleft()
        message = self.read()
        while not isinstance(message, list):
            self.commands.append(message)
            message = self.read()
        return message

    def read_command(self):
        if self.commands:
            return self.commands.popleft()
        message = self.read()
        while isinstance(message, list):
            self.ids.append(message)
            message = self.read()
        return message

    def emit(self, values):
        self.send(command="emit", tuple=values, stream="default", anchors=[self.current["id"]])
        return self.read_task_ids()

    def run(self):
        setup = self.read()
        open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
        self.send(pid=os.getpid())
        while True:
            self.current = tup = self.read_command()
            if tup["task"] == -1 and tup["stream"] == "__heartbeat":
                self.send(command="sync")
                continue
            if tup["comp"] != "__system":
                try:
                    for word in tup["tuple"][0].split():
                        self.emit([word])
                except Exception as error:  # noqa: BLE001 - as a user of that library would
                    self.send(command="error", msg=str(error))
                    self.send(command="fail", id=tup["id"])
                    continue
            self.send(command="ack", id=tup["id"])


class RetrySpout(CountSpout):
    """Keeps what is under way, repeats what failed up to three times, and logs at the levels of Storm."""

    def start(self):
        super().start()
        self.tries = {}

    def fail(self, message):
        id = message["id"]
        self.tries[id] = self.tries.get(id, 0) + 1
        self.send(command="log", msg=f"{id} failed", level=3)
        if self.tries[id] <= 3:
            self.emit(id)
        else:
            del self.pending[id]

    def activate(self, message):
        self.send(command="log", msg="active")


if __name__ == "__main__":
    (globals().get(sys.argv[1]) or getattr(programs, sys.argv[1]))().run()
