"""A command of another language runs the same file here and on a worker, by every way of submitting it."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from multilang.shipping import ShippingError, flux_yaml, java_class, pack, storm_conf
from multilang.shipping.places import ShippedBlobs
from multilang.topology import ShellBolt, Topology, TopologyBuilder, TopologyError, load_topology
from multilang.topology.commands import local_start
from tests.local.topologies import Numbers
from tests.shipping.worker import BARE_PYTHON, LIMIT, bare_environment, unpack_jar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from multilang.shipping import Shipment
    from tests.shipping.conftest import Project

SCRIPT = "#!/bin/sh\ncat table\necho $*\n"
TOPOLOGY = """
    from pathlib import Path
    from multilang import ReliableSpout, ShellBolt, TopologyBuilder

    HERE = Path(__file__).parent

    class Words(ReliableSpout):
        output_fields = ["word"]

    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("other", {bolt}, conf={bolt_conf}).shuffle_grouping("words")
    topology = builder.build("others", conf={conf})
"""


def topology_with(project: Project, bolt: str, conf: object = None, bolt_conf: object = None) -> Topology:
    project.name += "x"
    return project.topology(text="\n".join(TOPOLOGY.split("\n    ")).format(bolt=bolt, conf=conf, bolt_conf=bolt_conf))


def shell(words: Sequence[str], **arguments: object) -> str:
    more = "".join(f", {name}={value!r}" for name, value in arguments.items())
    return f"ShellBolt({list(words)!r}, output_fields=['a']{more})"


def run(command: Sequence[str], folder: Path) -> str:
    command = [sys.executable if word == "python3" else word for word in command]
    shown = subprocess.run(
        command,
        cwd=folder,
        input="",
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env={**bare_environment(), "PATH": os.environ["PATH"]},
    )
    assert shown.returncode == 0, (command, folder, shown.stderr)
    return shown.stdout


def started(shipment: Shipment, worker: Path) -> Iterator[tuple[list[str], Path]]:
    """The bolt's words and the folder they are started in, by Thrift, by Flux and by Java."""
    yield list(shipment.commands["other"]), worker / "resources"
    text = flux_yaml(shipment)
    command = json.loads(re.findall(r'id: "other"\n.*\n    constructorArgs: \[(.*)\]\n', text)[0])
    yield command, worker if "changeChildCWD" in text else worker / "resources"
    text = java_class(shipment)
    yield (
        json.loads(f"[{re.findall(r'super[(](.*)[)];', text)[1]}]"),
        worker if "changeChildCWD(false)" in text else worker / "resources",
    )


@pytest.mark.parametrize("change_child_cwd", [True, False])
@pytest.mark.parametrize("own", [False, True], ids=["interpreted", "program"])
def test_the_same_file_runs_here_and_on_a_worker_wherever_it_lies_and_however_it_is_named(
    project: Project, tmp_path: Path, change_child_cwd: bool, own: bool
) -> None:
    files = ("run.sh", "sub/run.sh", "resources/run.sh", "resources/sub/run.sh")
    names = ("{}", "./{}", "resources/{}")
    for number, (file, name) in enumerate(itertools.product(files, names)):
        shutil.rmtree(project.folder)
        project.folder.mkdir()
        script = project.write(file, SCRIPT)
        script.chmod(0o755)
        below = file.removeprefix("resources/")
        beside = "resources/" if file != below else ""
        word = name.format(below)
        if own and "/" not in word:
            continue  # which would be a program of the path's
        # What the script opens: from where it is started, which for those in the worker's directory is above the files.
        project.write(f"{beside if change_child_cwd else ''}table", f"a table for {word}\n")
        words = [word, "a b", "c"] if own else ["sh", word, "a b", "c"]
        topology = topology_with(project, shell(words, change_child_cwd=change_child_cwd))
        command, folder = local_start(topology["other"], topology.conf)
        assert run(command, folder) == f"a table for {word}\na b c\n"

        shipment = pack(topology, include=[] if beside else [project.folder / "table"])
        worker = tmp_path / f"worker-{number}"
        resources = unpack_jar(shipment.jar(), worker)
        assert not (resources / "resources").exists()
        assert (resources / below).read_text() == SCRIPT
        if not change_child_cwd:
            (worker / "table").write_text(f"a table for {word}\n")  # a blob
        for command, folder in started(shipment, worker):
            assert run(command, folder) == f"a table for {word}\na b c\n", (file, word, command)


BLOBS = {"newPython.tgz": {"localname": "newPython", "uncompress": True}, "shell_spout.py": {}}
PAGE = ["./newPython/bin/python", "./shell_spout.py"]  # as Storm's own page has it


