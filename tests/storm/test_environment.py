"""Components run with a Python, with code and with files from the blob store, in the worker's directory and beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.blobs import delete_blob, list_blobs
from multilang.shipping.cluster.artifacts import java
from tests.cli.command import multilang
from tests.storm.conftest import LIMIT, SHIPPED, give, maven, wait_for

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


def give_to_flux(storm: Cluster, project: Path, folder: Path) -> None:
    """As `storm jar from_blobs.jar org.apache.storm.flux.Flux --remote from_blobs.yaml` does."""
    flux = maven("org.apache.storm", "flux-core", plugin="2.10")  # its pom names a parent that is not on Maven Central
    shown = multilang("package", "from_blobs.py", "--add-jar", flux, "-o", "from_blobs.jar", cwd=project)
    assert shown.returncode == 0, shown.stderr
    where = ("--env", "env.tgz", "--app", "app.tgz", "-o", "from_blobs.yaml")
    shown = multilang("flux", "from_blobs.py", *where, cwd=project, TEST_FOLDER=str(folder))
    assert shown.returncode == 0, shown.stderr
    assert "changeChildCWD" in (project / "from_blobs.yaml").read_text()
    subprocess.run(
        [
            *(java() or "java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-Dstorm.jar=from_blobs.jar", f"-Dstorm.home={storm.home}", "-Dstorm.options=", "-Dstorm.conf.file="),
            *("-Dstorm.dependency.jars=", "-Dstorm.dependency.artifacts={}"),
            *("-cp", f"{storm.home}/lib-worker/*:from_blobs.jar:{storm.conf_folder}"),
            *("org.apache.storm.flux.Flux", "--no-splash", "--no-detail", "--remote", "from_blobs.yaml"),
        ],
        cwd=project,
        check=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def test_an_environment_from_the_blob_store_by_flux_and_by_thrift(
    storm: Cluster, blobs: Path, nimbus: Nimbus, tmp_path: Path
) -> None:
    for name in ("flux", "thrift"):
        (tmp_path / name).mkdir()
    give_to_flux(storm, blobs, tmp_path / "flux")
    folder = {"test.folder": str(tmp_path / "thrift")}
    give(storm, blobs / "from_blobs.py", "from-thrift", "--interpreter", "../env/bin/python3", **folder)

    def found(name: str) -> dict[str, str]:
        path = tmp_path / name / "found"
        content: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return content

    data = storm.home / "data"
    for name in ("flux", "thrift"):
        wait_for(lambda name=name: found(name), f"the topology by {name} says what it finds")
        assert Path(found(name)["python"]).resolve().is_relative_to(data)  # the archive's own, not this machine's
        assert Path(found(name)["library"]).resolve().is_relative_to(data)
        assert (found(name)["tool"], found(name)["table"]) == ("hello\n", "one")

    # changeChildCWD(false): the child runs in its worker's directory, where the blobs are, code included.
    directory = Path(found("flux")["directory"])
    assert directory.parent == data / "supervisor-1" / "workers"
    assert {"app", "env", "resources", "table", "tools"} <= set(os.listdir(directory))
    assert Path(found("flux")["code"]).resolve() == (directory / "app" / "from_blobs.py").resolve()
    # Thrift can't say that: it runs in resources/, and the blobs are above.
    assert Path(found("thrift")["directory"]).name == "resources"

    workers = [found(name)["worker"] for name in ("flux", "thrift")]
    (blobs / "table").write_text("two")
    shown = multilang("blob", "put", "table", "table", "--nimbus", storm.address, cwd=blobs)
    assert shown.stdout.endswith("updated\n")
    for name in ("flux", "thrift"):
        wait_for(lambda name=name: found(name)["table"] == "two", f"the topology by {name} finds the new table")
    assert [found(name)["worker"] for name in ("flux", "thrift")] == workers
