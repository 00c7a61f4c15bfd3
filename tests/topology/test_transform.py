"""A topology is transformed as its components ask for, and runs everywhere like any topology."""

from __future__ import annotations

import copy

import pytest

from multilang.component import BasicBolt, ReliableSpout, Stream
from multilang.component.runner import start_bolt
from multilang.component.wrapper import Wrapper
from multilang.local import LocalCluster
from multilang.topology import Input, Topology, TopologyBuilder, TopologyError
from multilang.topology.groupings import Grouping
from tests.patience import patient

HERE = __name__


class Numbers(ReliableSpout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        if self.n < 20:
            self.n += 1
            self.emit([self.n])

    def exhausted(self):
        return self.n >= 20


class Audited(BasicBolt):
    """Its topology gets a bolt "audit" that hears of every tuple that it gets."""

    output_fields = ["n"]
    transformations = [f"{HERE}:audited"]

    def process(self, tup):
        self.emit([tup["n"] * 2])


class Auditor(Wrapper):
    own_streams = {"audit": Stream(["what"])}

    def start(self, collector, conf, context):
        self._attach(collector, conf, context)
        inner = start_bolt(self.wrapped, collector, conf, context)

        def execute(tup):
            collector.emit([tup["n"]], "audit", [tup])
            inner(tup)

        return execute


class Audit(BasicBolt):
    output_fields = ["what"]

    def process(self, tup):
        self.emit([tup["what"]])


def audited(topology: Topology) -> Topology:
    builder = TopologyBuilder()
    builder.set_bolt("audit", Audit)
    specs = {id: spec.copy() for id, spec in topology.components.items()}
    for spec in specs.values():
        if spec.component.transformations:
            spec.component = Auditor(spec.component, spec.factory)
            spec.factory = None
            spec.streams = spec.component.declared_streams()
            audit = builder.specs["audit"]
            audit.inputs.append(Input(spec.id, "audit", Grouping("shuffle")))
            specs["audit"] = audit
            break
    return Topology(topology.name, topology.conf, specs, module=topology.module)


class Lost(BasicBolt):
    transformations = ["nowhere.at.all:function"]

    def process(self, tup):
        pass


def build(bolt):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("double", bolt, parallelism=2).shuffle_grouping("numbers")
    return builder.build("audited")


topology = build(Audited)


def test_the_builder_applies_what_a_component_asks_for():
    assert list(topology.components) == ["numbers", "double", "audit"]
    assert topology["double"].streams == {"default": Stream(["n"]), "audit": Stream(["what"])}
    assert "bolt double: Audited, 2 tasks" in topology.to_text()


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_every_runner_runs_what_comes_out(mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(topology, capture=["audit", ("double", "default")])
        run.wait(timeout=patient(100))
        assert sorted(tup[0] for tup in run.captured("audit")) == list(range(1, 21))
        assert sorted(tup[0] for tup in run.captured("double")) == list(range(2, 41, 2))
        if mode != "process":
            assert {type(task.instance) for task in run.tasks} == {Numbers, Audited, Audit}


def test_a_transformation_that_is_not_there_is_named():
    with pytest.raises(TopologyError, match=r"nowhere\.at\.all:function"):
        build(Lost)


def test_each_task_of_a_wrapped_component_has_its_own():
    wrapper = Auditor(Audited(), None)
    assert copy.deepcopy(wrapper).wrapped is not wrapper.wrapped
    assert type(copy.deepcopy(Auditor(Audited(), Audited)).wrapped) is Audited
