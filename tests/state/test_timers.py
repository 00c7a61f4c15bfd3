"""Timers of stateful bolts: they wait for the state, change it, and are part of its checkpoints."""

from __future__ import annotations

import pytest

from multilang import TopologyBuilder
from multilang.local import Faults, LocalCluster
from multilang.protocol.errors import LocalProtocolError
from multilang.state import StatefulBolt
from multilang.testing import each_seed
from tests.local.timed import Numbers
from tests.patience import patient

CONF = {
    "topology.state.provider": "org.apache.storm.state.InMemoryKeyValueStateProvider",
    "topology.state.checkpoint.interval.ms": 100,
    "topology.message.timeout.secs": 5,
}


class Counts(StatefulBolt):
    """Counts its tuples in its state from a timer, which emits and acks them."""

    output_fields = ["n", "count"]

    def initialize(self, conf, context):
        self.state = None
        self.kept = []
        self.set_timer(0, self.look, every=0.01)

    def init_state(self, state):
        self.state = state

    def look(self):
        assert self.state is not None, "a timer ran before the state was there"
        for tup in self.kept:
            count = self.state.get("count", 0) + 1
            self.state.put("count", count)
            self.emit([tup["n"], count], anchors=[tup])
            self.ack(tup)
        self.kept.clear()

    def process(self, tup):
        self.kept.append(tup)


class Unanchored(Counts):
    def process(self, tup):
        self.set_timer(0, lambda: self.emit([1, 1]))
        self.ack(tup)


def topology(bolt):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("bolt", bolt).global_grouping("numbers")
    return builder.build("timed state", conf=CONF)


def test_a_stateful_bolt_s_timers_wait_for_its_state_and_change_it():
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(topology(Counts), capture=["bolt"])
        run.wait(timeout=patient(60))
        assert [tup.values for tup in run.captured("bolt")] == [[n, n + 1] for n in range(30)]
        assert run.errors == []


def test_whatever_goes_wrong_a_timer_of_a_stateful_bolt_loses_nothing():
    faults = Faults(crash=0.01, late=0.02, limit=10)

    def check(seed):
        with LocalCluster("simulated", seed=seed, faults=faults) as cluster:
            run = cluster.submit(topology(Counts), capture=["bolt"])
            run.wait()
            assert {tup["n"] for tup in run.captured("bolt")} == set(range(30))
            assert run.counters["numbers"].acked == 30
            assert run.errors == []

    each_seed(check, seeds=10)


def test_what_a_timer_emits_in_a_stateful_topology_has_anchors():
    with LocalCluster("inprocess", fail_fast=True) as cluster:
        run = cluster.submit(topology(Unanchored))
        with pytest.raises(Exception, match=LocalProtocolError.__name__):
            run.wait(timeout=patient(60))
