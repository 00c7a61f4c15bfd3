"""Projects of streamparse are understood by the commands as they lie there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from multilang.cli.project import Hooks, requirements_of, without_layer
from multilang.compat.project import Project, project_at, project_of
from multilang.component.errors import ConfigError
from multilang.testing import complete_topology
from multilang.topology import load_topology
from tests.cli.command import multilang

WORDS = Path(__file__).with_name("words_project")
BUILT = """\
from bolts.words import CountBolt, SplitBolt
from multilang.compat.streamparse.running import adapted
from multilang.topology import TopologyBuilder
from spouts.lines import LineSpout

builder = TopologyBuilder()
builder.set_spout("lines", adapted(LineSpout))
builder.set_bolt("split", adapted(SplitBolt), 2).shuffle_grouping("lines")
builder.set_bolt("count", adapted(CountBolt), 2).fields_grouping("split", "word")
topology = builder.build("words", {"topology.max.spout.pending": 100})
"""
MIXED = """\
from bolts.words import SplitBolt
from own import CountBolt
from spouts.lines import LineSpout
from streamparse import Grouping, Topology
from multilang.compat.streamparse.dsl.spec import spec


class Words(Topology):
    lines = LineSpout.spec()
    split = spec(SplitBolt, inputs=[lines], par=2)
    count = spec(CountBolt, inputs={split: Grouping.fields("word")}, par={"prod": 2, "beta": 3})
"""
OWN = """\
from collections import Counter

from multilang.component import BasicBolt


