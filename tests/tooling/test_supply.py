"""All that CI installs is named with its hashes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "scripts" / "lock.txt").read_text()
ENTRY = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)[^\n]*\n((?: +--hash=sha256:[0-9a-f]{64}[^\n]*\n)+)", re.MULTILINE)
NOT_IN_CI = {"kerberos", "supply"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_everything_that_ci_installs_has_a_version_and_hashes() -> None:
    names = [line for line in LOCK.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(names) == len(ENTRY.findall(LOCK)) > 50
    assert "://" not in LOCK  # no index of one machine


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is in Python 3.11")
def test_every_package_of_an_extra_is_in_the_lock_file() -> None:
    """A failure means that a package came into pyproject.toml: run scripts/lock."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for name, lines in project["optional-dependencies"].items() if name not in NOT_IN_CI]
    wanted = {
        normal(re.split(r"[\[<>=~! ;]", line)[0]) for lines in [project["dependencies"], *extras] for line in lines
    }
    locked = {normal(name) for name, _, _ in ENTRY.findall(LOCK)}
    assert wanted - {"storm-multilang"} <= locked