def with_blobs(worker: Path) -> None:
    """Create what the supervisor puts into a worker's directory."""
    (worker / "newPython" / "bin").mkdir(parents=True)
    (worker / "newPython" / "bin" / "python").symlink_to(BARE_PYTHON)
    (worker / "shell_spout.py").write_text("import os; print('from a blob', os.path.basename(os.getcwd()))\n")


@pytest.mark.parametrize("owner", ["topology", "component"])
def test_programs_and_scripts_from_blobs_run_as_the_page_has_it(project: Project, tmp_path: Path, owner: str) -> None:
    conf = {"topology.blobstore.map": BLOBS}
    maps = {"conf": conf} if owner == "topology" else {"bolt_conf": conf}
    shipment = pack(topology_with(project, shell(PAGE, change_child_cwd=False), **maps))
    worker = tmp_path / "worker"
    unpack_jar(shipment.jar(), worker)
    with_blobs(worker)
    ways = list(started(shipment, worker))
    assert ways[1] == ways[2] == (PAGE, worker)
    for command, folder in ways:
        assert run(command, folder) == "from a blob worker\n"
    assert storm_conf(shipment.topology)["topology.blobstore.map"] == BLOBS
    assert '"topology.blobstore.map": {"newPython.tgz"' in flux_yaml(shipment)
    assert 'conf.put("topology.blobstore.map", mapOf("newPython.tgz"' in java_class(shipment)


def test_blobs_are_above_resources_for_what_is_started_there(project: Project, tmp_path: Path) -> None:
    words = [f".{word}" for word in PAGE]
    shipment = pack(topology_with(project, shell(words), {"topology.blobstore.map": BLOBS}))
    worker = tmp_path / "worker"
    unpack_jar(shipment.jar(), worker)
    with_blobs(worker)
    for command, folder in started(shipment, worker):
        assert (command, folder) == (words, worker / "resources")
        assert run(command, folder) == "from a blob resources\n"


def test_what_a_blob_holds_is_found_beside_the_topology_here(project: Project, tmp_path: Path) -> None:
    for words, change in ((PAGE, False), ([f".{word}" for word in PAGE], True)):
        topology = topology_with(project, shell(words, change_child_cwd=change), {"topology.blobstore.map": BLOBS})
        with pytest.raises(TopologyError, match=rf"'newPython.tgz' and only on a cluster; .* at {project.folder}/newP"):
            local_start(topology["other"], topology.conf)
        with_blobs(project.folder)
        assert run(*local_start(topology["other"], topology.conf)) == f"from a blob {project.folder.name}\n"
        assert "shell_spout.py" not in {item.name for item in pack(topology).contents}
        shutil.rmtree(project.folder / "newPython")
        (project.folder / "shell_spout.py").unlink()


def test_each_component_says_for_itself_where_it_is_started(project: Project) -> None:
    project.write("read.js", "")
    builder = (
        f"{shell(['node', 'read.js'], change_child_cwd=False)}).shuffle_grouping('words')\n"
        f"builder.set_bolt('beside', {shell(['node', 'read.js'])}"
    )
    project.name += "_each"
    text = "\n".join(TOPOLOGY.split("\n    ")).replace("{bolt}, conf={bolt_conf}", builder).format(conf=None)
    shipment = pack(project.topology(text=text))
    text = flux_yaml(shipment)
    assert 'constructorArgs: [["node", "resources/read.js"]]' in text
    assert 'constructorArgs: [["node", "read.js"]]' in text
    assert text.count("changeChildCWD") == 1
    text = flux_yaml(shipment, places=ShippedBlobs(env="env.tgz"))
    assert 'constructorArgs: [["node", "read.js"]]' in text
    assert text.count("changeChildCWD") == 2  # the spout's, whose Python is in the blob
    text = flux_yaml(shipment, places=ShippedBlobs(app="app.tgz"))
    assert text.count('constructorArgs: [["node", "./app/read.js"]]') == 2
    assert text.count("changeChildCWD") == 3
    assert java_class(shipment).count("changeChildCWD(false)") == 1


def test_a_program_with_the_workers_python_takes_the_environments(project: Project) -> None:
    project.write("bolt.py", "")
    inside = pack(topology_with(project, shell(["python3", "bolt.py"])))
    outside = pack(topology_with(project, shell(["python3", "bolt.py"], change_child_cwd=False)))
    env = ShippedBlobs(env="env.tgz")
    assert env.start(inside, "other", "python3") == (["../env/bin/python3", "bolt.py"], True)
    assert env.start(outside, "other", "python3") == (["./env/bin/python3", "resources/bolt.py"], False)


