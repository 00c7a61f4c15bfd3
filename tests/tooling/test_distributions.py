"""The source distribution and the wheel: both are whole, and the wheel runs where the source tree is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from multilang import __version__
from tests.patience import patient

ROOT = Path(__file__).parents[2]
LIMIT = patient(170)  # seconds


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(files, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    shown = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source],
        capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return out


def test_the_source_distribution_has_what_a_packager_needs(built: Path) -> None:
    [path] = built.glob("*.tar.gz")
    assert path.name == f"storm_multilang-{__version__}.tar.gz"
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "pyproject.toml",
        "docs/command.md",
        "examples/word_count.py",
    } <= names


def test_the_wheel_has_the_packages_with_their_data_and_nothing_else(built: Path) -> None:
    [path] = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")}
    tracked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "multilang", "spark_bridge"]
    listed = subprocess.run(tracked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert names == {name for name in listed if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with the wheel, and what it needs, copied from this one."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    [wheel] = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*install, wheel], check=True, timeout=LIMIT)
    [site] = folder.glob("lib/python3.*/site-packages")
    for name in needed("storm-multilang", {"cli"}) - {"storm-multilang"}:
        for file in metadata.files(name) or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file.locate(), site / file)
    return folder / "bin"


def needed(name: str, extras: set[str]) -> set[str]:
    """The distributions that one needs with some of its extras."""
    found = {name}
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in ("", *extras)):
            found |= needed(requirement.name, set(requirement.extras)) if requirement.name not in found else set()
    return found


def run(program: Path, *arguments: object, cwd: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MULTILANG", "COVERAGE"))}
    shown = subprocess.run(
        [program, *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, timeout=LIMIT, env={**clean, "MULTILANG_STATE_HOME": str(cwd)},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return shown.stdout


def test_the_installed_wheel_runs_the_demo_and_a_new_project(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import multilang; print(multilang.__file__)", cwd=tmp_path)
    assert where.startswith(str(installed.parent))
    shutil.copy2(ROOT / "examples" / "word_count.py", tmp_path)
    (tmp_path / "book.txt").write_text("the cow jumped over the moon\n" * 50)
    shown = run(
        installed / "multilang",
        "run",
        "word_count.py",
        "--input",
        "book.txt",
        "--top",
        "count:word:count",
        cwd=tmp_path,
    )
    assert "the       100" in shown
    run(installed / "multilang", "new", "clicks", cwd=tmp_path)
    shown = run(installed / "multilang", "run", "-c", "clicks.visits=20", cwd=tmp_path / "clicks")
    assert "20 " in shown
    run(installed / "multilang", "package", "word_count.py", "-o", "words.jar", cwd=tmp_path)
    assert (tmp_path / "words.jar").stat().st_size > 100_000