class CountBolt(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        word = tup["word"]
        self.counts[word] += 1
        self.emit([word, self.counts[word]])
"""
EXPECTED = Counter((WORDS / "src" / "sentences.txt").read_text().split() * 4)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WORDS, tmp_path / "words", ignore=shutil.ignore_patterns("__pycache__")))


def shown(folder: Path, *arguments: str, **env: str) -> Any:
    done = multilang("show", "--format", "json", *arguments, cwd=folder, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["words", ".", "topologies/words.py", "topologies/words.py:Words"])
def test_a_topology_is_named_by_its_project_its_name_or_its_file(project: Path, name: str) -> None:
    assert {each["id"]: each["tasks"] for each in shown(project, name, "-e", "beta")["components"]} == {
        "lines": 1,
        "split": 2,
        "count": 3,
    }


def test_it_runs_with_its_files_beside_its_components(project: Path) -> None:
    done = multilang("run", "words", "-e", "prod", "--top", "count:word:count", "--rows", 20, "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["reliability"]["acked"] == 12
    assert {row["word"]: row["count"] for row in figures["top"]} == EXPECTED


def test_the_topologys_conf_goes_before_the_environments(project: Path) -> None:
    env = {**os.environ, "MULTILANG_ENVIRONMENT": "prod"}
    script = (
        "import json; from multilang.topology import load_topology\n"
        "print(json.dumps(load_topology('topologies/words.py').with_conf({'topology.debug': True}).conf))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, env=env, capture_output=True, text=True)
    assert json.loads(done.stdout) == {
        "topology.message.timeout.secs": 45,
        "topology.max.spout.pending": 100,
        "topology.debug": True,
        "pystorm.log.path": "/nowhere/logs",
        "pystorm.log.level": "warning",
        "pystorm.log.max_bytes": 1000,
    }, done.stderr


def test_the_number_of_workers_is_that_of_the_environments_list(project: Path) -> None:
    found = project_at(str(project))
    assert found is not None
    assert found.conf(found.environment("beta")[1]) == {"topology.workers": 2, "topology.acker.executors": 2}


def test_several_environments_need_a_name_where_par_differs(project: Path) -> None:
    done = multilang("show", "words", cwd=project)
    assert done.returncode == 2
    assert "par of 'count' has numbers for 'prod', 'beta', and no environment is named" in done.stderr
    done = multilang("show", "words", "-e", "test", cwd=project)
    assert "config.json has no environment 'test'; it has 'prod', 'beta'" in done.stderr


def test_a_jar_has_the_components_their_files_and_the_layer(project: Path) -> None:
    (project / "virtualenvs" / "words.txt").write_text("streamparse\n")
    done = multilang("package", "words", "-e", "prod", "-o", "words.jar", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "the topology was loaded from these files alone" in done.stdout
    with zipfile.ZipFile(project / "words.jar") as jar:
        names = set(jar.namelist())
        jar.extractall(project / "jar")
    assert {f"resources/{each}" for each in ("words.py", "sentences.txt", "bolts/words.py", "streamparse.py")} <= names
    assert "resources/multilang/compat/streamparse/__init__.py" in names
    assert not [name for name in names if name.startswith("resources/multilang/compat/storm/__pycache__")]


def test_requirements_come_from_the_projects_virtualenvs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = project_at(str(project))
    assert found is not None
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    topology = load_topology(str(project / "topologies" / "words.py"))
    with requirements_of(found, topology) as path:
        assert path is not None
        assert path.read_text() == "six>=1.16\n"
    (project / "virtualenvs" / "words.txt").write_text("pystorm==3.1.4\ngit+https://host.invalid/streamparse.git\n")
    with requirements_of(found, topology) as path:
        assert path is None


def test_hooks_are_called_with_as_many_arguments_as_they_take(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = project_at(str(project))
    assert found is not None
    monkeypatch.chdir(project)
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    hooks = Hooks(found, "words-2")
    options: dict[str, Any] = {}
    hooks.call("pre_submit", options)
    hooks.call("post_submit", {})
    assert options == {"words.submitted.as": ["words-2", "prod", "/data/virtualenvs"]}
    assert json.loads((project / "submitted.json").read_text()) == ["words-2", "prod"]


def test_hooks_that_need_fabric_are_left_out_with_a_note(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "fabfile.py").write_text("import a_fabric_that_nobody_has\n")
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    found = project_at(str(project))
    assert found is not None
    Hooks(found, "words").call("pre_submit", {})
    assert "fabfile.py of the project is not used" in capsys.readouterr().err


def test_a_topology_in_clojure_is_refused_with_what_to_do(project: Path) -> None:
    (project / "topologies" / "old.clj").touch()
    done = multilang("show", "topologies/old.clj", cwd=project)
    assert done.returncode == 2
    assert "declares its topology in Clojure" in done.stderr


def test_another_serializer_is_refused(project: Path) -> None:
    config = json.loads((project / "config.json").read_text())
    with pytest.raises(ConfigError, match='"serializer": "msgpack", which needs a Java class'):
        Project(str(project), {**config, "serializer": "msgpack"}).conf({})


def test_a_config_json_of_something_else_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"name": "another tool"}')
    assert project_at(str(tmp_path)) is None
    (tmp_path / "config.json").write_text("not JSON")
    assert project_at(str(tmp_path)) is None
    (tmp_path / "topologies").mkdir()
    with pytest.raises(ConfigError, match=r"config\.json can't be read"):
        project_at(str(tmp_path))
    assert project_of(str(tmp_path.parent / "words.py")) is None


def test_sparse_makes_runs_packs_and_shows_a_project(tmp_path: Path) -> None:
    assert multilang("sparse", "quickstart", "first", cwd=tmp_path).returncode == 0
    again = multilang("sparse", "quickstart", "first", cwd=tmp_path)
    assert again.returncode == 2
    assert "the project 'first' can't be made" in again.stderr
    folder = tmp_path / "first"
    run = multilang("sparse", "run", "-n", "wordcount", "-e", "prod", "-t", 2, "-o", "words.a=1", "-w", 1, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "counts     bolt       2" in run.stdout
    assert "flowchart" in multilang("sparse", "visualize", cwd=folder).stdout
    jar = multilang("sparse", "jar", cwd=folder)
    assert jar.returncode == 0, jar.stderr
    assert (folder / "wordcount.jar").is_file()


def test_sparse_asks_the_environments_nimbus(project: Path) -> None:
    for command in (["list"], ["kill", "-n", "words"], ["stats", "-n", "words"], ["tail", "-n", "words"]):
        done = multilang("sparse", *command, "-e", "prod", cwd=project)
        assert done.returncode == 69
        assert "nimbus.invalid" in done.stderr
    done = multilang("sparse", "list", "-e", "prod", cwd=project, STREAMPARSE_NIMBUS="other.invalid:6628")
    assert "other.invalid:6628" in done.stderr
    done = multilang("sparse", "submit", "-e", "prod", "-f", cwd=project)
    assert "note: virtualenv_root in config.json means nothing here" in done.stderr
    assert done.returncode == 69


def test_sparse_outside_of_a_project_says_so(tmp_path: Path) -> None:
    done = multilang("sparse", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no project of streamparse here" in done.stderr


def test_a_missing_package_is_told_with_the_projects_requirements(project: Path) -> None:
    (project / "src" / "helpers.py").write_text("import no_such_package\n")
    done = multilang("show", "words", "-e", "prod", cwd=project)
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: {project}/src/helpers.py, line 1: there is no module 'no_such_package'; the project's packages are installed by: "
        f"pip install -r {project}/virtualenvs/words.txt\n"
    )
    (project / "virtualenvs" / "words.txt").write_text("streamparse  # always\n")
    done = multilang("show", "words", "-e", "prod", cwd=project)
    assert f"add the package that brings 'no_such_package' to {project}/virtualenvs/words.txt" in done.stderr


def test_each_project_has_modules_of_its_own_in_one_process(tmp_path: Path) -> None:
    for name, field in (("one", "a"), ("two", "b"), ("three", "c")):
        folder = tmp_path / name
        (folder / "src" / "parts").mkdir(parents=True)
        (folder / "places").mkdir()
        (folder / "config.json").write_text('{"topology_specs": "places/", "envs": {"only": {}}}')
        (folder / "src" / "parts" / "__init__.py").write_text(f"from marks import MARK\nFIELD = MARK + '{field}'\n")
        (folder / "src" / "marks.py").write_text(f"MARK = '{name}_'\n")
        (folder / "src" / "parts" / "words.py").write_text(
            "from streamparse import Spout\nfrom parts import FIELD\nclass Words(Spout):\n    outputs = [FIELD]\n"
        )
        (folder / "places" / "all.py").write_text(
            "from parts.words import Words\nfrom streamparse import Topology\nclass All(Topology):\n    words = Words.spec()\n"
        )
    script = (
        "from multilang.topology import load_topology\n"
        "for name in ('one', 'two', 'three', 'one'):\n"
        "    print(*load_topology(f'{name}/places/all.py')['words'].streams['default'].fields)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["one_a", "two_b", "three_c", "one_a"], done.stderr
    jar = multilang("package", "all", cwd=tmp_path / "two")
    assert "the topology was loaded from these files alone, and loads" in jar.stdout, jar.stderr


def test_the_only_requirements_are_those_of_every_topology(project: Path) -> None:
    for each in (project / "virtualenvs").iterdir():
        each.unlink()
    only = project / "virtualenvs" / "words.txt"
    only.write_text("six\n")
    found = project_at(str(project))
    assert found is not None
    assert found.requirements("other") == str(only)
    (project / "virtualenvs" / "more.txt").touch()
    assert found.requirements("other") is None
    assert found.requirements("words_topology") == str(only)
    (project / "requirements.txt").touch()
    (project / "virtualenvs" / "words.txt").unlink()
    (project / "virtualenvs" / "more.txt").unlink()
    (project / "src" / "helpers.py").write_text("import no_such_package\n")
    done = multilang("show", "words", "-e", "prod", cwd=project)
    assert (
        f"add the package that brings 'no_such_package' to {project}/virtualenvs/words.txt, and install it"
        in done.stderr
    )
    assert f"{project}/requirements.txt may name it" in done.stderr


def test_sparse_has_the_options_of_streamparses_commands(project: Path) -> None:
    (project / "config.json").rename(project / "other.json")
    done = multilang("sparse", "visualize", "--config", "other.json", "-e", "beta", "-o", "words.mmd", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "flowchart" in (project / "words.mmd").read_text()
    assert "has no environment 'test'; it has 'prod', 'beta'" in (
        multilang("sparse", "run", "--config", "other.json", "-e", "test", cwd=project).stderr
    )
    done = multilang(
        "sparse", "tail", "--config", "other.json", "-n", "words", "-f", "--pattern", "x", "-e", "prod", cwd=project
    )
    assert "nimbus.invalid" in done.stderr
    (project / "other.json").rename(project / "config.json")
    (project / "more.txt").write_text("streamparse\n")
    done = multilang("sparse", "submit", "-e", "prod", "-r", "more.txt", "virtualenvs/more.txt", cwd=project)
    assert done.returncode == 69, done.stderr  # there is no such Nimbus
    done = multilang("sparse", "submit", "-e", "prod", "-R", "/there/words.jar", cwd=project)
    assert "leave --remote_jar_path out, and submit packs the topology" in done.stderr
    assert multilang("sparse", "update_virtualenv", "-n", "words", "--pool_size", 3, cwd=project).returncode == 0
    assert "multilang list shows the topologies" in multilang("sparse", "slot_usage", "-e", "prod", cwd=project).stderr
    assert "--override_name" in multilang("sparse", "help", "submit").stdout
    assert multilang("sparse", "--version").stdout.startswith("sparse 5.0.1, by storm-multilang ")


def test_sparse_packs_each_topology(project: Path) -> None:
    (project / "topologies" / "more.py").write_text((project / "topologies" / "words.py").read_text())
    assert multilang("sparse", "jar", "-e", "prod", cwd=project).returncode == 0
    assert {each.name for each in project.glob("*.jar")} == {"words.jar", "more.jar"}


def test_packages_that_are_named_do_not_bring_the_original(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("streamparse # always\nsix\n-r b.txt\n")
    (tmp_path / "b.txt").write_text("pystorm>=3\nattrs\n")
    with without_layer([tmp_path / "a.txt", tmp_path / "b.txt"]) as path:
        assert path is not None
        assert path.read_text().split() == ["six", "attrs", "attrs"]


def test_a_topology_of_pyleus_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "pyleus_topology.yaml").write_text("name: words\ntopology: []\n")
    for where in (".", "pyleus_topology.yaml"):
        done = multilang("run", where, cwd=tmp_path)
        assert done.returncode == 2
        assert (
            "is a topology of Pyleus's, which does not run here as it is: multilang migrate . shows what to write"
            in done.stderr
        )


def test_a_package_in_another_version_than_the_projects_is_noted(project: Path) -> None:
    (project / "virtualenvs" / "words.txt").write_text("streamparse==3.0\nclick==0.1\nno-such-package==1.0\nujson>=1\n")
    done = multilang("run", "words", "-e", "prod", "-q", cwd=project)
    assert done.returncode == 0, done.stderr
    (note,) = (line for line in done.stderr.splitlines() if line.startswith("note: "))
    assert note.endswith(
        "and the project's requirements name 0.1, which a jar has; if it has to be that one: pip install click==0.1"
    )


def test_a_topology_of_the_builder_in_a_project_gets_its_environment_and_the_folder_of_its_components(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = Path(shutil.copytree(project, tmp_path / "built" / "words"))
    (built / "topologies" / "words.py").write_text(BUILT)
    confs = []
    for environment in ("prod", "beta"):
        monkeypatch.setenv("MULTILANG_ENVIRONMENT", environment)
        expected, found = (load_topology(f"{each}/topologies/words.py") for each in (project, built))
        assert found.conf == expected.conf
        assert found.home is not None
        assert found.home.root == str(built / "src")
        confs.append(found.conf)
    assert confs[0] != confs[1]
    ran = complete_topology(found, {"lines": [["the cow"], ["the moon"]]})
    assert Counter(map(tuple, ran.values("count"))) == {("the", 1): 1, ("the", 2): 1, ("cow", 1): 1, ("moon", 1): 1}


def test_settings_of_multilang_toml_take_the_place_of_config_json(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "topologies" / "words.py"
    file.write_text(BUILT)
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "dev")
    with pytest.raises(ConfigError, match=r"config\.json has no environment 'dev'"):
        load_topology(str(file))
    (project / "multilang.toml").write_text("[environments.dev]\n")
    topology = load_topology(str(file))
    assert topology.conf == {"topology.max.spout.pending": 100}
    assert topology.home is not None
    assert topology.home.root == str(project / "src")


def test_a_topology_of_the_dsl_takes_components_of_this_library(project: Path) -> None:
    (project / "src" / "own.py").write_text(OWN)
    (project / "topologies" / "words.py").write_text(MIXED)
    done = multilang("run", "words", "-e", "prod", "--top", "count:word:count", "--rows", 20, "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["reliability"]["acked"] == 12
    assert {row["word"]: row["count"] for row in figures["top"]} == EXPECTED
