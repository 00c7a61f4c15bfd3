"""The page on streaming queries does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.command import ROOT
from tests.patience import patient
from tests.soak import soak_only

if TYPE_CHECKING:
    from pathlib import Path


@soak_only
def test_the_python_of_the_page_runs_from_top_to_bottom(spark_programs: None, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environ = os.environ | {
        "MULTILANG_STATE_HOME": str(tmp_path / "home"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-m", "tests.spark.stream.manual", str(ROOT / "docs" / "spark-streaming.md")]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=patient(500))
    assert ran.returncode == 0, ran.stderr[-3000:]
