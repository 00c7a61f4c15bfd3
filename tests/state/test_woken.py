"""A task's instance that was stopped before it claimed its state, and wakes when its successor is at work."""

from __future__ import annotations

from random import Random

import pytest

from multilang import ReliableSpout, StatefulBasicBolt, TopologyBuilder
from multilang.component.clock import virtual_clock
from multilang.component.runner import close, start_bolt
from multilang.component.timers import TaskTimers
from multilang.engine.bolt_collector import LocalBoltCollector
from multilang.engine.clock import VirtualClock
from multilang.engine.counters import TaskStats
from multilang.engine.links import Links
from multilang.engine.plan import Plan
from multilang.engine.tuples import LocalTuple, Origin
from multilang.state import FencedError
from multilang.state.names import COMMIT, FIELDS, INITSTATE, PREPARE, ROLLBACK, SPOUT, STREAM
from multilang.state.providers import provider_of
from multilang.state.spout import CheckpointSpout


class Words(ReliableSpout):
    output_fields = ["word"]


class Count(StatefulBasicBolt):
    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put(tup["word"], self.state.get(tup["word"], 0) + 1)


class Run:
    """The checkpoint spout of a topology, and instances of its one task, each of which processes what it is given."""

    def __init__(self, conf, run_spout):
        self.conf = {**conf, "storm.id": "on-storm", "multilang.parent": "storm"}
        self.clock = VirtualClock()
        self.spout = run_spout(CheckpointSpout([], "at-least-once"), conf=self.conf, clock=self.clock)
        self.instances = []

    def instance(self):
        made = Instance(self.conf)
        self.instances.append(made)
        return made

    def sent(self, action):
        """The checkpoint that the spout sends next."""
        self.clock.sleep(2)
        (sent,) = self.spout.next()
        assert sent.values[1] == action
        return sent

    def step(self, action, *instances):
        """One checkpoint that each of them passes on."""
        sent = self.sent(action)
        for each in instances:
            assert each.checkpoint(sent)
        self.spout.ack(sent.tup_id)

    def close(self):
        for each in (*self.instances, self.spout):
            each.close()


class Instance:
    """One instance of the task."""

    def __init__(self, conf):
        builder = TopologyBuilder()
        builder.set_spout("words", Words)
        builder.set_bolt("count", Count).fields_grouping("words", "word")
        plan = Plan(builder.build("stateful", conf=conf), "stateful", {}, Random(0))
        task = plan.tasks_of("count")[0]
        self.bolt, self.ended = task.spec.component, []
        links = Links(
            out=[],
            receivers={},
            init=None,
            ack=lambda root, _: self.ended.append("acked"),
            fail=lambda root: self.ended.append("failed"),
            later=lambda _, call: call,
            named={},
            getrandbits=Random(1).getrandbits,
            now=lambda: 0.0,
            log=lambda *_: None,
            report=lambda *_: None,
            metric=lambda *_: None,
        )
        collector = LocalBoltCollector(task, links, TaskStats())
        TaskTimers(collector.scope, virtual_clock(lambda: 0.0))
        self.execute = start_bolt(self.bolt, collector, task.conf, task.context)
        self._origins = [
            Origin(component, stream, plan.tasks_of(component)[0].id, tuple(fields))
            for component, stream, fields in (("words", "default", ["word"]), (SPOUT, STREAM, FIELDS))
        ]

    def word(self, word):
        self.execute(LocalTuple([word], "default", self._origins[0], 1, 0))

    def checkpoint(self, sent):
        """Process a checkpoint, and return whether it was acked."""
        self.ended.clear()
        self.execute(LocalTuple(list(sent.values), STREAM, self._origins[1], 1, 0))
        return self.ended[-1] == "acked"

    def close(self):
        close(self.bolt)


@pytest.fixture
def run(durable, run_spout):
    made = Run(durable, run_spout)
    yield made
    made.close()


def stored(conf):
    state = provider_of(conf).new_state("count-0")
    try:
        return dict(state.items())
    finally:
        state.close()


@pytest.mark.parametrize("times", [1, 3])
def test_an_instance_that_wakes_before_its_first_claim_takes_nothing_from_its_successor(run, times):
    first = run.instance()
    run.step(INITSTATE, first)
    first.word("ant")
    run.step(PREPARE, first)
    run.step(COMMIT, first)
    assert stored(run.conf) == {"ant": 1}
    first.word("bee")
    prepared = run.sent(PREPARE)
    assert first.checkpoint(prepared)
    run.spout.fail(prepared.tup_id)  # another task failed it
    asked = []
    for _ in range(times):  # the first instance died, and this one was stopped before it heard of anything
        asked.append(run.sent(ROLLBACK))
        run.spout.fail(asked[-1].tup_id)
    woken, successor = run.instance(), run.instance()
    run.step(ROLLBACK, successor)
    run.step(INITSTATE, successor)
    successor.word("cat")
    run.step(PREPARE, successor)
    for each in asked:
        with pytest.raises(FencedError, match="was taken over by another task"):
            woken.checkpoint(each)
    run.step(COMMIT, successor)
    assert stored(run.conf) == {"ant": 1, "cat": 1}
