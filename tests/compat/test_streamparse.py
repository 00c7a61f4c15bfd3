"""Topologies of streamparse's DSL are topologies of this library."""

from __future__ import annotations

import io
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from multilang.compat.streamparse import Bolt, Grouping, JavaBolt, JavaSpout, ShellBolt, Spout, Topology
from multilang.compat.streamparse import Stream as SparseStream
from multilang.compat.streamparse.own import own_topology
from multilang.component.streams import Stream
from multilang.local import LocalCluster
from multilang.topology import JavaLong, TopologyError, load_topology
from multilang.topology.groupings import Grouping as OwnGrouping
from tests.patience import patient

FILE = Path(__file__).with_name("sparse_words.py")


class Numbers(Spout):
    outputs = ["n", "m"]


class Sum(Bolt):
    outputs = ["sum"]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "beta")
    return load_topology(str(FILE))


def test_a_file_with_one_topology_needs_no_name_for_it(words: Any) -> None:
    assert (words.name, words.origin) == ("sparse_words", f"{FILE}:Words")
    assert {spec.id: spec.tasks for spec in words.components.values()} == {
        "sentences": 1,
        "split": 2,
        "count": 2,
        "letters": 1,
    }
    assert words["split"].streams == {"default": Stream(["word"]), "letters": Stream(["letter"])}
    assert [each.grouping for each in words["letters"].inputs] == [OwnGrouping("global")]
    assert words["letters"].conf == {"topology.tick.tuple.freq.secs": 0.1}
    assert words.conf == {"topology.message.timeout.secs": 60}


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_it_counts_the_same_in_every_mode(words: Any, mode: str) -> None:
    spoken = sys.modules["sparse_words"]
    expected = Counter(word for n in range(spoken.TOTAL) for word in spoken.SENTENCES[n % 3].split())
    letters = Counter(word[0] for word in expected.elements())
    with LocalCluster(mode) as cluster:
        run = cluster.submit(words, capture=["count", "letters"])
        run.wait(lambda run: run.counters["sentences"].acked == spoken.TOTAL, timeout=patient(60))
        for component, counts in (("count", expected), ("letters", letters)):
            last: dict[str, int] = {}
            for tup in run.captured(component):
                last[tup.values[0]] = max(last.get(tup.values[0], 0), tup.values[1])
            assert last == counts


def test_par_without_its_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sums(Topology):
        numbers = Numbers.spec(par={"prod": 5, "beta": 1})

    monkeypatch.delenv("MULTILANG_ENVIRONMENT", raising=False)
    with pytest.raises(
        TopologyError, match="par of 'numbers' has numbers for 'prod', 'beta', and no environment is named"
    ):
        own_topology(Sums, "sums")
    with pytest.raises(TopologyError, match="lacks the environment 'test'"):
        own_topology(Sums, "sums", "test")
    assert own_topology(Sums, "sums", "prod")["numbers"].tasks == 5


def test_classes_of_java_become_those_of_this_library() -> None:
    class InJava(Topology):
        numbers = JavaSpout.spec(full_class_name="a.Numbers", args_list=["x", 1, True], outputs=["n"])
        other = JavaBolt.spec(
            full_class_name="a.B",
            args_list=[],
            inputs=[numbers],
            outputs=["n", SparseStream(fields=["odd"], name="odd")],
        )
        total = Sum.spec(inputs=[other])

    topology = own_topology(InJava, "in-java")
    made = [topology[name].component for name in ("numbers", "other")]
    assert [(each.java_class, each.args) for each in made] == [("a.Numbers", ["x", 1, True]), ("a.B", [])]
    assert [type(each) for each in made[0].args] == [str, JavaLong, bool]  # streamparse sends longs
    assert topology["other"].streams["odd"].fields == ("odd",)

    with pytest.raises(TopologyError, match="--stand-in"):
        LocalCluster("inprocess").submit(topology)


