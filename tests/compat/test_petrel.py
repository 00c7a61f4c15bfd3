"""Topologies and components written for Petrel run as they are."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.compat.names import STAND_INS
from multilang.compat.petrel import mock
from multilang.compat.petrel import storm as petrel_storm
from multilang.compat.petrel.emitter import BasicBolt, Spout
from multilang.compat.petrel.own import own_topology
from multilang.compat.petrel.running import adapted
from multilang.compat.petrel.topologybuilder import TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.protocol.messages import Ack, Emit, Fail
from multilang.topology import TopologyError
from tests.cli.command import multilang

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

PROJECT = Path(__file__).with_name("petrel_project")
WORDS = Counter((PROJECT / "sentences.txt").read_text().split())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "words", ignore=shutil.ignore_patterns("__pycache__")))


def shown(folder: Path, *arguments: str) -> Any:
    done = multilang("show", "--format", "json", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["create.py", "create.py:create", "."])
def test_a_function_of_a_builder_is_a_topology(project: Path, name: str) -> None:
    found = shown(project, name)
    assert found["name"] == "words"
    assert {each["id"]: (each["component"]["class"], each["tasks"]) for each in found["components"]} == {
        "lines": ("lines:Lines", 1),
        "split": ("splitting:Split", 2),
        "count": ("counting:Count", 3),
    }
    assert found["conf"]["lines.times"] == 2
    assert not [key for key in found["conf"] if key.startswith("petrel.")]


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_it_counts_the_words_with_the_components_of_its_scripts(project: Path, mode: str) -> None:
    done = multilang(
        "run", "create.py", "--mode", mode, "--top", "count:word:count", "--rows", 30, "--json", cwd=project
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    times = 4  # run() of lines.py makes its spout with times=2, and topology.yaml says 2
    assert figures["reliability"]["acked"] == 3 * times
    assert {row["word"]: row["count"] for row in figures["top"]} == {word: n * times for word, n in WORDS.items()}


def test_the_environment_names_another_file_of_settings(project: Path) -> None:
    found = shown(project, "create.py", "-e", "small")
    assert {each["id"]: each["tasks"] for each in found["components"]} == {"lines": 1, "split": 2, "count": 1}
    done = multilang("show", "create.py", "-e", "large", cwd=project)
    assert done.returncode == 2
    assert "large.yaml, which is Petrel's file of settings for the environment 'large'" in done.stderr


def test_the_number_of_tasks_of_an_unknown_component_is_refused(project: Path) -> None:
    with (project / "topology.yaml").open("a") as file:
        file.write("petrel.parallelism.cuont: 3\n")
    done = multilang("show", "create.py", cwd=project)
    assert done.returncode == 2
    assert "petrel.parallelism.cuont is for a component that there is not" in done.stderr


def test_a_jar_has_the_scripts_their_files_and_the_layer(project: Path) -> None:
    done = multilang("package", "create.py", "-o", "words.jar", cwd=project)
    assert done.returncode == 0, done.stderr  # with a test that imports nose, which is not here
    assert "the topology was loaded from these files alone" in done.stdout
    with zipfile.ZipFile(project / "words.jar") as jar:
        names = set(jar.namelist())
    assert {f"resources/{each}" for each in ("lines.py", "sentences.txt", "petrel.py")} <= names
    assert "resources/multilang/compat/petrel/storm.py" in names


def program(start: Starter, body: str, **how: Any) -> Child:
    """The process of a script that runs its class Part."""
    path = start.folder / "part.py"
    header = "from petrel import storm\nfrom petrel.emitter import BasicBolt, Bolt, Spout\n"
    init = "\nPart.__init__ = lambda self: super(Part, self).__init__(script=__file__)\nPart().run()\n"
    path.write_text(header + textwrap.dedent(body) + init)
    return start.command([sys.executable, "-m", "multilang.compat", str(path)], **how).set_up()


def test_a_basic_bolt_anchors_and_acks_and_gets_ticks(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(BasicBolt):
            def process(self, tup):
                if tup.is_tick_tuple():
                    storm.emit(["tick"])
                else:
                    assert tup == storm.Tuple(tup.id, tup.component, tup.stream, tup.task, tup.values)
                    assert storm.emit(tup.values) is None
                    storm.emit([len(storm.emit(tup.values, need_task_ids=True))])
        """,
        answer=lambda emit: [2, 3],
    )
    first = child.give("v")
    child.until(lambda: child.acked)
    tick = child.tick()
    child.until(lambda: len(child.acked) == 2)
    assert [(emit.values, list(emit.anchors)) for emit in child.all(Emit)] == [
        (["v"], [first]),
        (["v"], [first]),
        ([2], [first]),
        (["tick"], [tick]),
    ]
    assert [each for each in child.messages if isinstance(each, Ack | Fail)] == [Ack(first), Ack(tick)]


