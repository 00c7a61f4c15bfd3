"""Programs find the layer by the names that they import: as commands of a topology, in a jar, and by the separate distribution."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from multilang.compat.names import STAND_INS
from multilang.local import LocalCluster
from multilang.shipping import pack
from multilang.topology import load_topology
from multilang.topology.importing import OTHER_LIBRARIES
from tests.patience import patient

ROOT = Path(__file__).parents[2]
DISTRIBUTION = ROOT / "distributions" / "names"
SCRIPT = """\
import storm


class Split(storm.BasicBolt):
    def process(self, tup):
        for word in tup.values[0].split():
            storm.emit([word])


Split().run()
"""
TOPOLOGY = """\
from multilang.compat import storm
from multilang.compat.storm.running import adapted
from multilang.topology import ShellBolt, TopologyBuilder


class Lines(storm.Spout):
    def initialize(self, conf, context):
        self.lines = ["the cow", "the moon"]

    def nextTuple(self):
        if self.lines:
            line = self.lines.pop()
            storm.emit([line], id=line)

    def fail(self, id):
        self.lines.append(id)  # a busy machine may start the bolt's program later than the message timeout


builder = TopologyBuilder()
builder.set_spout("lines", adapted(Lines, ["line"]))
builder.set_bolt("split", ShellBolt(["python3", SCRIPT], ["word"])).shuffle_grouping("lines")
topology = builder.build("words")
"""


@pytest.fixture(params=["split.py", "resources/split.py", "scripts/split.py"])
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A topology whose bolt is a program that imports storm; python3 is the one that runs the tests."""
    script = tmp_path / request.param
    script.parent.mkdir(exist_ok=True)
    script.write_text(SCRIPT)
    called = request.param.removeprefix("resources/")
    file = tmp_path / f"named_{tmp_path.name.replace('-', '_')}.py"
    file.write_text(TOPOLOGY.replace("SCRIPT", repr(called)))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return file


def words_of(file: Path) -> list[list[str]]:
    with LocalCluster("process") as cluster:
        run = cluster.submit(load_topology(str(file)), capture=["split"])
        run.wait(lambda run: run.counters["lines"].acked == 2, timeout=patient(60))
        return sorted(tup.values for tup in run.captured("split"))


def test_a_program_of_a_topology_imports_storm(program: Path) -> None:
    assert words_of(program) == [["cow"], ["moon"], ["the"], ["the"]]


def test_a_program_with_its_own_storm_py_keeps_it(program: Path) -> None:
    script = next(program.parent.rglob("split.py"))
    script.with_name("storm.py").write_text("raise SystemExit('its own storm.py')\n")
    found = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": STAND_INS}, capture_output=True, text=True
    )
    assert found.stderr == "its own storm.py\n"


def test_a_jar_has_what_a_program_imports(program: Path, tmp_path: Path) -> None:
    shipment = pack(load_topology(str(program)))
    jar = tmp_path / "jar"
    shipment.unpack(jar)
    words = shipment.commands["split"]
    if words[1].startswith("run_"):
        words = tuple(json.loads((jar / "manifest.json").read_text())["commands"][words[1]])
    handshake = json.dumps(
        {"pidDir": str(tmp_path), "conf": {}, "context": {"taskid": 1, "task->component": {"1": "split"}}}
    )
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=jar,
        input=f"{handshake}\nend\n",
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONNOUSERSITE": "1"},
    )
    assert '"pid"' in done.stdout, done.stderr


def test_a_program_on_a_machine_with_the_original_gets_the_original(tmp_path: Path) -> None:
    original = tmp_path / "streamparse"
    original.mkdir()
    (original / "__init__.py").write_text("from .inner import NAME\n")
    (original / "inner.py").write_text("NAME = 'the original'\n")
    script = "import streamparse; print(streamparse.NAME, streamparse.inner.NAME)"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([STAND_INS, str(tmp_path)])},
        capture_output=True,
        text=True,
    )
    assert found.stdout == "the original the original\n", found.stderr


def test_the_names_are_the_same_everywhere() -> None:
    for name in OTHER_LIBRARIES:
        assert (DISTRIBUTION / f"{name}.py").read_bytes() == Path(STAND_INS, f"{name}.py").read_bytes()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with this library and what the distribution is built with."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    import ujson

    (site / "here.pth").write_text(f"{ROOT}\n{Path(ujson.__file__).parent}\n")
    return site


def install(site: Path) -> subprocess.CompletedProcess[str]:
    """Install the distribution as its users do."""
    source = site.parent / "names"
    shutil.copytree(DISTRIBUTION, source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    python = str(site.parents[2] / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--force-reinstall"]
    return subprocess.run([*command, str(source)], stdin=subprocess.DEVNULL, capture_output=True, text=True)


@pytest.mark.timeout(600)  # pip downloads what builds it
def test_the_distribution_gives_the_names_and_refuses_the_originals(environment: Path) -> None:
    done = install(environment)
    assert done.returncode == 0, done.stderr
    script = (
        "import streamparse.bolt, storm, pystorm; print(streamparse.Bolt.__module__, storm.__name__, pystorm.__name__)"
    )
    python = environment.parents[2] / "bin" / "python"
    found = subprocess.run([python, "-c", script], capture_output=True, text=True)
    assert (
        found.stdout == "multilang.compat.streamparse.storm.bolt multilang.compat.storm multilang.compat.pystorm\n"
    ), found.stderr

    original = environment / "streamparse-5.0.1.dist-info"
    original.mkdir()
    (original / "METADATA").write_text("Metadata-Version: 2.1\nName: streamparse\nVersion: 5.0.1\n")
    found = subprocess.run([python, "-c", "import streamparse"], capture_output=True, text=True)
    assert "streamparse 5.0.1 is installed in" in found.stderr
    done = install(environment)
    assert "streamparse 5.0.1 is installed in" in done.stderr