@pytest.mark.parametrize(
    ("words", "options", "reason"),
    [
        (["node", "nosuch.js"], {}, "'nosuch.js', but no such file is in the topology's folder"),
        (["/usr/bin/python3", "-u", "nosuch.py", "x"], {}, "'nosuch.py', but no such file"),
        (["env", "A=1", "ruby", "./nosuch.rb"], {}, "'./nosuch.rb', but no such file"),
        (["perl", "folder"], {}, "'folder', but no such file"),
        (["python3", "folder"], {}, "'folder', but no such file"),
        (["./bin/nosuch", "-x"], {}, "'./bin/nosuch', but no such file"),
        (["node", "resources/nosuch.js"], {"change_child_cwd": False}, "'resources/nosuch.js', but no such file"),
        (["./newPython/bin/python", "-V"], {}, "in the blob 'newPython.tgz'; .*give ShellBolt change_child_cwd=False"),
        (["./shell_spout.py/x"], {"change_child_cwd": False}, "'shell_spout.py' is not unpacked: give it 'uncompress'"),
    ],
)
def test_a_command_that_names_nothing_is_refused_when_the_topology_is_built(
    project: Project, words: list[str], options: dict[str, bool], reason: str
) -> None:
    (project.folder / "folder").mkdir()
    with pytest.raises(TopologyError, match=f"bolt 'other': the command.*{reason}"):
        topology_with(project, shell(words, **options), {"topology.blobstore.map": BLOBS})


def test_an_absolute_name_below_the_topologys_folder_is_looked_for_too(project: Project) -> None:
    with pytest.raises(TopologyError, match=r"nosuch.js', but no such file is in the topology's folder"):
        topology_with(project, "ShellBolt(['node', str(HERE / 'nosuch.js')])")
    topology_with(project, "ShellBolt(['node', '/opt/of-the-workers/split.js'])")


@pytest.mark.parametrize(
    "words",
    [
        ["python3", "-m", "package.module"],
        ["python3", "-c", "print()", "x.py"],
        ["node", "-e", "0", "x.js"],
        ["python3", "-W", "ignore", "nosuch.py"],
        ["docker", "run", "image", "python3", "x.py"],
        ["some-program", "x.py"],
        ["java", "-cp", "x.jar", "Main"],
    ],
)
def test_a_command_of_which_nobody_can_tell_is_taken(project: Project, words: list[str]) -> None:
    assert pack(topology_with(project, shell(words))).jar()


def test_what_no_blob_and_no_file_holds_is_refused_when_it_is_packed_or_run(project: Project) -> None:
    topology = topology_with(project, shell(PAGE, change_child_cwd=False))
    with pytest.raises(
        TopologyError, match=r"newPython/bin/python', but .*, nor does topology.blobstore.map name a blob 'newP"
    ):
        pack(topology)
    with pytest.raises(TopologyError, match=r"newPython/bin/python', and no such file is in the topology's folder"):
        local_start(topology["other"], topology.conf)
    project.write("shell_spout.py", "")
    assert pack(topology, blobs=["newPython"]).commands["other"] == ("sh", "run_in_worker_1.sh")
    assert pack(topology.with_conf({"topology.blobstore.map": BLOBS})).jar()


def test_a_script_above_the_topologys_folder_which_no_worker_has_is_refused_here_too(project: Project) -> None:
    (project.folder.parent / "split.pl").write_text("")
    topology = topology_with(project, shell(["perl", "../split.pl"]))  # a blob could be mapped yet
    for refuses in (pack, lambda topology: local_start(topology["other"], topology.conf)):
        with pytest.raises(TopologyError, match=r"'../split.pl', (but|and) no such file is in the topology's folder"):
            refuses(topology)


def test_two_components_that_differ_about_a_blob_are_refused(project: Project) -> None:
    other = {"newPython.tgz": {"localname": "python"}}
    with pytest.raises(TopologyError, match=r"bolt 'other': topology.blobstore.map has .*'python'.*'newPython.tgz'"):
        topology_with(project, shell(["x"]), {"topology.blobstore.map": BLOBS}, {"topology.blobstore.map": other})


def test_a_folder_resources_beside_the_topology_becomes_the_jars(project: Project, tmp_path: Path) -> None:
    project.write("resources/read.js", "")
    project.write("resources/lib/deep.js", "deep")
    project.write("resources/.hidden/x", "")
    shipment = pack(topology_with(project, shell(["node", "read.js"])))
    resources = unpack_jar(shipment.jar(), tmp_path / "worker")
    assert (resources / "lib" / "deep.js").read_text() == "deep"
    assert not (resources / "resources").exists()
    assert (resources / ".hidden" / "x").exists()
    assert shipment.commands["other"] == ("node", "read.js")
    assert shipment.check()


def test_a_package_called_resources_stays_what_it_is(project: Project) -> None:
    project.write("resources/__init__.py", "")
    project.write("resources/read.js", "")
    text = shell(["node", "resources/read.js"])
    shipment = pack(topology_with(project, text), include=[project.folder / "resources"])
    assert {"resources/__init__.py", "resources/read.js"} <= {item.name for item in shipment.contents}
    assert shipment.commands["other"] == ("node", "resources/read.js")


