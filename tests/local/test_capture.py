"""Tuples that are handed to a function instead of being kept."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, LocalCluster, ReliableSpout, TopologyBuilder
from multilang.local import LocalClusterError


class Letters(ReliableSpout):
    output_fields = ["letter"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.left = list("edcba")

    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop()])

    def exhausted(self):
        return not self.left


class Upper(BasicBolt):
    output_fields = ["letter"]

    def process(self, tup):
        self.emit([tup["letter"].upper()])


builder = TopologyBuilder()
builder.set_spout("letters", Letters)
builder.set_bolt("upper", Upper).shuffle_grouping("letters")
topology = builder.build("letters")


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_a_function_gets_each_tuple_in_order_and_nothing_is_kept(mode):
    got = []
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology, capture={("upper", "default"): lambda tup: got.append(tup["letter"])})
        run.wait(timeout=60)
        with pytest.raises(KeyError, match="not captured"):
            run.captured("upper")
    assert got == list("ABCDE")


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_what_a_function_raises_is_no_fault_of_the_component_and_ends_the_wait(mode):
    def take(tup):
        raise ZeroDivisionError("mine")

    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology, capture={"upper": take})
        with pytest.raises(
            LocalClusterError, match=r"ZeroDivisionError\('mine'\) of the function that captures 'upper'"
        ):
            run.wait(timeout=60)
        assert run.errors == []


def test_one_component_to_capture_may_be_given_by_itself():
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(topology, capture="upper")
        run.wait(timeout=60)
        assert [tup["letter"] for tup in run.captured("upper")] == list("ABCDE")
        with pytest.raises(LocalClusterError, match="no topology 'leters' runs here; did you mean 'letters'"):
            cluster.kill("leters")
