"""Runs a library's own test suite with the layer under the library's name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.compat.originals import needed, sdist

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROVIDED = "from multilang.compat.names import provide\nprovide()\n"


def results(name: str, version: str, folder: Path) -> dict[str, str]:
    """Return the outcome of each test of the sdist: passed, failed, error or skipped."""
    tests = folder / "test"
    shutil.copytree(sdist(name, version) / "test", tests)  # without the library, which would be found first
    (folder / "conftest.py").write_text(PROVIDED)
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "report.xml"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            f"--junitxml={report}",
            "test",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(needed())]), "PYTEST_ADDOPTS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert report.exists(), done.stdout + done.stderr
    print(done.stdout)  # shown when the test fails
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        inside = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        module, _, kind = (case.get("classname") or "").rpartition(".")
        kind = kind if kind[:1].isupper() else ""
        path = f"{module}::{kind}" if kind else case.get("classname") or ""
        label = f"{path}::{case.get('name')}" if case.get("classname") else str(case.get("name"))
        found[label] = {"failure": "failed", "error": "error", "skipped": "skipped"}[inside[0]] if inside else "passed"
    return found


def left_out(file: str) -> dict[str, str]:
    """Return the tests that need not pass, each with the reason, as a file beside this one lists them."""
    listed = {}
    for line in (HERE / file).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition("  ")
            assert reason.strip(), f"{file}: {test} has no reason"
            listed[test] = reason.strip()
    return listed


def check(found: dict[str, str], listed: dict[str, str]) -> None:
    """Check that all tests passed but those that are listed, and that these did not."""
    assert listed.keys() <= found.keys(), f"no such tests: {listed.keys() - found.keys()}"
    assert {test: said for test, said in found.items() if said != "passed" and test not in listed} == {}
    assert [test for test in listed if found[test] == "passed"] == []
