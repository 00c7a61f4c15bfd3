"""The original libraries, downloaded once from PyPI: their tests, and the libraries themselves. Nothing of them is committed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from multilang.shipping.cluster.artifacts import cache_folder

NEEDED = ("simplejson>=3.19,<4", "six>=1.16,<2")  # by pystorm and by its tests


def sdist(name: str, version: str) -> Path:
    """Return the unpacked source distribution."""
    return _once(f"{name}-{version}", lambda folder: _unpack(name, version, folder)) / f"{name}-{version}"


def needed() -> Path:
    """Return a folder for PYTHONPATH with the packages that the originals need."""
    folder = f"needed-py{sys.version_info[0]}.{sys.version_info[1]}"
    return _once(folder, lambda folder: _pip("install", "--no-deps", "--target", str(folder), *NEEDED))


def installed(*requirements: str) -> Path:
    """Return a folder for PYTHONPATH with packages and all that they need: a scratch environment."""
    name = "-".join(each.translate({ord(sign): "_" for sign in "=<>"}) for each in requirements)
    folder = f"{name}-py{sys.version_info[0]}.{sys.version_info[1]}"
    return _once(folder, lambda folder: _pip("install", "--target", str(folder), *requirements))


def _unpack(name: str, version: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as download:
        _pip("download", "--no-deps", "--no-binary", name, "--dest", download, f"{name}=={version}")
        (archive,) = Path(download).iterdir()
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")


def _once(name: str, make: object) -> Path:
    home = cache_folder() / "compat"
    folder = home / name
    if not folder.exists():
        home.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=home))
        try:
            make(part)  # type: ignore[operator]
            part.rename(folder)  # it appears complete or not at all
        except OSError:
            if not folder.exists():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == 0:
        return
    said = f"{' '.join(command[2:])} failed: {done.stderr.strip()[-500:]}"
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)
