"""The parts of a linear DRPC topology, and what the builder refuses."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, BatchBolt, StatefulBasicBolt
from multilang.coordination import COORD_STREAM, KeyedFairBolt
from multilang.drpc import LinearDRPCTopologyBuilder, LocalDRPC
from multilang.topology import TopologyError
from tests.drpc.pipelines import Expand, Start, Total


class Results(BasicBolt):
    output_fields = ["id", "result"]


class Three(BasicBolt):
    output_fields = ["id", "result", "more"]


class Two(BasicBolt):
    output_fields = ["id", "result"]
    output_streams = {"more": ["id"]}


class Stateful(StatefulBasicBolt):
    output_fields = ["id", "result"]


def wiring(topology, id):
    return {(each.component, each.stream): str(each.grouping) for each in topology[id].inputs}


def test_components_streams_and_groupings_are_storms():
    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(Start, 2)
    builder.add_bolt(Expand(0), 3).shuffle_grouping()
    builder.add_bolt(Total, 2).fields_grouping("id")
    topology = builder.build()
    assert list(topology.components) == ["spout", "prepare-request", "bolt0", "bolt1", "bolt2", "bolt3", "bolt4"]
    assert wiring(topology, "prepare-request") == {("spout", "default"): "none"}
    assert wiring(topology, "bolt0") == {("prepare-request", "default"): "none"}
    assert wiring(topology, "bolt1") == {("bolt0", "default"): "shuffle", ("bolt0", COORD_STREAM): "direct"}
    assert wiring(topology, "bolt2") == {
        ("bolt1", "default"): "fields (id)",
        ("bolt1", COORD_STREAM): "direct",
        ("prepare-request", "id"): "fields (request)",
    }
    assert wiring(topology, "bolt3") == {
        ("bolt2", "default"): "fields (id)",
        ("prepare-request", "ret"): "fields (request)",
    }
    assert wiring(topology, "bolt4") == {("bolt3", "default"): "none"}
    assert {name: list(each.fields) for name, each in topology["prepare-request"].streams.items()} == {
        "default": ["request", "args"],
        "ret": ["request", "return"],
        "id": ["request"],
    }
    assert list(topology["spout"].streams["default"].fields) == ["args", "return-info"]
    assert topology["bolt1"].component.sources == {"bolt0": "single"}
    assert topology["bolt2"].component.sources == {"bolt1": "all"}


def build(*steps):
    builder = LinearDRPCTopologyBuilder("f")
    for number, (bolt, parallelism) in enumerate(steps):
        declarer = builder.add_bolt(bolt, parallelism)
        if number:
            declarer.shuffle_grouping()
    return builder.build()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "has no step"),
        ([(Three, 1)], "two fields"),
        ([(Two, 1)], "declares 2 streams"),
        ([(BasicBolt, 1)], "declares 0 streams"),
        ([(Start, 1), (Total, 2)], "fields_grouping\\('id'\\)"),
        ([(Stateful, 1)], "stateful"),
        ([(7, 1)], "not 7"),
        ([(Expand, 1)], "give an instance"),
        ([(Start, 0)], "parallelism"),
    ],
)
def test_what_could_not_answer_is_refused(steps, message):
    with pytest.raises(TopologyError, match=message):
        build(*steps)


def test_a_step_without_input_is_refused():
    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(Start)
    builder.add_bolt(Results)
    with pytest.raises(TopologyError, match="gets no tuples"):
        builder.build()


def test_a_single_batch_bolt_may_have_many_tasks():
    class Alone(BatchBolt):
        output_fields = ["id", "result"]

    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(Alone, 3)
    assert wiring(builder.build(), "bolt0")["prepare-request", "default"] == "fields (request)"


class Twice(BatchBolt):
    output_fields = ["id", "result"]

    def process(self, tup):
        self.emit([self.id, tup.values[1] * 2])


class Shout(BasicBolt):
    output_fields = ["id", "result"]

    def process(self, tup):
        self.emit([tup.values[0], tup.values[1].upper()])


@pytest.mark.parametrize("steps", [(Shout, Twice), (Shout(), Twice())])
def test_a_fair_bolt_stands_around_a_class_as_around_an_instance(steps):
    builder = LinearDRPCTopologyBuilder("fair")
    for step in steps:
        builder.add_bolt(KeyedFairBolt(step), 2).fields_grouping("request" if step is steps[0] else "id")
    with LocalDRPC("inprocess") as drpc:
        drpc.submit(builder.build())
        assert [drpc.execute("fair", text) for text in ("a", "b")] == ["AA", "BB"]
