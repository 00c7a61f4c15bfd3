"""Runs the command as its user does: as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "multilang"
TOPOLOGIES = Path(__file__).parent / "topologies.py"
LIMIT = 170  # seconds: for a machine that is busy with other tests


def multilang(
    *arguments: object, cwd: Path = ROOT, limit: float = LIMIT, **env: str
) -> subprocess.CompletedProcess[str]:
    """The command's output and status, with its output going to pipes."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=limit,
        cwd=cwd,
        env={**os.environ, **env},
    )


def figures(*arguments: object) -> dict[str, Any]:
    """The JSON document of a run of one of the topologies beside this file; its status is in it."""
    shown = multilang("run", *arguments, "--json")
    assert shown.stdout.startswith("{"), shown.stderr
    document: dict[str, Any] = json.loads(shown.stdout)
    assert document["status"] == shown.returncode
    return document


def topology(name: str) -> str:
    """Return the argument for one of the topologies beside this file."""
    return f"{TOPOLOGIES}:{name}"