def test_an_exception_of_a_basic_bolt_ends_the_process(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(BasicBolt):
            def process(self, tup):
                raise KeyError("no such price")
        """,
    )
    child.give("v")
    child.ended()
    assert "no such price" in child.errors[0]
    assert child.acked == []


def test_a_spout_is_not_told_that_it_is_activated(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(Spout):
            def activate(self):
                storm.emit(["activated"])
            def nextTuple(self):
                storm.emitMany([["a"], ["b"]], id=7)
            def fail(self, id):
                storm.reportError("failed %s" % id)
        """,
        spout=True,
    ).started()
    assert [each for each in child.ask("activate") if isinstance(each, Emit)] == []
    assert [(emit.values, emit.id) for emit in child.ask() if isinstance(emit, Emit)] == [(["a"], 7), (["b"], 7)]
    assert "failed 7" in str(child.ask("fail", 7))


class Sentences(Spout):
    def __init__(self) -> None:
        super().__init__(script=__file__)

    def declareOutputFields(self) -> Any:
        return ["sentence"]


class Splitter(BasicBolt):
    def __init__(self) -> None:
        super().__init__(script=__file__)

    def declareOutputFields(self) -> Any:
        return ["word"]

    def initialize(self, stormconf: Any, context: Any) -> None:
        self.shout = stormconf["shout"]

    def process(self, tuple: Any) -> None:
        for word in tuple.values[0].split():
            petrel_storm.emit([word.upper() if self.shout else word])
        petrel_storm.ack(tuple)


def test_the_mock_runs_a_chain() -> None:
    spout, bolt = mock.MockSpout(["sentence"], [["the cow"], ["moon"]]), Splitter()
    found = mock.run_simple_topology({"shout": True}, [spout, bolt], result_type=mock.LIST)
    assert found == {spout: [["the cow"], ["moon"]], bolt: [["THE"], ["COW"], ["MOON"]]}
    spout = mock.MockSpout(["sentence"], [["the cow"], ["moon"]])
    found = mock.run_simple_topology(None, [spout, bolt], max_spout_emits=1)
    assert found[bolt][1].word == "COW"


def test_the_builder_writes_storms_struct_and_reads_it(tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.setSpout("lines", Sentences(), 2)
    builder.setBolt("split", Splitter()).globalGrouping("lines").allGrouping("lines", "other")
    written = builder.write(str(tmp_path / "topology.ser"))
    assert builder.read(str(tmp_path / "topology.ser")) == written
    assert written.bolts["split"].bolt_object.shell.script == "test_petrel.py"
    with pytest.raises(KeyError, match="Bolt has already been declared for id split"):
        builder.setSpout("split", Sentences())
    with pytest.raises(TopologyError, match="setJavaSpout declares a component in Java"):
        builder.setJavaSpout("java", None)
    with pytest.raises(TopologyError, match=r"write Splitter\(\) for it"):
        builder.setBolt("class", Splitter)


def test_what_can_not_run_is_refused() -> None:
    with pytest.raises(TopologyError, match="declared nothing; it gets Petrel's builder"):
        own_topology(lambda builder: None)
    with pytest.raises(ConfigError, match="int is neither a Bolt, a BasicBolt nor a Spout of petrel"):
        adapted(int)


def test_petrels_names_are_found_by_programs() -> None:
    script = "import petrel.emitter, petrel.mock; from petrel import storm; print(petrel.emitter.Spout.__mro__[2] is storm.Spout)"
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": STAND_INS}, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
