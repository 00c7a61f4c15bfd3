"""A jar holds what a task needs, and a worker with nothing but Python runs it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import ujson

from multilang.engine.settings import DEFAULTS
from multilang.shipping import ShippingError, WheelTarget, pack
from multilang.topology import TopologyError, load_topology
from tests.shipping.worker import BARE_PYTHON, run_bolt, start_failure, unpack_jar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.shipping.conftest import Project

EXAMPLES = Path(__file__).parents[2] / "examples"


def names(jar: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        return archive.namelist()


def test_a_bolt_runs_from_an_unpacked_jar_without_anything_installed(tmp_path: Path) -> None:
    topology = load_topology(str(EXAMPLES / "word_count.py"))
    shipment = pack(topology)
    resources = unpack_jar(shipment.jar(), tmp_path)
    assert shipment.commands["split"] == ("python3", "run_topology.py")
    emitted, _ = run_bolt([BARE_PYTHON, "run_topology.py"], resources, topology, "split", ["the cow, the moon"])
    assert emitted == [["the"], ["cow"], ["the"], ["moon"]]


def test_the_same_input_gives_the_same_bytes_in_order_and_without_dates() -> None:
    topology = load_topology(str(EXAMPLES / "word_count.py"))
    jar = pack(topology).jar()
    assert jar == pack(topology).jar()
    first, *rest = names(jar)
    assert first == "META-INF/MANIFEST.MF"
    assert rest == sorted(rest)
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_of_this_package_only_what_a_task_needs_goes_along() -> None:
    jar = names(pack(load_topology(str(EXAMPLES / "word_count.py"))).jar())
    parts = {name.split("/")[2] for name in jar if name.startswith("resources/multilang/")}
    assert parts == {
        "__init__.py",
        "alone.py",
        "child",
        "component",
        "errors.py",
        "exchange",
        "helpers",
        "loading",
        "protocol",
        "settings.py",
        "topology",
    }


def test_what_the_module_imports_of_this_package_goes_along_too(project: Project) -> None:
    shipment = pack(project.topology(imports="from multilang import LocalCluster"))
    assert "multilang/local/cluster.py" in shipment.contents
    assert shipment.check()


def test_the_defaults_of_storm_are_the_same_in_a_jar_in_a_zip_and_here(project: Project, tmp_path: Path) -> None:
    resources = unpack_jar(pack(project.topology(imports="from multilang import LocalCluster")).jar(), tmp_path)
    zipped = tmp_path / "ours.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        for path in (resources / "multilang").rglob("*"):
            archive.write(path, path.relative_to(resources))
    script = "import json; from multilang.engine.settings import DEFAULTS; print(json.dumps(DEFAULTS))"
    for folder in (resources, zipped):
        environment = {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(ujson.__file__).parent)])}
        done = subprocess.run([sys.executable, "-S", "-c", script], env=environment, capture_output=True, text=True)
        assert json.loads(done.stdout or "null") == DEFAULTS, done.stderr


@pytest.mark.parametrize(
    ("imports", "brings", "without"),
    [
        ("PartitionSpout", "spark_bridge/spout.py", "multilang/transactional/__init__.py"),
        ("ReplayablePartitionSpout", "spark_bridge/replayable.py", "spark_bridge/transactional.py"),
        ("ReplayablePartitionSpout", "multilang/state/api.py", "multilang/transactional/__init__.py"),
        ("TransactionalPartitionSpout", "multilang/transactional/__init__.py", "spark_bridge/job/__init__.py"),
    ],
)
def test_a_spout_over_partitions_brings_what_it_is_made_of(
    project: Project, imports: str, brings: str, without: str
) -> None:
    shipment = pack(project.topology(imports=f"from spark_bridge import {imports}"))
    assert brings in shipment.contents
    assert without not in shipment.contents
    assert "spark_bridge/sources/published.py" in shipment.contents


def test_a_star_takes_all_of_this_package(project: Project) -> None:
    assert pack(project.topology(imports="from multilang import *")).check()


def test_the_users_own_modules_are_found_by_their_imports(project: Project, tmp_path: Path) -> None:
    project.write("helping/__init__.py", "")
    project.write("helping/loud.py", "from . import letters\ndef shout(word): return letters.upper(word) + '!'\n")
    project.write("helping/letters.py", "import json\ndef upper(word): return word.upper()\n")
    project.write("helping/unused.py", "raise SystemExit\n")
    project.write("late.py", "MARK = '?'\n")
    project.write("dev.py", "raise SystemExit\n")
    topology = project.topology(
        imports="from helping.loud import shout as louder\nfrom typing import TYPE_CHECKING",
        more=(
            "if TYPE_CHECKING:\n    import dev\n"
            "def shout(word):\n    import late\n    return louder(word) + late.MARK\n"
            "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n"
            "if __name__ == '__main__':\n    import dev\n"
        ),
    )
    shipment = pack(topology)
    yours = {item.name for item in shipment.contents if item.part == "your files"}
    assert yours == {f"{project.name}.py", "helping/__init__.py", "helping/loud.py", "helping/letters.py", "late.py"}
    resources = unpack_jar(shipment.jar(), tmp_path / "worker")
    emitted, _ = run_bolt([BARE_PYTHON, "run_topology.py"], resources, topology, "shout", ["moo"])
    assert emitted == [["MOO!?"]]


def test_a_topology_in_a_package_keeps_its_name_and_the_folders_around_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = f"{project.name}_package"
    project.write(f"{package}/__init__.py", "")
    project.write(f"{package}/helper.py", "MARK = '.'\n")
    text = (EXAMPLES / "word_count.py").read_text()
    project.write(f"{package}/flow.py", text.replace("builder =", "from .helper import MARK\nbuilder ="))
    monkeypatch.syspath_prepend(str(project.folder))
    shipment = pack(load_topology(f"{package}.flow:topology"))
    assert {f"{package}/__init__.py", f"{package}/helper.py", f"{package}/flow.py"} <= {
        i.name for i in shipment.contents
    }
    assert shipment.check()


def test_a_file_whose_name_is_no_module_name_is_found_by_its_path(project: Project, tmp_path: Path) -> None:
    project.name += "-with-dashes"
    topology = project.topology()
    resources = unpack_jar(pack(topology).jar(), tmp_path / "worker")
    emitted, _ = run_bolt([BARE_PYTHON, "run_topology.py"], resources, topology, "shout", ["moo"])
    assert emitted == [["MOO"]]


def test_a_component_starts_from_another_folder_as_well(project: Project, tmp_path: Path) -> None:
    topology = project.topology()
    resources = unpack_jar(pack(topology).jar(), tmp_path / "worker")
    emitted, _ = run_bolt([BARE_PYTHON, "resources/run_topology.py"], resources.parent, topology, "shout", ["moo"])
    assert emitted == [["MOO"]]


def test_programs_of_the_topology_get_two_words_and_their_permission_back(project: Project, tmp_path: Path) -> None:
    project.write("bin/split.py", "#!/usr/bin/env python3\n").chmod(0o644)
    project.write("read.js", "")
    builder = (
        "from multilang import ShellBolt\n"
        "builder.set_bolt('own', ShellBolt(['./bin/split.py', '-x', 'y'], output_fields=['a'])).shuffle_grouping('words')\n"
        "builder.set_bolt('node', ShellBolt(['node', 'read.js'], output_fields=['a'])).shuffle_grouping('words')\n"
        "builder.set_bolt('one', ShellBolt(['sort'], output_fields=['a'])).shuffle_grouping('words')\n"
        "topology = builder.build('programs')\n"
    )
    base = project.topology()
    assert base.name == "shouting"
    project.name += "_more"
    path = project.folder / f"{project.name.removesuffix('_more')}.py"
    topology = project.topology(text=path.read_text() + builder)
    shipment = pack(topology)
    assert shipment.commands["node"] == ("node", "read.js")
    assert shipment.commands["own"] == ("python3", "run_command_1.py")
    assert shipment.commands["one"] == ("python3", "run_command_2.py")
    assert {"bin/split.py", "read.js"} <= {item.name for item in shipment.contents}
    resources = unpack_jar(shipment.jar(), tmp_path / "worker")
    manifest = json.loads((resources / "manifest.json").read_text())
    assert manifest["commands"]["run_command_1.py"] == ["./bin/split.py", "-x", "y"]
    (resources / "bin/split.py").write_text("#!/bin/sh\necho started $1 $2 >&2; exit 3\n")
    assert start_failure([BARE_PYTHON, "resources/run_command_1.py"], resources.parent) == "started -x y\n"


def test_a_worker_without_a_fitting_ujson_says_what_the_jar_is_for(project: Project, tmp_path: Path) -> None:
    resources = unpack_jar(pack(project.topology()).jar(), tmp_path)
    for binary in resources.glob("ujson*.so"):
        binary.unlink()
    manifest = json.loads((resources / "manifest.json").read_text())
    manifest.update(python="3.9", platform="manylinux2014_s390x")
    (resources / "manifest.json").write_text(json.dumps(manifest))
    said = start_failure([BARE_PYTHON, "-S", "run_topology.py"], resources)
    assert said.startswith(
        "multilang: ujson can't be imported (No module named 'ujson'): this jar was made for Python 3.9,"
    )
    assert f"--python {sys.version_info[0]}.{sys.version_info[1]}" in said
    assert said.count("\n") == 1


def test_compiled_wheels_for_another_python_are_named_at_the_start(project: Project, tmp_path: Path) -> None:
    resources = unpack_jar(pack(project.topology()).jar(), tmp_path)
    manifest = json.loads((resources / "manifest.json").read_text())
    manifest.update(python="3.9", compiled=["fast.cpython-39-x86_64-linux-gnu.so"])
    (resources / "manifest.json").write_text(json.dumps(manifest))
    said = start_failure([BARE_PYTHON, "run_topology.py"], resources)
    assert "fast.cpython-39-x86_64-linux-gnu.so is compiled code: this jar was made for Python 3.9" in said


def test_the_launcher_is_code_that_an_old_python_can_read() -> None:
    import ast

    launcher = Path(__file__).parents[2] / "multilang" / "shipping" / "run_topology.py"
    tree = ast.parse(launcher.read_text(), feature_version=(3, 7))
    assert not any(isinstance(node, ast.JoinedStr | ast.AnnAssign) for node in ast.walk(tree))


def test_wheels_are_unpacked_for_the_python_and_platform_asked_for(
    project: Project, tmp_path: Path, wheels: Callable[..., None]
) -> None:
    version = metadata.version("ujson")
    so = "ujson.cpython-312-aarch64-linux-gnu.so"
    wheels("ujson", version, "cp312-cp312-manylinux2014_aarch64", {so: "arm", "ujson-stubs/__init__.pyi": ""})
    wheels(
        "farm",
        "1.0",
        "py3-none-any",
        {"farm/__init__.py": "", "farm-1.0.data/purelib/barn.py": "", "farm-1.0.data/scripts/x": ""},
    )
    wheels("farm", "1.1", "cp311-cp311-manylinux2014_aarch64", {"farm/__init__.py": "wrong"})
    requirements = project.write("requirements.txt", "farm\n")
    target = WheelTarget.of("3.12", "manylinux_2_28_aarch64")
    shipment = pack(project.topology(), target=target, requirements=requirements)
    shipped = {item.name for item in shipment.contents}
    assert {so, "farm/__init__.py", "barn.py"} <= shipped
    assert not {name for name in shipped if "stubs" in name or name.endswith("/x")}
    assert "farm 1.0" in shipment.notes
    assert not shipment.check()


def test_what_has_no_wheel_is_refused_with_pips_reason(project: Project, wheels: Callable[..., None]) -> None:
    requirements = project.write("requirements.txt", "nosuchpackage==1.0\n")
    with pytest.raises(ShippingError, match=r"(?s)no wheels .* for Python .*nosuchpackage"):
        pack(project.topology(), requirements=requirements)


def test_an_installed_package_is_shipped_by_a_requirement_or_left_out(
    project: Project, wheels: Callable[..., None]
) -> None:
    topology = project.topology(imports="import click")
    with pytest.raises(
        ShippingError, match=r"'click', imported by .*, line 3, is an installed package .*--leave-out click"
    ):
        pack(topology)
    without = pack(topology, leave_out=["click"])
    assert "click" not in {item.name.split("/")[0] for item in without.contents}
    assert without.check()  # with the one that is here
    wheels("click", "9.0", "py3-none-any", {"click/__init__.py": ""})
    shipment = pack(topology, requirements=project.write("requirements.txt", "click\n"))
    assert shipment.check()


def test_a_data_file_that_is_left_behind_is_noticed(project: Project) -> None:
    project.write("data/words.txt", "moo")
    text = "from pathlib import Path\nWORDS = (Path(__file__).parent / 'data/words.txt').read_text()"
    topology = project.topology(more=text.replace("\n", "\n    ").replace("    WORDS", "WORDS"))
    with pytest.raises(ShippingError, match=r"(?s)from the jar's files alone.*data/words.txt"):
        pack(topology).check()
    assert pack(topology, include=[project.folder / "data"]).check()


def test_refusals_name_what_can_not_be_shipped(project: Project, tmp_path: Path) -> None:
    project.write("here.py", "def late():\n    import nowhere_to_be_found\n")
    with pytest.raises(ShippingError, match=r"no module 'nowhere_to_be_found', imported by here.py, line 2"):
        pack(project.topology(imports="import here"))


def test_a_module_that_takes_a_name_of_the_jars_is_refused(project: Project) -> None:
    project.write("run_topology.py", "")
    with pytest.raises(ShippingError, match=r"two files would be 'run_topology.py'"):
        pack(project.topology(imports="import run_topology"))


def test_a_topology_that_hides_a_module_of_pythons_is_refused(project: Project) -> None:
    project.name = "colorsys"
    with pytest.raises(ShippingError, match="would hide Python's own module 'colorsys'"):
        pack(project.topology())


def test_a_helper_that_hides_a_module_of_pythons_is_refused(project: Project) -> None:
    project.write("sched.py", "")
    with pytest.raises(ShippingError, match=r"sched.py, imported by .*, would hide Python's own module 'sched'"):
        pack(project.topology(imports="import sched"))


def test_compiled_code_of_ones_own_is_refused_for_another_platform(project: Project) -> None:
    from importlib.machinery import EXTENSION_SUFFIXES

    project.write(f"quick{EXTENSION_SUFFIXES[0]}", "")
    topology = project.topology(more="def unused():\n        import quick\n")
    assert any(item.name.startswith("quick.") for item in pack(topology).contents)
    with pytest.raises(ShippingError, match=r"compiled for this machine, and the jar is for Python 3\.12"):
        pack(topology, target=WheelTarget.of("3.12", "manylinux2014_aarch64"))


def test_a_program_outside_of_the_topologys_folder_is_refused(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "other.js"
    outside.write_text("")
    project.topology()
    project.name += "_outside"
    more = (
        "from multilang import ShellBolt\n"
        f"builder.set_bolt('node', ShellBolt(['node', {str(outside)!r}], output_fields=['a'])).shuffle_grouping('words')\n"
        "topology = builder.build('outside')\n"
    )
    path = project.folder / f"{project.name.removesuffix('_outside')}.py"
    with pytest.raises(
        ShippingError, match=r"other.js.*in the command of bolt 'node'.*outside of the topology's folder"
    ):
        pack(project.topology(text=path.read_text() + more))


def test_a_topology_without_a_name_in_its_module_is_refused() -> None:
    topology = load_topology(str(EXAMPLES / "word_count.py"))
    topology = topology.with_conf({})
    topology._made_from = None
    topology.module = None
    with pytest.raises(TopologyError, match="can't be imported by its tasks' processes"):
        pack(topology)


@pytest.mark.parametrize(
    ("python", "platform", "reason"),
    [
        ("3", None, "write it as"),
        ("3.9", None, "3.10 or newer"),
        ("3.12", "linux!", "write it as manylinux2014_x86_64"),
    ],
)
def test_a_target_that_is_none_is_refused(python: str, platform: str | None, reason: str) -> None:
    with pytest.raises(ShippingError, match=reason):
        WheelTarget.of(python, platform)


def test_classes_of_another_jar_go_along_without_its_resources(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "flux.jar"
    with zipfile.ZipFile(other, "w") as archive:
        for name in ("META-INF/MANIFEST.MF", "META-INF/X.SF", "org/Flux.class", "resources/storm.py"):
            archive.writestr(name, "java")
    jar = names(pack(project.topology()).jar([other]))
    assert "org/Flux.class" in jar
    assert "resources/storm.py" not in jar
    assert "META-INF/X.SF" not in jar
