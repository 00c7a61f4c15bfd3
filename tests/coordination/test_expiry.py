"""The time for which an id that never finishes is kept, measured on the virtual clock for all timeouts and ticks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.component import Bolt, Spout
from multilang.coordination import CoordinatedBolt
from multilang.drpc.join import JoinResult
from multilang.local import LocalCluster
from multilang.topology import TopologyBuilder

LATE = 0.01  # seconds that a message may take in the simulation


class Requests(Spout):
    """One request, unreliable, so that nothing but the bolt under test has a say about its end."""

    output_fields = ["id", "value"]
    left = 1

    def initialize(self, conf, context):
        self.after = conf["test.after"]

    def next_tuple(self):
        if self.left and self.clock() >= self.after:
            self.left = 0
            self.emit(["a", "b"])

    def clock(self):
        raise AssertionError("the simulation gives spouts its clock")


class Forgets(Bolt):
    """Never acks, so that the request is never finished; says when it came, and when it was given up."""

    def process(self, tup):
        self.report_error("came")

    def timeout_id(self, id):
        self.report_error("went")


class Halves(JoinResult):
    def process(self, tup):
        super().process(tup)
        self.report_error("came")

    def fail(self, tup):
        super().fail(tup)
        self.report_error("went")


PARTS = {"a coordinated bolt": lambda: CoordinatedBolt(Forgets()), "JoinResult": lambda: Halves("requests")}
secs = st.floats(0.5, 200).map(lambda x: round(x, 2))


def topology(part, tick):
    builder = TopologyBuilder()
    builder.set_spout("requests", Requests)
    builder.set_bolt("part", PARTS[part](), conf={"topology.tick.tuple.freq.secs": tick}).shuffle_grouping("requests")
    return builder.build("expiry")


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=40, deadline=None)
@given(timeout=secs, tick=secs | st.just(15), after=secs, seed=st.integers(0, 2**32))
def test_an_id_lives_at_least_its_timeout_and_less_than_two_ticks_longer(part, timeout, tick, after, seed):
    conf = {"topology.message.timeout.secs": timeout, "test.after": after}
    with LocalCluster("simulated", conf=conf, seed=seed) as cluster:
        run = cluster.submit(topology(part, tick))
        run.wait(lambda run: len(run.errors) == 2, timeout=after + timeout + 3 * tick + 5)
        came, went = run.errors
    assert (came.message[:4], went.message[:4]) == ("came", "went")
    assert timeout - LATE <= went.at - came.at < timeout + 2 * tick + LATE


@pytest.mark.parametrize("part", PARTS)
def test_without_message_timeouts_an_id_lives_for_ever(part):
    conf = {"topology.message.timeout.secs": 1, "topology.enable.message.timeouts": False, "test.after": 0}
    with LocalCluster("simulated", conf=conf, seed=1) as cluster:
        run = cluster.submit(topology(part, 1))
        run.run_for(3600)
        assert [error.message[:4] for error in run.errors] == ["came"]
