"""Components in Java: what can be declared, what is shipped of them, and what runs in their place elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from multilang import (
    BasicBolt,
    JavaBolt,
    JavaLong,
    JavaObject,
    JavaSpout,
    LocalCluster,
    Stream,
    TopologyBuilder,
    Tuple,
)
from multilang.shipping.errors import ShippingError
from multilang.shipping.flux import flux_yaml
from multilang.shipping.jar import Shipment
from multilang.shipping.java_objects import with_java
from multilang.shipping.java_text import java_class, java_value
from multilang.shipping.thrift_topology import storm_topology
from multilang.shipping.wheels import WheelTarget
from multilang.topology.errors import TopologyError
from multilang.topology.stand_in import with_stand_ins
from tests.cli.command import multilang

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.topology import Topology

KAFKA = "org.apache.storm.kafka.spout.KafkaSpout"
CONFIG = (
    JavaObject.static(f"{KAFKA}Config", "builder", "kafka:9092", "clicks")
    .call("setProp", "group.id", "shop")
    .call("build")
)


class Upper(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        self.emit([tup["word"].upper()])


class Placed(BasicBolt):
    output_fields = ["word", "place"]

    def process(self, tup: Tuple) -> None:
        self.emit([tup["word"], "here"])


def topology(spout: Any = None, bolt: Any = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", spout or JavaSpout("shop.Words", ["a", 1], output_fields=["word"]), conf={"shop.n": 1})
    builder.set_bolt("upper", Upper).shuffle_grouping("words")
    builder.set_bolt("place", bolt or JavaBolt("shop.Place", output_fields=["word", "place"])).fields_grouping(
        "upper", "word"
    )
    builder.set_bolt("end", Upper).shuffle_grouping("place")
    return builder.build("shop")


def shipment(of: Topology) -> Shipment:
    commands = dict.fromkeys(("upper", "end"), ("python3", "run_topology.py"))
    return Shipment(of, WheelTarget.of(None, None), [], commands, [])  # type: ignore[arg-type]


def test_a_worker_is_given_the_class_and_its_arguments_of_the_kinds_that_thrift_has() -> None:
    every = [True, 7, 2**40, JavaLong(7), 1.5, "a", b"\0"]
    made = storm_topology(shipment(topology(JavaSpout("shop.Words$Own", every, output_fields=["word"]))))
    java = made.spouts["words"].spout_object.java_object
    assert java.full_class_name == "shop.Words$Own"
    kinds = ["bool_arg", "int_arg", "long_arg", "long_arg", "double_arg", "string_arg", "binary_arg"]
    assert [next(kind for kind in kinds if getattr(each, kind) is not None) for each in java.args_list] == kinds[
        :2
    ] + kinds[2:]
    assert json.loads(made.spouts["words"].common.json_conf) == {"shop.n": 1}
    assert made.spouts["words"].common.streams["default"].output_fields == ["word"]
    assert made.bolts["place"].bolt_object.java_object.full_class_name == "shop.Place"
    assert made.bolts["upper"].bolt_object.shell.script == "run_topology.py"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: JavaSpout("shop Words"), "'shop Words' is no name of a Java class, such as 'shop.Clicks'"),
        (lambda: JavaSpout("shop.Words", "ab"), r"args is a list of arguments; write \['ab'\]"),
        (
            lambda: JavaSpout("shop.Words", [["a"]]),
            r"not \['a'\]; give a JavaObject\('shop.Words', ...\) for anything else",
        ),
        (lambda: JavaSpout("shop.Words", [2**63]), "is too large for a number of Java's; give it as text"),
        (lambda: JavaSpout("shop.Words", [float("nan")]), "nan can't be an argument of Java's"),
        (lambda: JavaSpout(CONFIG, ["a"]), "the arguments belong to the JavaObject"),
        (lambda: JavaObject("shop.Words", {1: 2}), "1 is the key of a dict, and keys are texts; write '1'"),
        (lambda: JavaObject("shop.Words", object()), "can't be an argument of Java's"),
        (lambda: JavaObject("shop.Words").call("a b"), "'a b' is no name of a method"),
        (lambda: JavaSpout("shop.Words", output_fields="word"), r"a list of names, not 'word'"),
        (lambda: TopologyBuilder().set_bolt("b", JavaSpout("a.B")), r"'b' is a spout, a\.B: add it with set_spout"),
    ],
)
def test_what_java_can_not_have_is_refused_by_name(make: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        make()


def test_subscriptions_to_and_of_java_are_checked_by_their_names() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", JavaSpout("shop.Words", output_fields=["word"], output_streams={"odd": Stream(["n"])}))
    builder.set_bolt("place", JavaBolt("shop.Place", output_fields=["place"])).fields_grouping("words", "wort")
    with pytest.raises(
        TopologyError, match=r"bolt 'place' groups stream 'default' of 'words' by the field 'wort'.*'word'"
    ):
        builder.build("shop")


def test_show_draws_classes_of_java() -> None:
    shown = topology(JavaSpout(JavaObject(KAFKA, CONFIG), output_fields=["word"]))
    assert f"spout words: {KAFKA}, 1 task" in shown.to_text()
    assert f'(["words<br>{KAFKA}"])' in shown.to_mermaid()
    assert json.loads(shown.to_json())["components"][0]["component"] == {"java": KAFKA, "args": 0}


def test_flux_and_java_have_the_class_and_not_a_command() -> None:
    plain = topology(JavaSpout("shop.Words", ["a", 1], output_fields=["word"], conf=None))
    text = java_class(shipment(plain))
    assert 'builder.setSpout("words", new shop.Words("a", 1), 1).addConfigurations(mapOf("shop.n", 1));' in text
    assert 'builder.setBolt("place", new shop.Place(), 1)\n            .fieldsGrouping("upper", ' in text
    with pytest.raises(
        ShippingError, match=r"multilang flux can't express spout 'words' .* submit the topology with multilang submit"
    ):
        flux_yaml(shipment(plain))
    builder = TopologyBuilder()
    builder.set_spout("words", JavaSpout("shop.Words", ["a", 1], output_fields=["word"]))
    builder.set_bolt("upper", Upper).shuffle_grouping("words")
    assert 'className: "shop.Words"\n    constructorArgs: ["a", 1]\n' in flux_yaml(shipment(builder.build("shop")))


def test_objects_are_written_as_java_expressions() -> None:
    assert java_value(JavaObject(KAFKA, CONFIG)) == (
        f'new {KAFKA}({KAFKA}Config.builder("kafka:9092", "clicks").setProp("group.id", "shop").build())'
    )
    made = JavaObject("a.B$C", None, True, JavaLong(1), 2**40, "\"'\n", [1], {"a": 0.5}, b"\xff\1").do("setX", 1)
    assert java_value(made) == (
        'after(new a.B.C(null, true, 1L, 1099511627776L, "\\"\'\\n", new ArrayList<Object>(Arrays.asList(1)), '
        'mapOf("a", 0.5), new byte[] {-1, 1}), it -> it.setX(1))'
    )


def test_a_class_that_no_jar_has_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    import zipfile

    with pytest.raises(
        ShippingError, match=r"spout 'words' is of the Java class shop\.Words, which is in none of the jars"
    ):
        with_java(shipment(topology()), [])
    jar = tmp_path / "shop.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("shop/Words.class", b"")
    with pytest.raises(
        ShippingError, match=r"bolt 'place' is of the Java class shop\.Place, .* --leave-out shop\.Place"
    ):
        with_java(shipment(topology()), [jar])


def test_the_embedded_cluster_refuses_java_with_the_way_out_and_takes_stand_ins(tmp_path: Path) -> None:
    whole = topology()
    with (
        LocalCluster("inprocess") as cluster,
        pytest.raises(TopologyError, match=r"'words' .* --stand-in words=FILE, with a tuple"),
    ):
        cluster.submit(whole)
    lines = tmp_path / "words.txt"
    lines.write_text("a\nb\n")
    half = with_stand_ins(whole, {"words": str(lines)})
    with (
        LocalCluster("inprocess") as cluster,
        pytest.raises(TopologyError, match=r"'place' .* --stand-in place=module:Class"),
    ):
        cluster.submit(half)
    for given in (str(lines), str(tmp_path / "words.jsonl")):
        (tmp_path / "words.jsonl").write_text('{"word": "a"}\n\n["b"]\n')
        with LocalCluster("inprocess") as cluster:
            run = cluster.submit(with_stand_ins(whole, {"words": given, "place": Placed}), capture=["place"])
            run.wait(timeout=10)
            assert sorted(list(tup.values) for tup in run.captured("place")) == [["A", "here"], ["B", "here"]]


@pytest.mark.parametrize(
    ("stand_ins", "said"),
    [
        ({"word": "x"}, "has no component 'word'; .*'words'"),
        ({"words": "nowhere.txt"}, "'words' is to be read from nowhere.txt, and there is no such file"),
        ({"place": "words.txt"}, r"bolt 'place' has 'default' \(word, place\): give module:Class, of a bolt in Python"),
        (
            {"place": Upper},
            r"'place' has 'default' \(word, place\), and Upper has 'default' \(word\); declare the same",
        ),
        ({"words": Upper}, "'words' is a spout, and <class .*Upper'> is none"),
    ],
)
def test_a_stand_in_that_does_not_fit_is_refused(stand_ins: dict[str, Any], said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        with_stand_ins(topology(), stand_ins)


def test_the_command_line_names_stand_ins(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from multilang import BasicBolt, JavaBolt, JavaSpout, TopologyBuilder\n"
        "class Place(BasicBolt):\n"
        "    output_fields = ['word', 'place']\n"
        "    def process(self, tup):\n"
        "        self.emit([tup['word'], 'here'])\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('words', JavaSpout('shop.Words', output_fields=['word']))\n"
        "builder.set_bolt('place', JavaBolt('shop.Place', output_fields=['word', 'place'])).shuffle_grouping('words')\n"
        "topology = builder.build('shop')\n"
    )
    (tmp_path / "words.txt").write_text("a\nb\na\n")
    refused = multilang("run", "shop.py", "-q", cwd=tmp_path)
    assert refused.returncode == 2
    assert "runs on a cluster of Storm's and not on the embedded cluster; give something in its place" in refused.stderr
    shown = multilang(
        "run", "shop.py", "-q", "--stand-in", "words=words.txt", "--stand-in", "place=shop.py:Place", "--top", "place:word",
        cwd=tmp_path,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert "2" in next(line for line in shown.stdout.splitlines() if " a " in line or line.startswith("a"))


def test_spark_refuses_java_unless_a_spout_has_a_source() -> None:
    pytest.importorskip("pyspark")
    from spark_bridge.job.sources import check_sources

    whole = topology()
    with pytest.raises(
        TopologyError, match=r"'words' .* runs on a cluster of Storm's and not on Spark; .* --stand-in words=FILE"
    ):
        check_sources(whole, {})
    with pytest.raises(TopologyError, match=r"'place' .* not on Spark; .* --stand-in place=module:Class"):
        check_sources(whole, {"words": [["a"]]})
    check_sources(with_stand_ins(whole, {"place": Placed}), {"words": [["a"]]})
