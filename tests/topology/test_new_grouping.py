"""A grouping is one class: a new one works on every engine, in what is shipped and in what is shown."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from random import Random

import pytest
import yaml

from multilang import BasicBolt, LocalCluster, ReliableSpout, TopologyBuilder
from multilang.component.spout import Spout
from multilang.drpc import LinearDRPCTopologyBuilder
from multilang.shipping import Shipment, ShippingError, WheelTarget, flux_yaml, java_class
from multilang.shipping.contents import Contents
from multilang.shipping.thrift_topology import storm_topology
from multilang.topology import Grouping, TopologyError
from multilang.topology.groupings import KINDS, chooser, kind_of
from tests.patience import patient
from tests.topology.by_length import ByLength, NotInStorm

ROOT = Path(__file__).parents[2]
WORDS = ["a", "bb", "cc", "ddd", "eeee", "f", "", "seven 7"]


class Words(ReliableSpout):
    output_fields = ["word"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.left = list(WORDS)

    def next_tuple(self):
        if self.left:
            word = self.left.pop()
            self.emit([word], tup_id=len(self.left))


class Seen(BasicBolt):
    output_fields = ["word", "task"]

    def process(self, tup):
        self.emit([tup["word"], self.context.task])


def declared(grouping):
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("seen", Seen, parallelism=3).grouping("words", grouping)
    return builder.build("lengths")


topology = declared(ByLength(fields=["word"]))


def shipment(topology):
    commands = dict.fromkeys(topology.components, ("python3", "run_topology.py"))
    return Shipment(topology, WheelTarget.of(None, None), Contents(), commands, [])


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_the_embedded_cluster_routes_by_it(mode):
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology, capture=["seen"])
        run.wait(timeout=patient(60))
        tasks = sorted(task.id for task in run.tasks if task.component == "seen")
        got = sorted(each.values for each in run.captured("seen"))
    assert got == sorted([word, tasks[len(word) % 3]] for word in WORDS)


def test_it_is_shown():
    assert "by by length (word)" in topology.to_text()
    assert '"by length (word)"' in topology.to_mermaid()
    assert {"type": "by_length", "fields": ["word"]} in [
        each["grouping"] for spec in json.loads(topology.to_json())["components"] for each in spec["inputs"]
    ]


def test_it_is_shipped():
    shipped = shipment(topology)
    (stream,) = yaml.safe_load(flux_yaml(shipped))["streams"]
    made = {"className": "org.acme.ByLength", "constructorArgs": ["word"]}
    assert stream["grouping"] == {"type": "CUSTOM", "customClass": made}
    assert '.customGrouping("words", "default", new org.acme.ByLength("word"))' in java_class(shipped)
    (grouping,) = storm_topology(shipped).bolts["seen"].common.inputs.values()
    assert grouping.custom_object.full_class_name == "org.acme.ByLength"
    assert [argument.string_arg for argument in grouping.custom_object.args_list] == ["word"]


@pytest.mark.parametrize("chosen", [1, None, (), (1, 2), (99,), [1.5], "1", {1}])
def test_what_it_chooses_is_compared_with_the_tasks(chosen):
    class Astray(ByLength):
        def choose_by(self, context, tasks):
            return lambda values: chosen

    choose = chooser(
        Astray(fields=["word"]), ["word"], [1, 2], source_task=3, local_tasks=(), rng=Random(1), component="words"
    )
    wanted = f"Astray.choose_by chose {chosen!r} for a tuple of 'words' stream 'default': choose one of [1, 2] in a list or tuple"
    with pytest.raises(TopologyError, match=re.escape(wanted)):
        choose(["a"])


def test_its_own_reasons_against_shipping_are_given():
    with pytest.raises(
        ShippingError,
        match=r"subscribes to 'words' by not_in_storm, a custom grouping in Py.* as NotInStorm.java_class",
    ):
        flux_yaml(shipment(declared(NotInStorm(fields=["word"]))))

    class Wide(Words):
        output_fields = ["word", "n"]

    builder = TopologyBuilder()
    builder.set_spout("words", Wide)
    builder.set_bolt("seen", Seen).grouping("words", ByLength(fields=["word"]))
    with pytest.raises(ShippingError, match="bolt 'seen' subscribes to 'words' by length, and its stream has 2 fields"):
        storm_topology(shipment(builder.build("wide")))


def test_a_row_in_the_table_makes_it_known_by_name(monkeypatch):
    monkeypatch.setitem(KINDS, "by_length", "tests.topology.by_length:ByLength")
    named = Grouping("by_length", ["word"])
    assert type(named) is ByLength
    assert named == ByLength(fields=["word"])
    assert pickle.loads(pickle.dumps(named)) == named


def test_steps_of_a_drpc_topology_may_use_it():
    class Emits(BasicBolt):
        output_fields = ["id", "word"]

    builder = LinearDRPCTopologyBuilder("lengths")
    builder.add_bolt(Emits, parallelism=2)
    builder.add_bolt(Emits, parallelism=2).grouping(ByLength(fields=["word"]))
    assert [str(each.grouping) for each in builder.build()["bolt1"].inputs][:1] == ["by length (word)"]


@pytest.mark.parametrize("given", ["shuffle", ByLength])
def test_what_is_no_grouping_is_refused(given):
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    with pytest.raises(TopologyError, match=r"takes a Grouping, such as Grouping\('shuffle'\), not "):
        builder.set_bolt("seen", Seen).grouping("words", given)
    with pytest.raises(TopologyError, match="spout 'more' can't subscribe to anything"):
        builder.set_spout("more", Spout).grouping("words", Grouping("shuffle"))


def test_the_table_names_one_class_for_each_kind():
    kinds = {name: kind_of(name) for name in KINDS}
    assert {name: kind.type for name, kind in kinds.items()} == {name: name for name in KINDS}
    assert len(set(kinds.values())) == len(KINDS)
    for name, kind in kinds.items():
        assert type(Grouping(name, ["word"])) is kind


def test_no_other_module_asks_a_grouping_for_its_type():
    asking = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for package in ("multilang", "spark_bridge")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.parent != ROOT / "multilang/topology/groupings"
        for line in path.read_text().splitlines()
        if re.search(r"grouping\.type\b", line)
    ]
    assert asking == []
