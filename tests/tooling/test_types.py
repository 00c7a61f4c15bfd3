"""The public classes as a type checker sees them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patient

PROGRAMS = Path(__file__).parent / "types"
ROOT = PROGRAMS.parents[2]

pytest.importorskip("mypy", reason="mypy is part of the extra dev")


def errors_of(name: str, cache: Path) -> dict[int, list[str]]:
    """mypy's errors by line."""
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(cache), str(PROGRAMS / name)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patient(150),
    )
    assert found.stderr == ""
    errors: dict[int, list[str]] = {}
    for line, code in re.findall(rf"{name}:(\d+): error: .*\[([\w-]+)\]", found.stdout):
        errors.setdefault(int(line), []).append(code)
    assert bool(errors) == bool(found.returncode), found.stdout
    return errors


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checker's memory of what the programs import."""
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize("name", ["protocol_used.py", "components_used.py", "streams_used.py"])
def test_a_strictly_typed_program_can_use_them(name: str, cache: Path) -> None:
    assert errors_of(name, cache) == {}


@pytest.mark.parametrize("name", ["protocol_misused.py", "components_misused.py", "streams_misused.py"])
def test_wrong_use_is_noticed_by_the_checker(name: str, cache: Path) -> None:
    lines = (PROGRAMS / name).read_text("utf-8").splitlines()
    meant = {n: [line.split("# E: ")[1]] for n, line in enumerate(lines, 1) if "# E: " in line}
    assert errors_of(name, cache) == meant
