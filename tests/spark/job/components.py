"""Components whose answers can be worked out by hand."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

from multilang import BasicBolt, BatchingBolt, Bolt, CustomGrouping, ReliableSpout, Spout, Stream


class Rows(Spout):
    """Replaced by a source in every test."""

    output_fields = ["key", "n"]


class Words(Spout):
    output_fields = ["sentence"]


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        for word in tup["sentence"].split():
            self.emit([word])


class Count(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf, context):
        self.counts: dict[str, int] = {}

    def process(self, tup):
        word = tup[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, self.counts[word]])


class Seen(BasicBolt):
    """Emits what it got, and which of its tasks got it, from where."""

    output_fields = ["values", "task", "component", "stream", "from"]

    def process(self, tup):
        self.emit([tup.values, self.context.task, tup.component, tup.stream, tup.task])


class Row(BasicBolt):
    """Emits what it got as one value."""

    output_fields = ["row"]

    def process(self, tup):
        self.emit([tup.values])


class Same(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        self.emit(tup.values)


class FailsAtFirst(BasicBolt):
    """Fails each tuple whose n is in conf test.fail, so many times, then passes it on."""

    output_fields = ["key", "n"]

    def initialize(self, conf, context):
        self.times: dict[int, int] = {}
        self.limits = dict(zip(conf["test.fail"], conf["test.times"], strict=True))

    def process(self, tup):
        n = tup["n"]
        self.times[n] = self.times.get(n, 0) + 1
        if self.times[n] <= self.limits.get(n, 0):
            raise ValueError(f"not yet {n}")
        self.emit([tup["key"], n])


class LogsToFile(FailsAtFirst):
    """The same, with the log of its process in the file that conf test.log names."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        if not self.logger.handlers:
            handler = logging.FileHandler(conf["test.log"])
            handler.setFormatter(logging.Formatter("%(process)d %(levelname)s %(message)s"))
            self.logger.addHandler(handler)


class Sums(BasicBolt):
    """The sum and number of n for each key, said at the tick."""

    output_fields = ["key", "sum", "tuples"]
    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def initialize(self, conf, context):
        self.sums: dict[Any, list[int]] = {}

    def process(self, tup):
        sums = self.sums.setdefault(tup["key"], [0, 0])
        sums[0] += tup["n"]
        sums[1] += 1

    def process_tick(self, tup):
        self.emit_many([[key, *sums] for key, sums in self.sums.items()], anchors=[])


class Forgets(Bolt):
    """Neither acks nor fails the tuples whose n is in conf test.forget."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.forget = set(conf["test.forget"])

    def process(self, tup):
        self.emit([tup["n"]], anchors=[tup])
        if tup["n"] not in self.forget:
            self.ack(tup)


class Pairs(Bolt):
    """Joins two streams by key: what it emits is anchored to both of its tuples."""

    output_fields = ["key", "left", "right"]

    def initialize(self, conf, context):
        self.waiting: dict[Any, Any] = {}

    def process(self, tup):
        key = tup["key"]
        other = self.waiting.pop(key, None)
        if other is None:
            self.waiting[key] = tup
            return
        left, right = sorted([other, tup], key=lambda each: each.stream)
        self.emit([key, left["n"], right["n"]], anchors=[other, tup])
        self.ack(other)
        self.ack(tup)


class Parts(BasicBolt):
    """Even numbers on one stream, odd ones on another."""

    output_streams = {"even": ["key", "n"], "odd": ["key", "n"]}

    def process(self, tup):
        self.emit([tup["key"], tup["n"]], stream="odd" if tup["n"] % 2 else "even")


class FailsPairs(BasicBolt):
    """Fails what came of the key in conf test.bad."""

    def process(self, tup):
        if tup["key"] == self.conf["test.bad"]:
            raise ValueError("a bad pair")


class Deals(BasicBolt):
    """Sends each number to the task that it names: its remainder."""

    output_streams = {"default": Stream(["n"], direct=True)}

    def process(self, tup):
        tasks = self.context.tasks("seen")
        self.emit([tup["n"]], direct_task=tasks[tup["n"] % len(tasks)])


class ByRemainder(CustomGrouping):
    def prepare(self, context, stream, target_tasks):
        self.tasks = target_tasks

    def choose_tasks(self, source_task, values):
        return [self.tasks[values[1] % len(self.tasks)]]


class Batches(BatchingBolt):
    """The sum of each group, in groups of at most ten."""

    output_fields = ["key", "sum"]
    batch_size = 10

    def group_key(self, tup):
        return tup["key"]

    def process_batch(self, key, tups):
        self.emit([key, sum(tup["n"] for tup in tups)])


class DiesOnce(BasicBolt):
    """Ends its process at a number in conf test.die, the first time that any process comes to it."""

    output_fields = ["key", "n"]

    def process(self, tup):
        if tup["n"] in self.conf["test.die"]:
            path = os.path.join(self.conf["test.folder"], f"died-{tup['n']}")
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        self.emit([tup["key"], tup["n"]])


class Troubled(BasicBolt):
    """Passes its tuples on; at one of them something happens, to the first process that comes to it."""

    output_fields = ["key", "n"]

    def process(self, tup):
        if tup[1] == 300:
            self.mark = os.path.join(self.conf["test.folder"], "attempt-")
            try:
                os.close(os.open(f"{self.mark}1", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                Path(f"{self.mark}2").touch()
            else:
                self.first_attempt()
        self.emit(tup.values[:2])


class SlowOnce(Troubled):
    """Its first attempt is so slow that Spark begins another elsewhere; both then hurry to the end."""

    def first_attempt(self):
        end = time.monotonic() + 240
        while not os.path.exists(f"{self.mark}2") and time.monotonic() < end:
            time.sleep(0.01)


class LosesItsMachine(Troubled):
    """Its first attempt ends the executor's JVM, and with it all that this machine had done so far."""

    def first_attempt(self):
        daemon = os.getppid()
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(executor, signal.SIGKILL)
        os._exit(1)