def test_a_topology_in_a_package_has_its_files_beside_it_and_beside_the_package(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = f"{project.name}_package"
    project.write(f"{package}/__init__.py", "")
    project.write(f"{package}/run.sh", SCRIPT)
    project.write(f"{package}/resources/deep.sh", SCRIPT)
    project.write("table", "a table\n")
    project.write(f"{package}/resources/table", "a table\n")
    monkeypatch.syspath_prepend(str(project.folder))
    for number, word in enumerate(("run.sh", f"{package}/run.sh", "deep.sh")):
        text = "\n".join(TOPOLOGY.split("\n    "))
        project.write(
            f"{package}/flow_{number}.py", text.format(bolt=shell(["sh", word, "x"]), conf=None, bolt_conf=None)
        )
        topology = load_topology(f"{package}.flow_{number}:topology")
        assert run(*local_start(topology["other"], topology.conf)) == "a table\nx\n"
        shipment = pack(topology, include=[project.folder / "table"])
        unpack_jar(shipment.jar(), tmp_path / word.replace("/", "_"))
        for command, folder in started(shipment, tmp_path / word.replace("/", "_")):
            assert run(command, folder) == "a table\nx\n"
        assert shipment.check()


def test_a_helper_may_build_a_topology_whose_files_lie_beside_its_own_module(project: Project, tmp_path: Path) -> None:
    """The place from which the topology is loaded counts."""
    helper = tmp_path / "elsewhere" / f"{project.name}_helper.py"
    helper.parent.mkdir()
    helper.write_text(
        "from multilang import ReliableSpout, ShellBolt, TopologyBuilder\n"
        "class Words(ReliableSpout):\n    output_fields = ['word']\n"
        "def make():\n    builder = TopologyBuilder()\n    builder.set_spout('words', Words)\n"
        f"    builder.set_bolt('other', {shell(['sh', 'run.sh', 'x'])}).shuffle_grouping('words')\n"
        "    return builder.build('helped')\n"
    )
    project.write("run.sh", SCRIPT)
    project.write("table", "a table\n")
    text = (
        f"import sys\nsys.path.append({str(helper.parent)!r})\nimport {helper.stem}\ntopology = {helper.stem}.make()\n"
    )
    topology = project.topology(text=text)
    assert run(*local_start(topology["other"], topology.conf)) == "a table\nx\n"
    assert "run.sh" in {item.name for item in pack(topology).contents}


def test_where_the_topologys_folder_is_not_files_are_those_of_the_current_one(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an executor of Spark's, to which they were sent."""
    project.write("run.sh", SCRIPT)
    topology = topology_with(project, shell(["sh", "run.sh", "x"]))
    executor = tmp_path / "executor"
    project.folder.rename(executor)
    monkeypatch.chdir(executor)
    (executor / "table").write_text("a table\n")
    assert run(*local_start(topology["other"], topology.conf)) == "a table\nx\n"
    (executor / "run.sh").unlink()
    with pytest.raises(TopologyError, match="no such file is in the topology's folder"):
        local_start(topology["other"], topology.conf)


def test_change_child_cwd_is_said_and_shown_and_is_true_or_false() -> None:
    assert ShellBolt(["a"]).change_child_cwd
    with pytest.raises(TopologyError, match=r"change_child_cwd is 'no'; write True .* or False"):
        ShellBolt(["a"], change_child_cwd="no")  # type: ignore[arg-type]
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("other", ShellBolt(["a"], change_child_cwd=False)).shuffle_grouping("numbers")
    topology = builder.build()
    shown = json.loads(topology.to_json())
    assert shown["components"][1]["component"] == {"command": ["a"], "change_child_cwd": False}
    assert "bolt other: a, 1 task\n  started in the worker's directory\n" in topology.to_text()


def test_words_reach_the_program_as_they_are(project: Project, tmp_path: Path) -> None:
    project.write("say.py", "import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    words = ["a b", "$HOME", "'", '"', "*", "\\n", "ü", "", "-x", "new\nline"]
    shipment = pack(topology_with(project, shell(["python3", "say.py", *words], change_child_cwd=False)))
    unpack_jar(shipment.jar(), tmp_path / "worker")
    assert shlex.join(shipment.commands["other"]) == "sh run_in_worker_1.sh"
    for command, folder in [(list(shipment.commands["other"]), tmp_path / "worker" / "resources")]:
        assert json.loads(run(command, folder)) == words


def test_a_file_outside_is_refused_wherever_it_is_started(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "other.js"
    outside.write_text("")
    topology = topology_with(project, shell(["node", str(outside)], change_child_cwd=False))
    with pytest.raises(ShippingError, match=r"other.js, outside of the topology's folder"):
        pack(topology)
