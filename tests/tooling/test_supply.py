"""All that CI installs is named with its hashes, and nothing is left to the day on which it is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.soak import soak_only

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "scripts" / "lock.txt"
ENTRY = re.compile(r"^(\S+==[^\n]*?) *\\\n((?: +--hash=sha256:[0-9a-f]{64}[^\n]*\n)+)", re.MULTILINE)
NOT_IN_CI = {"kerberos", "supply"}
PROJECT = "storm-multilang"


class Locked(NamedTuple):
    """The entry of the lock file for one package, on this machine."""

    version: str
    extras: set[str]


def locked() -> dict[str, Locked]:
    found = {}
    for text, _ in ENTRY.findall(LOCK.read_text()):
        entry = Requirement(text)
        if entry.marker is None or entry.marker.evaluate():
            [version] = entry.specifier
            found[canonicalize_name(entry.name)] = Locked(version.version, entry.extras)
    return found


def test_everything_that_ci_installs_has_a_version_and_hashes() -> None:
    text = LOCK.read_text()
    names = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(names) == len(ENTRY.findall(text)) > 50
    assert "://" not in text  # no index of one machine


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is in Python 3.11")
def test_every_package_of_an_extra_is_in_the_lock_file() -> None:
    """A failure means that a package came into pyproject.toml: run scripts/lock."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for name, lines in project["optional-dependencies"].items() if name not in NOT_IN_CI]
    wanted = [Requirement(line) for lines in [project["dependencies"], *extras] for line in lines]
    assert missing("the project", wanted, set()) == []


def missing(owner: str, wanted: list[Requirement], extras: set[str]) -> list[str]:
    """Return what a package with these extras requires and the lock file does not have in a fitting version, with the same extras."""
    lock = locked()
    found = []
    for each in wanted:
        if each.marker is not None and not any(each.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            continue
        have = lock.get(canonicalize_name(each.name))
        fits = (
            have is not None and each.specifier.contains(have.version, prereleases=True) and each.extras <= have.extras
        )
        if not fits and canonicalize_name(each.name) != PROJECT:
            found.append(f"{owner} requires {each}, the lock file has {have}")
    return found


def test_whatever_a_locked_package_requires_is_in_the_lock_file_with_the_same_extras() -> None:
    """A failure means that pip would look for the newest version, which is another one tomorrow: run scripts/lock."""
    found, unlike = [], []
    for name, entry in locked().items():
        package = metadata.distribution(name)
        if package.version == entry.version:
            found += missing(name, [Requirement(line) for line in package.requires or ()], entry.extras)
        else:
            unlike.append(f"{name} {package.version}, not {entry.version}")
    assert found == []
    assert unlike == [] or not os.environ.get("CI")


OLDEST, NEWEST = "pip==21.2.3", "pip"  # Python 3.10.0 brought the first


@soak_only
@pytest.mark.timeout(3600)  # it fetches and builds all that the tests need
@pytest.mark.parametrize("pip", [OLDEST, NEWEST])
def test_the_lock_file_is_installed_from_nothing_by_pip_itself(tmp_path: Path, pip: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", pip], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--require-hashes", "-r", LOCK]
    shown = subprocess.run(install, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    subprocess.run([python, "-m", "pip", "check"], check=True)


SETUP = """
import setuptools
setuptools.setup(name="built", version=setuptools.__version__.split(".post")[0])
"""


def a_package(path: Path) -> Path:
    """Write the source of a package whose version is that of the setuptools that builds it."""
    path.mkdir()
    (path / "setup.py").write_text(SETUP)
    (path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=40"]\nbuild-backend = "setuptools.build_meta"\n'
    )
    return path


def test_what_tests_build_is_built_by_the_locked_setuptools(tmp_path: Path) -> None:
    """pip fetched the newest one for each build, so that its release could break CI."""
    source = a_package(tmp_path / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, source]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    [wheel] = tmp_path.glob("built-*.whl")
    assert wheel.name.split("-")[1] == metadata.version("setuptools")
    if os.environ.get("CI"):
        assert metadata.version("setuptools") == locked()["setuptools"].version


@soak_only
@pytest.mark.timeout(600)  # it fetches two versions of pip, and setuptools
@pytest.mark.parametrize("pip", [OLDEST, NEWEST])
def test_what_scripts_build_is_built_by_the_locked_setuptools_with_any_pip(tmp_path: Path, pip: str) -> None:
    if pip == OLDEST and sys.version_info >= (3, 12):
        pytest.skip("this pip does not start with Python 3.12")
    source, lock, python = (
        a_package(tmp_path / "source"),
        tmp_path / "scripts" / "lock.txt",
        tmp_path / "venv/bin/python",
    )
    lock.parent.mkdir()
    lock.write_text("setuptools==78.1.1 \\\n    --hash=sha256:0\n")  # neither the newest nor that of this environment
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", pip], check=True)
    build = f"""
        . '{ROOT}/scripts/environment.sh'
        root={tmp_path} venv={tmp_path}/pinned
        pin_build
        '{python}' -m pip wheel --quiet --no-deps --wheel-dir '{tmp_path}' '{source}'
    """
    env = {name: value for name, value in os.environ.items() if name != "PIP_NO_BUILD_ISOLATION"}
    shown = subprocess.run(["bash", "-euc", build], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    [wheel] = tmp_path.glob("built-*.whl")
    assert wheel.name.split("-")[1] == "78.1.1"
