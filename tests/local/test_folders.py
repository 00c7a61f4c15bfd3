"""The embedded cluster finds a program's files where a worker has them: from the topology's folder, not from the caller's."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from multilang.local import LocalCluster
from multilang.topology import TopologyError, load_topology
from tests.cli.command import multilang
from tests.patience import patient

HERE = Path(__file__).parent
TOPOLOGY = """
    from multilang import BasicBolt, ShellBolt, ShellSpout, TopologyBuilder

    class Sink(BasicBolt):
        output_fields = ["n"]
        def process(self, tup):
            self.emit([tup["n"]])

    builder = TopologyBuilder()
    builder.set_spout("numbers", ShellSpout(["python3", "{spout}"], output_fields=["n", "nothing"]))
    bolt = ShellBolt(["python3", "{bolt}"], output_fields=["n", "task"], change_child_cwd={change})
    builder.set_bolt("plain", bolt).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink).shuffle_grouping("plain")
    topology = builder.build("folders"{conf})
"""


def write(folder: Path, name: str, spout: str, bolt: str, change: bool = True, conf: str = "") -> Path:
    path = folder / f"{name}.py"
    text = textwrap.dedent(TOPOLOGY).format(spout=spout, bolt=bolt, change=change, conf=conf)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("spout_in", "bolt_in", "change"),
    [("", "", True), ("resources", "", True), ("", "resources/sub", False), ("sub", "resources", False)],
)
def test_scripts_are_run_from_another_folder(
    tmp_path: Path, spout_in: str, bolt_in: str, change: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, caller = tmp_path / "elsewhere", tmp_path / "caller"
    caller.mkdir()
    for name, place in (("plain_spout.py", spout_in), ("plain_bolt.py", bolt_in)):
        (folder / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / name, folder / place)
    spout = f"{spout_in}/plain_spout.py".removeprefix("resources/").removeprefix("/")
    bolt = f"{bolt_in}/plain_bolt.py".removeprefix("/")
    path = write(folder, f"topo_{spout_in}_{bolt_in}".replace("/", "_"), spout, bolt, change)
    monkeypatch.chdir(caller)
    with LocalCluster("process") as cluster:
        run = cluster.submit(load_topology(str(path)), capture=["sink"])
        run.wait(lambda run: run.counters["numbers"].acked == 10, timeout=patient(60))
        assert sorted(values[0] for values in run.captured("sink")) == list(range(10))


def test_the_command_line_runs_a_topology_of_another_folder(tmp_path: Path) -> None:
    folder, caller = tmp_path / "elsewhere", tmp_path / "caller"
    for each in (folder / "resources", caller):
        each.mkdir(parents=True)
    shutil.copy(HERE / "plain_spout.py", folder)
    shutil.copy(HERE / "plain_bolt.py", folder / "resources")
    path = write(folder, "topo", "plain_spout.py", "plain_bolt.py")
    shown = multilang("run", path, cwd=caller)
    assert shown.returncode == 0, shown.stdout + shown.stderr


def test_a_script_that_is_not_there_is_refused_with_a_hint_to_the_one_in_the_callers_folder(tmp_path: Path) -> None:
    folder, caller = tmp_path / "elsewhere", tmp_path / "caller"
    folder.mkdir()
    caller.mkdir()
    shutil.copy(HERE / "plain_spout.py", folder)
    shutil.copy(HERE / "plain_bolt.py", caller)
    path = write(folder, "topo", "plain_spout.py", "plain_bolt.py")
    for command in ("run", "package", "submit", "flux"):
        shown = multilang(command, path, cwd=caller)
        assert shown.returncode == 2
        assert (
            f"'plain_bolt.py', but no such file is in the topology's folder {folder}; {caller}/plain_bolt.py is there"
            in (" ".join(shown.stderr.split()))
        )
    assert not list(caller.glob("*.jar"))


def test_what_only_a_worker_has_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(HERE / "plain_spout.py", tmp_path)
    blobs = ", conf={'topology.blobstore.map': {'tools.tgz': {'localname': 'tools', 'uncompress': True}}}"
    path = write(tmp_path, "topo_blob", "plain_spout.py", "tools/bolt.py", False, blobs)
    topology = load_topology(str(path))
    with (
        LocalCluster("process") as cluster,
        pytest.raises(
            TopologyError, match=rf"in the blob 'tools.tgz' and only on a cluster; .* at {tmp_path}/tools/bolt.py"
        ),
    ):
        cluster.submit(topology)
    (tmp_path / "tools").mkdir()
    shutil.copy(HERE / "plain_bolt.py", tmp_path / "tools" / "bolt.py")
    with LocalCluster("process") as cluster:
        run = cluster.submit(topology)
        run.wait(lambda run: run.counters["numbers"].acked == 10, timeout=patient(60))
