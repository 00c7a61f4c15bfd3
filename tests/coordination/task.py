"""One task of a coordinated bolt, fed by hand, with two tasks upstream and three downstream."""

from __future__ import annotations

from random import Random
from time import monotonic

from multilang.component import Bolt, Spout, Stream
from multilang.component.clock import virtual_clock
from multilang.component.runner import start_bolt
from multilang.component.timers import TaskTimers
from multilang.coordination import ALL, COORD, COORD_STREAM, SINGLE, CoordinatedBolt
from multilang.engine.bolt_collector import LocalBoltCollector
from multilang.engine.clock import VirtualClock
from multilang.engine.counters import TaskStats
from multilang.engine.links import Links
from multilang.engine.plan import Plan
from multilang.engine.tuples import LocalTuple, Origin
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.topology import TopologyBuilder

IDS = ("source", "id")


class Source(Spout):
    output_streams = {"default": ["id", "n"], "id": ["id"], "other": ["id", "n"]}


class Upstream(Bolt):
    output_streams = {"default": ["id", "n"], COORD_STREAM: COORD}


class Downstream(Bolt):
    pass


class Part(Bolt):
    """The bolt that is coordinated, unless a test has another."""

    output_fields = ["id", "n"]


class Task:
    """``emitted``: (stream, values, target task, roots of the anchors); ``acked``, ``failed``: the values of inputs."""

    def __init__(
        self, delegate, sources=None, id_stream=None, conf=None, downstream_tasks=3, at_once=False, kind=CoordinatedBolt
    ):
        builder = TopologyBuilder()
        builder.set_spout("source", Source)
        builder.set_bolt("up", Upstream, 2).shuffle_grouping("source")
        bolt = kind(delegate, sources, id_stream)
        part = builder.set_bolt("part", bolt).shuffle_grouping("source").fields_grouping("source", "id", stream="id")
        part.shuffle_grouping("up").direct_grouping("up", stream=COORD_STREAM)
        down = builder.set_bolt("down", Downstream, downstream_tasks).direct_grouping("part", stream=COORD_STREAM)
        for name, stream in delegate.declared_streams().items():
            if stream.direct:
                down.direct_grouping("part", stream=name)
            else:
                down.fields_grouping("part", "n", stream=name)
        plan = Plan(builder.build("one task", conf=conf or {}), "one task", {}, Random(0))
        task = plan.tasks_of("part")[0]
        self.down = [each.id for each in plan.tasks_of("down")]
        self.up = [each.id for each in plan.tasks_of("up")]
        self.bolt = task.spec.component
        self.out, self.acked, self.failed, self.emitted, self.logged, self.errors = [], [], [], [], [], []
        self.inputs, self.withheld = {}, []
        links = Links(
            out=self.out,
            receivers={each: each for each in self.down},
            init=None,
            ack=lambda root, _: self.acked.append(self.inputs[root]),
            fail=lambda root: self.failed.append(self.inputs[root]),
            later=lambda _, call: call,
            named={},
            at_once=at_once,
            getrandbits=Random(1).getrandbits,
            now=monotonic,
            log=lambda _, message, level: self.logged.append(message),
            report=lambda _, message: self.errors.append(message),
            metric=lambda *_: None,
        )
        self.collector = LocalBoltCollector(task, links, TaskStats())
        self.clock = VirtualClock()
        self.timers = TaskTimers(self.collector.scope, virtual_clock(self.clock.now))
        self.execute = start_bolt(self.bolt, self.collector, task.conf, task.context)

    def give(self, component, stream, values, task=0, fields=("id", "n"), answer=True):
        root = len(self.inputs) + 1
        self.inputs[root] = (stream if stream != "default" else component, *values)
        tup = LocalTuple(list(values), stream, Origin(component, stream, task, fields), root, 0)
        self.execute(tup)
        self.settle(answer)
        return tup

    def settle(self, answer=True):
        """Take what was emitted, and answer with the task ids, unless they are to come later."""
        while self.out or (answer and self.withheld):
            items, self.out[:] = self.out[:], []
            for receiver, content in items:
                if callable(receiver):
                    self.withheld.append((receiver, content))
                else:
                    roots = [] if not content.root else [content.root] if type(content.root) is int else [*content.root]
                    self.emitted.append((content.stream, content.values, receiver, [self.inputs[r] for r in roots]))
            if answer:
                answers, self.withheld = self.withheld, []
                for call, tasks in answers:
                    call(tasks)

    def request(self, id, n=0, **more):
        return self.give("source", "default", [id, n], **more)

    def data(self, id, n=0, up=0, **more):
        return self.give("up", "default", [id, n], self.up[up], **more)

    def report(self, id, count, up=0, **more):
        return self.give("up", COORD_STREAM, [id, count], self.up[up], ("id", "count"), **more)

    def identify(self, id, **more):
        return self.give("source", "id", [id], fields=("id",), **more)

    def advance(self, secs):
        """Let time pass, and the timers run that become due."""
        self.clock.sleep(secs)
        self.timers.run_due()
        self.settle()

    def tick(self):
        self.execute(LocalTuple([15], TICK_STREAM, Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",))))
        self.settle()

    @property
    def reports(self):
        """The reports sent downstream: id -> counts, by task in order."""
        found = {}
        for stream, (id, count), task, _ in self.emitted:
            if stream == COORD_STREAM:
                found.setdefault(id, {})[task] = count
        return {id: [counts[task] for task in self.down] for id, counts in found.items()}


FROM_ONE, FROM_ALL = {"up": SINGLE}, {"up": ALL}
DIRECT = Stream(["id", "n"], direct=True)
