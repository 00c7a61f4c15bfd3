"""Components run with a Python, with code and with files from the blob store, in the worker's directory and beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.blobs import delete_blob, list_blobs
from multilang.shipping.cluster.artifacts import java
from tests.cli.command import ROOT, multilang
from tests.soak import chosen, soak_only
from tests.storm.conftest import LIMIT, SHIPPED, acked, give, maven, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


@pytest.fixture
def blobs(storm: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A folder with the topology's file, after an environment, the code, a tool and a table were put into the blob store."""
    folder = tmp_path / "project"
    (folder / "tools" / "bin").mkdir(parents=True)
    shutil.copy(SHIPPED / "from_blobs.py", folder)
    (folder / "tools" / "bin" / "hello").write_text("#!/bin/sh\necho hello\n")
    (folder / "tools" / "bin" / "hello").chmod(0o755)
    (folder / "table").write_text("one")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True, timeout=LIMIT)
    for made in (
        ("archive", "env", "-o", "env.tgz"),
        ("archive", "tools", "-o", "tools.tgz"),
        ("package", "from_blobs.py", "-o", "app.tgz"),
    ):
        assert multilang(*made, cwd=folder).returncode == 0
    for key in ("env.tgz", "tools.tgz", "app.tgz", "table"):
        assert multilang("blob", "put", key, key, "--nimbus", storm.address, cwd=folder).returncode == 0
    yield folder
    with storm.client() as client:
        for key in list_blobs(client):
            if key in ("env.tgz", "tools.tgz", "app.tgz", "table"):
                delete_blob(client, key)


def described(project: Path, folder: Path, name: str, *options: str) -> str:
    """Return what `multilang flux` says of the topology, with its Python and its code in the blob store."""
    where = ("--env", "env.tgz", "--app", "app.tgz", *options)
    shown = multilang("flux", "from_blobs.py", *where, cwd=project, TEST_FOLDER=str(folder), TEST_NAME=name)
    assert shown.returncode == 0, shown.stderr
    assert "changeChildCWD" in shown.stdout
    return shown.stdout


def give_to_flux(storm: Cluster, project: Path, folder: Path) -> None:
    manual = (ROOT / "docs" / "shipping.md").read_text()
    assert "maven-dependency-plugin:2.10:copy -Dartifact=org.apache.storm:flux-core:VERSION:jar" in manual
    run_flux(storm, project, "from_blobs.py", described(project, folder, "from-flux"))


def run_flux(storm: Cluster, project: Path, topology: str, text: str) -> None:
    flux = maven("org.apache.storm", "flux-core", plugin="2.10")  # its pom names a parent that is not on Maven Central
    (project / "told.yaml").write_text(text)
    arguments = ("--no-splash", "--no-detail", "--remote", "told.yaml")
    storm_jar(storm, project, topology, flux, "org.apache.storm.flux.Flux", *arguments)


def give_to_java(storm: Cluster, project: Path, folder: Path) -> None:
    run_java(storm, project, "from_blobs.py", described(project, folder, "from-java", "--java"))


def run_java(storm: Cluster, project: Path, topology: str, text: str) -> None:
    main = compiled(storm, project, text)
    with zipfile.ZipFile(project / "classes.jar", "w") as jar:
        for path in (project / "classes").iterdir():
            jar.write(path, path.name)
    storm_jar(storm, project, topology, project / "classes.jar", main)


def compiled(storm: Cluster, project: Path, text: str) -> str:
    """Compile the text of a class into the folder ``classes``; the class's name."""
    name = re.search(r"public class (\w+)", text)[1]
    (project / f"{name}.java").write_text(text)
    javac = Path(java()).with_name("javac")
    if not javac.exists() and "CI" not in os.environ:
        pytest.skip("there is no JDK here")
    command = [javac, "-d", "classes", "-cp", f"{storm.home}/lib-worker/*", f"{name}.java"]
    subprocess.run(command, cwd=project, check=True, timeout=LIMIT)
    return name


