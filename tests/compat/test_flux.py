"""Topologies that Flux declares in YAML run as they are."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from multilang.compat.flux import Declared
from multilang.compat.migrate import findings, from_flux
from multilang.shipping import flux_yaml, pack
from multilang.topology import ShellBolt, ShellSpout, Topology, TopologyBuilder, TopologyError, load_topology
from multilang.topology.shell import Foreign
from tests.cli.command import multilang

YAML = """\
name: "tally"
config: {topology.workers: 1}
spouts:
  - id: "lines"
    className: "org.apache.storm.flux.wrappers.spouts.FluxShellSpout"
    constructorArgs:
      - ["python", "lines.py"]
      - ["line"]
    parallelism: 1
bolts:
  - id: "split"
    className: "org.apache.storm.flux.wrappers.bolts.FluxShellBolt"
    constructorArgs:
      - ["python", "split.py"]
      - ["word"]
    parallelism: 2
  - id: "log"
    className: "org.apache.storm.flux.wrappers.bolts.LogInfoBolt"
streams:
  - {name: "a", from: "lines", to: "split", grouping: {type: SHUFFLE}}
  - {name: "b", from: "split", to: "log", grouping: {type: FIELDS, args: ["word"]}}
"""
PROGRAMS = {
    "lines.py": """\
import storm

class Lines(storm.Spout):
    def initialize(self, conf, context):
        self.left = ["red fish", "blue fish"]

    def nextTuple(self):
        if self.left:
            line = self.left.pop()
            storm.emit([line], id=line)

Lines().run()
""",
    "split.py": """\
import storm

class Split(storm.BasicBolt):
    def process(self, tup):
        for word in tup.values[0].split():
            storm.emit([word])

Split().run()
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    programs = tmp_path / "multilang" / "resources"
    programs.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "topology.yaml").write_text(YAML)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "topology.yaml"
    path.write_text(text)
    return path


