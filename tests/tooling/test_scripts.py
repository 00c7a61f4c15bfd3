"""Setting up: what the scripts say where they can't, and that they leave alone what is done already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = f". '{ROOT}/scripts/environment.sh'; "


def bash(program: str, venv: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euc", ENVIRONMENT + program],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "MULTILANG_VENV": str(venv), **env},
    )


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """An environment in which the extras cli and test are installed, as far as the scripts can tell."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    bash("""printf '%s\\ncli test\\n' "$(fingerprint)" >"$venv/multilang-installed" """, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "script", ["scripts/demo", "scripts/test", "scripts/docs", "scripts/lint", "scripts/soak", "scripts/bom", ".ci/run"]
)
def test_scripts_are_programs_without_syntax_errors(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", path], capture_output=True, text=True).stderr == ""


def test_a_complete_environment_is_used_as_it_is(complete: Path) -> None:
    shown = bash("need_environment cli; echo ready", complete)
    assert (shown.stdout, shown.stderr, shown.returncode) == ("ready\n", "", 0)


def test_a_missing_extra_is_installed_and_a_failure_says_where_to_look(complete: Path) -> None:
    shown = bash("need_environment cli dev", complete, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert shown.returncode == 69
    assert "Installing storm-multilang with: cli dev test" in shown.stderr
    assert str(complete / "install.log") in shown.stderr


def test_builds_are_pinned_in_ci_also_where_the_environment_is_there_already(complete: Path) -> None:
    show = 'need_environment cli; echo "${PIP_CONSTRAINT:-}" "${PIP_BUILD_CONSTRAINT:-}" "${UV_BUILD_CONSTRAINT:-}"'
    none = dict.fromkeys(("CI", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT", "UV_BUILD_CONSTRAINT"), "")
    assert bash(show, complete, **none).stdout.strip() == ""
    assert bash(show, complete, **{**none, "CI": "true"}).stdout.split() == [str(complete / "build.txt")] * 3
    assert f"\n{(complete / 'build.txt').read_text().strip()} " in (ROOT / "scripts" / "lock.txt").read_text()


SETTINGS = 'has_uv && echo "$UV_DEFAULT_INDEX $UV_FIND_LINKS $SSL_CERT_FILE $UV_HTTP_TIMEOUT" || echo pip'
OF_PIP = {"INDEX_URL": "file:///mirror/simple", "FIND_LINKS": "/wheels", "CERT": "/of/us.pem", "TIMEOUT": "7"}


@pytest.mark.parametrize(
    "other",
    [{}, {"TRUSTED_HOST": "mirror"}, {"EXTRA_INDEX_URL": "file:///b"}, {"CONSTRAINT": "of-mine.txt"}],
    ids=" ".join,
)
def test_uv_is_told_where_pip_takes_packages_from_or_pip_does_all(complete: Path, other: dict[str, str]) -> None:
    (complete / "bin" / "uv").symlink_to("/bin/true")
    none = dict.fromkeys(("UV_DEFAULT_INDEX", "UV_FIND_LINKS", "SSL_CERT_FILE", "UV_HTTP_TIMEOUT"), "")
    pip = {f"PIP_{name}": value for name, value in {**OF_PIP, "DEFAULT_TIMEOUT": "7", **other}.items()}
    shown = bash(
        f"pin_build; {SETTINGS}" if not other else SETTINGS, complete, PIP_CONFIG_FILE=os.devnull, **none, **pip
    )
    assert shown.stdout == ("pip\n" if other else "file:///mirror/simple /wheels /of/us.pem 7\n")


def test_a_python_that_is_too_old_is_refused_by_name(tmp_path: Path) -> None:
    old = tmp_path / "python2"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    shown = bash("need_environment cli", tmp_path / "venv", MULTILANG_PYTHON=str(old))
    assert shown.returncode == 69
    assert f"MULTILANG_PYTHON={old} is not a Python 3.10 or newer" in shown.stderr


def test_a_relative_place_for_the_environment_is_below_the_caller_not_the_project(tmp_path: Path) -> None:
    shown = subprocess.run(
        ["bash", "-euc", ENVIRONMENT + 'echo "$venv"; echo "$root"'],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MULTILANG_VENV": "here"},
    )
    assert shown.stdout.splitlines() == [str(tmp_path / "here"), str(ROOT)]


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "scripts" / "soak", *arguments], capture_output=True, text=True)


def test_every_test_that_has_full_numbers_is_in_a_part_of_the_soak() -> None:
    listed = {line.strip() for line in soak("--list").stdout.splitlines() if line.startswith(" ")}
    asks = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "from tests.soak import" in path.read_text() or "pytest.mark.soak" in path.read_text()
    }
    assert asks <= listed | {"tests/tooling/test_scripts.py"}
    assert "handover" in soak("--list").stdout.splitlines()


def test_an_unknown_part_of_the_soak_is_refused_and_the_parts_are_named() -> None:
    shown = soak("handovers")
    assert shown.returncode == 2
    assert "no part is called 'handovers'; the parts are: " in shown.stderr
    assert " handover " in shown.stderr