def storm_jar(storm: Cluster, project: Path, topology: str, classes: Path, main: str, *arguments: str) -> None:
    """As `storm jar JAR MAIN ARGUMENTS` does; the jar is made of the topology and of ``classes``."""
    shown = multilang("package", topology, "--add-jar", classes, "-o", f"{main}.jar", cwd=project)
    assert shown.returncode == 0, shown.stderr
    subprocess.run(
        [
            *(java(), "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *(f"-Dstorm.jar={main}.jar", f"-Dstorm.home={storm.home}", "-Dstorm.options=", "-Dstorm.conf.file="),
            *("-Dstorm.dependency.jars=", "-Dstorm.dependency.artifacts={}"),
            *("-cp", f"{storm.home}/lib-worker/*:{main}.jar:{storm.conf_folder}", main, *arguments),
        ],
        cwd=project,
        check=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def test_an_environment_from_the_blob_store_by_flux_by_java_and_by_thrift(
    storm: Cluster, blobs: Path, nimbus: Nimbus, tmp_path: Path
) -> None:
    ways = chosen(("flux", "java", "thrift"), "flux")
    for name in ways:
        (tmp_path / name).mkdir()
    give_to_flux(storm, blobs, tmp_path / "flux")
    if "java" in ways:
        give_to_java(storm, blobs, tmp_path / "java")
    if "thrift" in ways:
        folder = {"test.folder": str(tmp_path / "thrift")}
        give(storm, blobs / "from_blobs.py", "from-thrift", "--interpreter", "../env/bin/python3", **folder)

    def found(name: str) -> dict[str, str]:
        path = tmp_path / name / "found"
        content: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return content

    data = storm.home / "data"
    for name in ways:
        wait_for(lambda name=name: found(name), f"the topology by {name} says what it finds")
        assert Path(found(name)["python"]).resolve().is_relative_to(data)  # the archive's own, not this machine's
        assert Path(found(name)["library"]).resolve().is_relative_to(data)
        assert (found(name)["tool"], found(name)["table"]) == ("hello\n", "one")

    # changeChildCWD(false): the child runs in its worker's directory, where the blobs are, code included.
    for name in sorted({"flux", "java"} & set(ways)):
        directory = Path(found(name)["directory"])
        assert directory.parent == data / "supervisor-1" / "workers"
        assert {"app", "env", "resources", "table", "tools"} <= set(os.listdir(directory))
        assert Path(found(name)["code"]).resolve() == (directory / "app" / "from_blobs.py").resolve()
    # Thrift can't say that: it runs in resources/, and the blobs are above.
    if "thrift" in ways:
        assert Path(found("thrift")["directory"]).name == "resources"

    workers = [found(name)["worker"] for name in ways]
    (blobs / "table").write_text("two")
    shown = multilang("blob", "put", "table", "table", "--nimbus", storm.address, cwd=blobs)
    assert shown.stdout.endswith("updated\n")
    for name in ways:
        wait_for(lambda name=name: found(name)["table"] == "two", f"the topology by {name} finds the new table")
    assert [found(name)["worker"] for name in ways] == workers


@pytest.fixture
def programs(storm: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A project whose components are programs: in a jar's resources/ and in blobs, a Python among them, as Storm's page has it."""
    folder = tmp_path / "project"
    (folder / "resources" / "bin").mkdir(parents=True)
    shutil.copy(SHIPPED / "programs.py", folder)
    spout = (ROOT / "tests" / "local" / "plain_spout.py").read_text()
    here = "import os, sys\nassert 'newPython' in os.path.realpath(sys.executable), sys.executable\n"
    (folder / "shell_spout.py").write_text(f"{here}assert os.path.isdir('resources'), os.getcwd()\n{spout}")
    bolt = (ROOT / "tests" / "local" / "plain_bolt.py").read_text()
    in_resources = "import os\nassert os.path.isdir('bin'), os.getcwd()\n"
    in_worker = "import os\nassert os.path.isdir('resources') and os.path.isdir('newPython'), os.getcwd()\n"
    (folder / "resources" / "inside.py").write_text(in_resources + bolt)
    (folder / "outside.py").write_text(in_worker + bolt)
    (folder / "resources" / "bin" / "own").write_text(f"#!/usr/bin/env python3\n{in_worker}{bolt}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "newPython"], check=True, timeout=LIMIT)
    assert multilang("archive", "newPython", "-o", "newPython.tgz", cwd=folder).returncode == 0
    blobs = ("newPython.tgz", "shell_spout.py")
    for key in blobs:
        assert multilang("blob", "put", key, key, "--nimbus", storm.address, cwd=folder).returncode == 0
    yield folder
    with storm.client() as client:
        for key in blobs:
            delete_blob(client, key)


@soak_only
def test_programs_start_where_they_say_by_flux_by_java_and_by_thrift(
    storm: Cluster, programs: Path, nimbus: Nimbus
) -> None:
    def told(name: str, *options: str) -> str:
        shown = multilang("flux", "programs.py", *options, cwd=programs, TEST_NAME=name)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.count("changeChildCWD") == 3
        return shown.stdout

    run_flux(storm, programs, "programs.py", told("by-flux"))
    run_java(storm, programs, "programs.py", told("by-java", "--java"))
    give(storm, programs / "programs.py", "by-thrift")
    for name in ("by-flux", "by-java", "by-thrift"):
        wait_for(lambda name=name: acked(nimbus, name, "numbers") == (10, 0), f"{name}: ten numbers are acked by all")


def test_the_class_of_a_topology_with_direct_streams_compiles(storm: Cluster, tmp_path: Path) -> None:
    shown = multilang("flux", "--java", ROOT / "examples" / "direct_balance.py", "--env", "env.tgz")
    compiled(storm, tmp_path, shown.stdout)
    assert (tmp_path / "classes" / "DirectBalanceTopology.class").exists()
