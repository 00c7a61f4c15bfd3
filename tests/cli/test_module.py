"""``python -m multilang`` is the command."""

from __future__ import annotations

import subprocess
import sys


def test_python_m_multilang_does_what_multilang_does():
    shown = subprocess.run(
        [sys.executable, "-m", "multilang", "run", "examples/nowhere.py"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 2
    assert "nowhere.py" in shown.stderr
    assert "Traceback" not in shown.stderr
    helped = subprocess.run([sys.executable, "-m", "multilang", "--help"], capture_output=True, text=True, check=True)
    assert helped.stdout.startswith("Usage: multilang [OPTIONS]")