def test_it_runs_with_the_programs_of_a_java_project(project: Path) -> None:
    done = multilang("run", project / "resources" / "topology.yaml", "--for", 60, "--until-drained", "-v", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "2 tuples acked" in done.stdout
    for word, number in (("red", 1), ("blue", 1), ("fish", 2)):
        assert done.stderr.count(f", [{word}]") == number


def test_a_jar_has_the_programs_and_a_module_of_the_topology(project: Path) -> None:
    topology = load_topology(str(project / "resources" / "topology.yaml"))
    shipment = pack(topology)
    assert shipment.check()
    (project / "tally.jar").write_bytes(shipment.jar())
    with zipfile.ZipFile(project / "tally.jar") as jar:
        assert {f"resources/{each}" for each in (*PROGRAMS, "tally_topology.py", "storm.py")} <= set(jar.namelist())


def test_migrate_writes_a_module_that_declares_the_same(project: Path) -> None:
    (made,) = from_flux(str(project))
    assert made == str(project / "multilang" / "resources" / "tally_topology.py")
    assert from_flux(str(project)) == []
    ours, theirs = load_topology(made), load_topology(str(project / "resources" / "topology.yaml"))
    assert shown(ours) == shown(theirs)
    assert ours.conf == theirs.conf == {"topology.workers": 1}
    for each in (ours, theirs):
        assert [
            spec.component.description for spec in each.components.values() if isinstance(spec.component, Foreign)
        ] == [
            "python lines.py",
            "python split.py",
        ]
    assert "resources" not in Path(made).read_text()


def shown(topology: Topology) -> str:
    parts = {
        spec.id: [
            spec.kind,
            spec.parallelism,
            spec.tasks,
            spec.conf,
            {name: list(stream.fields) for name, stream in spec.streams.items()},
            [[each.component, each.stream, each.grouping.to_dict()] for each in spec.inputs],
        ]
        for spec in topology.components.values()
    }
    return json.dumps([topology.name, parts], indent=1)


def test_what_this_library_writes_as_flux_is_read_back(tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("s", ShellSpout(["numbers"], ["n", "m"], {"late": ["n"]}), 2, tasks=4, conf={"a.key": 1.5})
    bolt = builder.set_bolt("b", ShellBolt(["take"]), 3, tasks=3)
    bolt.fields_grouping("s", "n", "m").shuffle_grouping("s", stream="late")
    bolt = builder.set_bolt("every", ShellBolt(["take"]), tasks=1).all_grouping("s")
    bolt.global_grouping("s", stream="late")
    near = builder.set_bolt("near", ShellBolt(["take"]), tasks=1)
    near.local_or_shuffle_grouping("s").none_grouping("s", stream="late")
    topology = builder.build("numbers", {"topology.max.spout.pending": 10, "own": {"deep": [1, None, True]}})
    topology.origin = f"{written_module(tmp_path)}:topology"
    text = flux_yaml(pack(topology))  # which starts each command by a script of the jar's
    for number in range(1, 5):
        (tmp_path / f"run_command_{number}.py").touch()
    read = load_topology(str(written(tmp_path, text)))
    assert read.conf.items() >= topology.conf.items()  # workers need some entries more
    assert shown(read) == shown(topology)


def written_module(folder: Path) -> Path:
    path = folder / "numbers_topology.py"
    path.write_text("from multilang.topology import Topology\n")
    return path


REFUSED = {
    "an object": (
        "spouts: [{id: k, className: shop.Spout, constructorArgs: [{ref: conf}]}]",
        "spout 'k' of the Java class shop.Spout is made of Java objects",
    ),
    "a source in Java": (
        "{spouts: [{id: k, className: shop.Spout}], bolts: [{id: b, className: flux.wrappers.bolts.LogInfoBolt}], streams: [{from: k, to: b}]}",
        "whose fields this file does not tell",
    ),
    "a method": (
        "spouts: [{id: k, className: a.FluxShellSpout, constructorArgs: [[x]], configMethods: [{name: setEnv, args: [1]}]}]",
        "calls the Java method setEnv",
    ),
    "a stream from nowhere": (
        "spouts: [{id: k, className: a.FluxShellSpout, constructorArgs: [[x], [f]]}]\nstreams: [{from: kk, to: k}]",
        "a stream is from 'kk', and there is no such component",
    ),
    "a variable": ("name: ${NO_SUCH_VARIABLE}\nspouts: []", "set the variable 'NO_SUCH_VARIABLE'"),
    "Java": ("topologySource: {className: shop.Main}", "topologySource is made in Java"),
    "nothing": ("nimbus.host: here", "it declares no spouts"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_only_java_can_make_is_refused_with_what_to_do(tmp_path: Path, what: str) -> None:
    text, said = REFUSED[what]
    with pytest.raises(TopologyError) as raised:
        Declared(str(written(tmp_path, text))).text()
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path}/topology.yaml: ") or "variable" in said


def test_migrate_tells_what_only_java_can_make(tmp_path: Path) -> None:
    written(tmp_path, REFUSED["an object"][0])
    (tmp_path / "other.yml").write_text("a: b")
    (tmp_path / "broken.yml").write_text("{{{")
    (found,) = findings(str(tmp_path))
    assert (found.path, found.stops) == (str(tmp_path / "topology.yaml"), True)
    assert "made of Java objects" in found.fix


def test_files_are_included_and_variables_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLY_TASKS", "3")
    (tmp_path / "base.yaml").write_text(YAML.replace("parallelism: 2", "parallelism: ${TALLY_TASKS}"))
    for name in PROGRAMS:
        (tmp_path / name).touch()
    path = written(
        tmp_path,
        "name: mine\nconfig: {topology.workers: 2}\nincludes: [{resource: false, file: base.yaml, override: false}]\n",
    )
    topology = load_topology(str(path))
    assert (topology.name, topology.conf) == ("mine", {"topology.workers": 2})
    assert topology["split"].tasks == 3


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = multilang("show", "nowhere.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no file 'nowhere.yaml'" in done.stderr
