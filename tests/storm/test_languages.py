"""Components in other languages, on Storm's own libraries for them, beside this one."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import ROOT, multilang
from tests.storm.conftest import SHIPPED, acked, give, maven, wait_for

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


@pytest.fixture
def project(storm: Cluster, tmp_path: Path) -> Path:
    """The topology's folder, with what Storm gives to components in Python and in JavaScript."""
    if "CI" not in os.environ and shutil.which("node") is None:
        pytest.skip("there is no node here")
    folder = tmp_path / "project"
    shutil.copytree(SHIPPED, folder)
    for name in ("plain_bolt.py", "plain_spout.py"):
        shutil.copy(ROOT / "tests" / "local" / name, folder)
    libraries = {
        "storm.py": maven("org.apache.storm", "multilang-python"),
        "storm.js": maven("org.apache.storm", "multilang-javascript"),
    }
    for name, jar in libraries.items():
        with zipfile.ZipFile(jar) as archive:
            (folder / name).write_bytes(archive.read(f"resources/{name}"))
    return folder


def read(folder: Path) -> list[tuple[str, int, int]]:
    """Component, index of its task, and the first value that it emitted."""
    lines = map(json.loads, (folder / "recorded").read_text().splitlines())
    return sorted((component, index, values[0]) for component, index, values in lines)


def test_storm_py_and_storm_js_and_no_library_at_all(
    storm: Cluster, nimbus: Nimbus, project: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    files = ("--include", "storm.py", "--include", "storm.js")
    give(storm, project / "languages.py", "languages", *files, **{"test.folder": str(there)})
    shown = multilang("run", "languages.py", "-c", f"test.folder={here}", cwd=project)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    wait_for(lambda: acked(nimbus, "languages", "numbers") == (10, 0), "ten numbers are acked")
    found = read(here)
    assert [value for component, _, value in found if component == "storm_js"] == [
        value for component, _, value in found if component == "storm_py"
    ]
    assert sorted(value for component, _, value in found if component == "storm_py") == list(range(0, 20, 2))
    assert sorted(value for component, _, value in found if component == "plain") == list(range(10))
    assert read(there) == found
