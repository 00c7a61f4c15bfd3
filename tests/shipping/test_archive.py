"""An archive keeps modes and links, is the same each time, and an environment in it runs in any folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

import multilang
from multilang.shipping import ShippingError, archive_folder, pack
from multilang.shipping.archive import archive_shipment
from multilang.shipping.guard import Guard
from multilang.topology import load_topology
from tests.shipping.worker import bare_environment, run_bolt

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/run").write_text("#!/bin/sh\necho ran\n")
    (folder / "bin/run").chmod(0o755)
    (folder / "bin/again").symlink_to("run")
    (folder / "notes.txt").write_text("notes")
    (folder / "notes.txt").chmod(0o640)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_text("")
    return folder


def unpacked(archive: Path, where: Path) -> Path:
    """As the supervisor does, by the system's tar."""
    where.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", archive, "-C", where], check=True)
    return where


def test_modes_and_links_survive(folder: Path, tmp_path: Path) -> None:
    made = archive_folder(folder, tmp_path / "app.tgz")
    there = unpacked(tmp_path / "app.tgz", tmp_path / "worker/app")
    assert (made.files, made.links) == (2, 1)
    assert subprocess.run([there / "bin/again"], capture_output=True, text=True).stdout == "ran\n"
    assert (there / "bin/again").readlink() == Path("run")
    assert (there / "notes.txt").stat().st_mode & 0o777 == 0o640
    assert not (there / "__pycache__").exists()


def test_the_same_folder_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    archive_folder(folder, tmp_path / "one.tgz")
    os.utime(folder / "notes.txt", (1, 1))
    archive_folder(folder, tmp_path / "two.tgz")
    assert (tmp_path / "one.tgz").read_bytes() == (tmp_path / "two.tgz").read_bytes()


def test_absolute_links_into_the_folder_become_relative_and_those_that_leave_it_become_what_they_lead_to(
    folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "word.txt").write_text("word")
    (outside / "also.txt").symlink_to("word.txt")
    (folder / "absolute").symlink_to(folder / "bin/run")
    (folder / "file").symlink_to(outside / "word.txt")
    (folder / "folder").symlink_to("../outside")
    with pytest.raises(ShippingError, match=r"leads out of the folder, to .*word.txt, which would be shipped"):
        archive_folder(folder, tmp_path / "app.tgz")
    archive_folder(folder, tmp_path / "app.tgz", Guard(force=True))
    shutil.rmtree(outside)
    there = unpacked(tmp_path / "app.tgz", tmp_path / "worker/app")
    assert (there / "absolute").readlink() == Path("bin/run")
    assert not (there / "file").is_symlink()
    assert (there / "file").read_text() == (there / "folder/also.txt").read_text() == "word"
    with tarfile.open(tmp_path / "app.tgz") as tar:
        assert not [info.linkname for info in tar if os.path.isabs(info.linkname) or ".." in info.linkname]


def test_links_that_lead_nowhere_or_round_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "broken").symlink_to("nothing")
    with pytest.raises(ShippingError, match=r"broken -> nothing leads nowhere"):
        archive_folder(folder, tmp_path / "app.tgz")
    (folder / "broken").unlink()
    (folder / "round").symlink_to(tmp_path)
    with pytest.raises(ShippingError, match="itself a part of"):
        archive_folder(folder, tmp_path / "app.tgz", Guard(force=True))
    assert not (tmp_path / "app.tgz").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["app"]


def test_what_is_neither_file_nor_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ShippingError, match="pipe is neither a file nor a folder nor a link"):
        archive_folder(folder, tmp_path / "app.tgz")


@pytest.mark.parametrize("name", ["app.zip", "app.tar", "app"])
def test_a_name_that_no_supervisor_unpacks_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ShippingError, match=r"does not end in \.tgz"):
        archive_folder(folder, tmp_path / name)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with this package, a program and ujson in it."""
    env = tmp_path_factory.mktemp("made") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    site = next((env / "lib").glob("python*/site-packages"))
    shutil.copytree(Path(multilang.__file__).parent, site / "multilang", ignore=shutil.ignore_patterns("__pycache__"))
    for file in metadata.distribution("ujson").files or ():
        if file.suffix == ".so":
            shutil.copy(str(file.locate()), site)
    program = env / "bin/where"
    program.write_text(f"#!{env}/bin/python3\nimport multilang; print(multilang.__file__)\n")
    program.chmod(0o755)
    return env


def test_an_environment_runs_a_bolt_in_any_folder_from_the_workers_directory(environment: Path, tmp_path: Path) -> None:
    made = archive_folder(environment, tmp_path / "env.tgz")
    assert made.environment
    assert made.checked
    hidden = environment.rename(environment.with_name("gone"))
    try:
        worker = tmp_path / "worker"
        env = unpacked(tmp_path / "env.tgz", worker / "env")
        (worker / "app").mkdir()
        source = (EXAMPLES / "word_count.py").read_text()
        (worker / "app/split.py").write_text(f"{source}\nSplitSentence().run()\n")
        topology = load_topology(str(EXAMPLES / "word_count.py"))
        emitted, _ = run_bolt(["./env/bin/python", "./app/split.py"], worker, topology, "split", ["the moon"])
        assert emitted == [["the"], ["moon"]]
        where = subprocess.run(
            ["./env/bin/where"], cwd=worker, capture_output=True, text=True, check=True, env=bare_environment()
        )
        assert where.stdout.startswith(str(env.resolve()))
        with tarfile.open(tmp_path / "env.tgz") as tar:
            shipped = tar.getnames()
    finally:
        hidden.rename(environment)
    library = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    assert {f"{library}/os.py", "bin/python", "bin/where"} <= set(shipped)
    assert not {f"{library}/test", f"{library}/idlelib", "pyvenv.cfg", "bin/activate"} & set(shipped)


def test_an_environment_that_leads_elsewhere_is_refused(environment: Path, tmp_path: Path) -> None:
    env = tmp_path / "env"
    shutil.copytree(environment, env, symlinks=True)
    site = next((env / "lib").glob("python*/site-packages"))
    (site / "editable.pth").write_text("/somewhere/else\n")
    with pytest.raises(ShippingError, match=r"editable.pth leads to /somewhere/else.*without -e"):
        archive_folder(env, tmp_path / "env.tgz")
    config = env / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))
    with pytest.raises(ShippingError, match="without --system-site-packages"):
        archive_folder(env, tmp_path / "env.tgz")


def test_a_topologys_files_go_to_the_blob_store_as_they_go_into_a_jar(tmp_path: Path) -> None:
    topology = load_topology(str(EXAMPLES / "word_count.py"))
    archive_shipment(pack(topology), tmp_path / "app.tgz")
    unpacked(tmp_path / "app.tgz", tmp_path / "worker/app")
    emitted, _ = run_bolt(
        [sys.executable, "-S", "-E", "./app/run_topology.py"], tmp_path / "worker", topology, "split", ["the moon"]
    )
    assert emitted == [["the"], ["moon"]]
