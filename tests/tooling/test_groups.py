"""Tests that share one real Storm, or one Spark, stay in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.patience import patient

if TYPE_CHECKING:
    from pathlib import Path


def test_the_tests_of_a_group_run_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_group.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.xdist_group('one')\n"
        "@pytest.mark.parametrize('n', range(8))\n"
        "def test_it(n, worker_id):\n"
        "    open(worker_id, 'a').close()\n"
    )
    own = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup"]
    shown = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=patient(170))
    assert shown.returncode == 0, shown.stdout
    assert len(list(tmp_path.glob("gw*"))) == 1