class CantStart(BasicBolt):
    def initialize(self, conf, context):
        raise RuntimeError("no database here")

    def process(self, tup):
        pass


class Numbers(ReliableSpout):
    """0, 1, 2 … up to conf test.numbers, runs as it is; each of its tasks has its share."""

    output_fields = ["key", "n"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.step = len(context.tasks(context.component))
        self.next = context.task_index
        self.end = conf["test.numbers"]
        self.told = open(os.path.join(conf["test.folder"], f"told-{context.task}"), "a")  # noqa: SIM115

    def next_tuple(self):
        if self.next < self.end:
            self.emit([f"k{self.next % 3}", self.next], tup_id=self.next)
            self.next += self.step

    def acked(self, tup_id):
        self.told.write(f"acked {tup_id}\n")

    def gave_up(self, tup_id, values, failures):
        self.told.write(f"gave up {tup_id}\n")

    def exhausted(self):
        return self.next >= self.end

    def close(self):
        self.told.close()


class Repeats(Spout):
    """Emits 0, 1, 2 … and each that failed at once again, conf test.again times, with its own id or a new one."""

    output_fields = ["key", "n"]

    def initialize(self, conf, context):
        self.next = 0
        self.again: list[int] = []
        self.times = 0
        self.left = conf["test.again"]

    def next_tuple(self):
        if self.again:
            n = self.again.pop()
        elif self.next < self.conf["test.numbers"]:
            n, self.next = self.next, self.next + 1
        else:
            return
        self.times += 1
        self.emit(["k", n], tup_id=[n, self.times if self.conf["test.ids"] == "new ones" else 0])

    def fail(self, tup_id):
        if self.left:
            self.left -= 1
            self.again.append(tup_id[0])

    def source_id(self, tup_id):
        return tup_id[0]

    def exhausted(self):
        return not self.again and self.next >= self.conf["test.numbers"]


class Mortal(Spout):
    """0, 1, 2 … 9. It dies in ``next_tuple`` before, or in ``ack`` of, each of conf test.die, so many times.

    A new life begins anew or, with conf test.resumes, where the last one stopped.
    """

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.folder = Path(conf["test.folder"])
        self.next = self._noted("emitted") if conf["test.resumes"] else 0

    def next_tuple(self):
        self._die("next_tuple", self.next)
        if self.next < 10:
            n, self.next = self.next, self.next + 1
            self._note("emitted", self.next)
            self.emit([n], tup_id=n)

    def ack(self, tup_id):
        self._die("ack", tup_id)

    def exhausted(self):
        return self.next >= 10

    def _die(self, where, n):
        name = f"{where}-{n}"
        times = self._noted(name)
        if times < self.conf["test.die"].get(name, 0):
            self._note(name, times + 1)
            raise RuntimeError(f"no source before {n}")

    def _noted(self, name):
        path = self.folder / name
        return int(path.read_text()) if path.exists() else 0

    def _note(self, name, number):
        (self.folder / name).write_text(str(number))


class Endless(Spout):
    output_fields = ["key", "n"]

    def next_tuple(self):
        self.n = getattr(self, "n", 0) + 1
        self.emit(["k", self.n])


class Chained(Spout):
    """Emits the next number when the one before is acked, and the first when it is activated; ``exhausted`` as soon as none is left."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.end, self.at = conf["test.numbers"], 0

    def activate(self):
        self.following()

    def next_tuple(self):
        pass

    def ack(self, tup_id):
        self.following()

    def following(self):
        if self.at < self.end:
            self.at += 1
            self.emit([self.at - 1], self.at - 1)

    def exhausted(self):
        return self.at >= self.end