def test_what_only_java_can_run_is_refused() -> None:
    class InJava(Topology):
        numbers = Numbers.spec()
        total = JavaBolt.spec(serialized_java=b"a", inputs=[numbers], outputs=["sum"])

    class ByJava(Topology):
        numbers = Numbers.spec()
        total = Sum.spec(inputs={numbers: Grouping.custom_object("a.B", [1])})

    with pytest.raises(TopologyError, match="'total' is a serialized Java object"):
        own_topology(InJava, "in-java")
    with pytest.raises(TopologyError, match="'total' subscribes by a grouping in Java"):
        own_topology(ByJava, "by-java")


def test_commands_and_all_groupings_arrive() -> None:
    kinds = ("SHUFFLE", "GLOBAL", "ALL", "NONE", "LOCAL_OR_SHUFFLE")
    given: dict[str, Any] = {"numbers": Numbers.spec()}
    for kind in kinds:
        given[kind] = Sum.spec(inputs={given["numbers"]: getattr(Grouping, kind)})
    given["fields"] = ShellBolt.spec(
        command=sys.executable, script="-c pass", inputs={given["numbers"]: Grouping.fields("m", "n")}, outputs=["sum"]
    )
    topology = own_topology(type(Topology)("Grouped", (Topology,), given), "grouped")
    assert [topology[kind].inputs[0].grouping.type for kind in kinds] == [kind.lower() for kind in kinds]
    assert topology["fields"].inputs[0].grouping == OwnGrouping("fields", ["m", "n"])
    assert topology["fields"].command == [sys.executable, "-c", "pass"]


def test_what_is_written_is_read_again() -> None:
    class Sums(Topology):
        numbers = Numbers.spec(par=3)
        total = Sum.spec(inputs={numbers: Grouping.fields("m")}, config={"k": [1]})

    class Others(Topology):
        numbers = Numbers.spec()

    file = io.BytesIO()
    Sums.write(file)
    Others.read(io.BytesIO(file.getvalue()))
    assert Others.thrift_topology == Sums.thrift_topology
    assert Others.thrift_bolts["total"].common.json_conf == '{"k": [1]}'


def test_the_command_shows_it() -> None:
    environment = {"MULTILANG_ENVIRONMENT": "prod", "PATH": "/usr/bin:/bin"}
    command = [str(Path(sys.executable).with_name("multilang")), "show", str(FILE)]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "sentences" in shown.stdout
    assert "8" in shown.stdout


def test_a_project_finds_its_components_in_src(tmp_path: Path) -> None:
    bolts = tmp_path / "src" / "sparse_bolts"
    bolts.mkdir(parents=True)
    (bolts / "__init__.py").touch()
    (bolts / "echo.py").write_text(
        "from streamparse import Bolt, Spout\n"
        "class Ones(Spout):\n"
        "    outputs = ['n']\n"
        "    def initialize(self, conf, context): self.left = 5\n"
        "    def next_tuple(self):\n"
        "        if self.left:\n"
        "            self.left -= 1\n"
        "            self.emit([self.left], tup_id=self.left)\n"
        "class Echo(Bolt):\n"
        "    outputs = ['n']\n"
        "    def process(self, tup): self.emit(list(tup.values))\n"
    )
    file = tmp_path / "topologies" / "echoes.py"
    file.parent.mkdir()
    file.write_text(
        "from streamparse import Topology\n"
        "from sparse_bolts.echo import Echo, Ones\n"
        "class Echoes(Topology):\n"
        "    ones = Ones.spec()\n"
        "    echo = Echo.spec(inputs=[ones])\n"
    )
    with LocalCluster("process") as cluster:
        run = cluster.submit(load_topology(str(file)), capture=["echo"])
        run.wait(lambda run: run.counters["ones"].acked == 5, timeout=patient(60))
        assert sorted(tup.values for tup in run.captured("echo")) == [[n] for n in range(5)]


def test_a_library_that_is_nowhere_is_missed_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "misses.py"
    file.write_text("import pyleus\n")
    with pytest.raises(ModuleNotFoundError, match="No module named 'pyleus'"):
        load_topology(str(file))
