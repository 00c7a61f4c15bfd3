"""Flux YAML and Java text say what the topology says, or refuse by name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from multilang import BasicBolt, CustomGrouping, Spout, Stream, TopologyBuilder
from multilang.shipping import (
    Shipment,
    ShippingError,
    WheelTarget,
    default_conf,
    flux_yaml,
    java_class,
    pack,
    storm_conf,
)
from multilang.shipping.conf import KRYO, KRYO_CLASSES
from multilang.shipping.contents import Contents, Item
from multilang.shipping.flux import check_flux
from multilang.shipping.places import ShippedBlobs
from multilang.topology import TopologyError, load_topology

EXAMPLES = Path(__file__).parents[2] / "examples"


class Numbers(Spout):
    output_fields = ["n"]
    output_streams = {"odd": ["n", "why"]}


class Sum(BasicBolt):
    output_fields = ["sum"]


class Send(BasicBolt):
    output_streams = {"to": Stream(["x"], direct=True)}


class First(CustomGrouping):
    def choose_tasks(self, source_task: int, values: Any) -> list[int]:
        return [source_task]


def shipment(builder: TopologyBuilder, conf: dict[str, Any] | None = None) -> Shipment:
    topology = builder.build("sums", conf=conf)
    contents = Contents()
    contents.add(Item("run_topology.py", b"", "launcher", "starts every task"))
    commands = dict.fromkeys(topology.components, ("python3", "run_topology.py"))
    return Shipment(topology, WheelTarget.of(None, None), contents, commands, [])


def sums(**conf: Any) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers, conf={"small": 1e-07, "note": 'say "hi"\n'})
    bolt = builder.set_bolt("sum", Sum, parallelism=2, tasks=4).fields_grouping("numbers", "n")
    bolt.partial_key_grouping("numbers", "why", stream="odd")
    return builder


def test_components_streams_and_groupings_are_all_there() -> None:
    text = flux_yaml(shipment(sums(), {"topology.workers": 2}))
    assert 'name: "sums"' in text
    assert '  "topology.workers": 2' in text
    assert '    constructorArgs: [["python3", "run_topology.py"]]\n    parallelism: 2\n    numTasks: 4' in text
    assert '{name: "setDefaultStream", args: [["n"]]}' in text
    assert '{name: "setNamedStream", args: ["odd", ["n", "why"]]}' in text
    assert 'grouping: {type: FIELDS, args: ["n"]}' in text
    assert 'constructorArgs: [{ref: "fields of sum 2"}]}, streamId: "odd"}' in text
    assert '  - id: "fields of sum 2"' in text
    assert "changeChildCWD" not in text


def test_values_are_what_yaml_1_1_reads_as_the_same() -> None:
    text = flux_yaml(shipment(sums()))
    assert 'args: ["small", 1.0e-07]' in text
    assert r'args: ["note", "say \"hi\"\n"]' in text


def test_with_blobs_commands_are_relative_to_the_workers_directory() -> None:
    text = flux_yaml(shipment(sums()), places=ShippedBlobs(env="env.tgz", app="app.tgz"))
    assert text.count('constructorArgs: [["./env/bin/python3", "./app/run_topology.py"]]') == 2
    assert text.count('{name: "changeChildCWD", args: [false]}') == 2
    blobs = json.loads(re.findall(r'"topology.blobstore.map": (.*)', text)[0])
    assert blobs == {key: {"localname": key[:3], "uncompress": True} for key in ("env.tgz", "app.tgz")}


def test_with_an_environment_alone_the_files_are_those_of_the_jar() -> None:
    text = flux_yaml(shipment(sums()), places=ShippedBlobs(env="env.tgz"))
    assert 'constructorArgs: [["./env/bin/python3", "resources/run_topology.py"]]' in text


@pytest.mark.parametrize("key", ["env", "env.zip.gz", ".tgz", "a/b.tgz"])
def test_a_key_that_is_no_archives_is_refused(key: str) -> None:
    with pytest.raises(ShippingError, match="not a blob key of an archive"):
        ShippedBlobs(env=key)


def test_direct_streams_are_refused_by_name_and_with_a_way_out() -> None:
    topology = load_topology(str(EXAMPLES / "direct_balance.py"))
    with pytest.raises(ShippingError, match=r"direct streams \('work' of 'balance'\).*multilang submit.*flux --java"):
        check_flux(topology)


def test_java_says_direct_streams_tasks_conf_and_the_change_of_directory() -> None:
    builder = sums()
    builder.set_bolt("send", Send, conf={"limits": {"high": 3_000_000_000, "on": True, "none": None}}).global_grouping(
        "sum"
    )
    builder.set_bolt("send!", Sum).direct_grouping("send", stream="to")
    text = java_class(shipment(builder), places=ShippedBlobs(env="env.tgz"))
    assert "public class SumsTopology {" in text
    assert 'builder.setBolt("sum", new Sum(), 2).setNumTasks(4)' in text
    assert '.customGrouping("numbers", "odd", new PartialKeyGrouping(new Fields("why")))' in text
    assert '.directGrouping("send", "to")' in text
    assert "class Send2 extends ShellBolt" in text
    assert 'declarer.declareStream("to", true, new Fields("x"));' in text
    assert 'super("./env/bin/python3", "resources/run_topology.py");\n            changeChildCWD(false);' in text
    assert 'mapOf("limits", mapOf("high", 3000000000L, "on", true, "none", null))' in text
    assert text.count("{") == text.count("}")


def test_a_custom_grouping_in_python_is_refused() -> None:
    builder = sums()
    builder.set_bolt("own", Sum).custom_grouping("sum", First())
    with pytest.raises(ShippingError, match=r"'own' subscribes to 'sum' by First.*direct_grouping"):
        flux_yaml(shipment(builder))


def test_kryo_knows_what_storms_parser_makes_and_what_the_topology_registers() -> None:
    assert default_conf(sums().build("a"))[KRYO] == list(KRYO_CLASSES)
    own = ["com.example.A", {"java.math.BigDecimal": "com.example.B"}]
    conf = storm_conf(sums().build("a", conf={KRYO: own, "topology.subprocess.timeout.secs": 5}))
    assert conf[KRYO] == [*own, *KRYO_CLASSES[:2]]
    assert conf["topology.subprocess.timeout.secs"] == 5


def test_kryo_registrations_of_another_type_are_refused() -> None:
    with pytest.raises(TopologyError, match="use a list of class names"):
        default_conf(sums().build("a", conf={KRYO: "com.example.A"}))


def test_every_example_packs_and_is_told_to_flux_or_refused() -> None:
    for example in sorted(EXAMPLES.glob("*.py")):
        packed = pack(load_topology(str(example)))
        if any(stream.direct for spec in packed.topology.components.values() for stream in spec.streams.values()):
            continue
        assert flux_yaml(packed).startswith("name: ")
