"""The protocol as a type checker sees it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

pytest.importorskip("mypy", reason="mypy is part of the extra dev")


def errors_of(name: str, cache: Path) -> dict[int, list[str]]:
    """mypy's errors by line."""
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(cache), str(HERE / name)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert found.stderr == ""
    errors: dict[int, list[str]] = {}
    for line, code in re.findall(rf"{name}:(\d+): error: .*\[([\w-]+)\]", found.stdout):
        errors.setdefault(int(line), []).append(code)
    assert bool(errors) == bool(found.returncode), found.stdout
    return errors


def test_a_strictly_typed_program_can_use_the_protocol(tmp_path: Path) -> None:
    assert errors_of("typed_use.py", tmp_path) == {}


def test_wrong_use_is_noticed_by_the_checker(tmp_path: Path) -> None:
    lines = (HERE / "wrong_use.py").read_text("utf-8").splitlines()
    meant = {n: [line.split("# E: ")[1]] for n, line in enumerate(lines, 1) if "# E: " in line}
    assert errors_of("wrong_use.py", tmp_path) == meant
