"""The page on Spark does what it says: of topologies as jobs, and of partitions as sources."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.patience import patient
from tests.soak import soak_only

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]


def test_the_python_of_the_section_runs_from_top_to_bottom(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    section = page.partition("\n## A topology as a Spark job\n")[2].partition("\n## ")[0]
    namespace = {"__name__": "page_spark"}
    blocks = re.findall(r"^```py\n(.*?)^```", section, re.S | re.M)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/spark.md", "exec"), namespace)


@soak_only
def test_the_python_of_the_sources_is_a_program(spark_programs: None, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    section = page.partition("\n## Partitions as spout sources\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```py\n(.*?)^```", section, re.S | re.M)
    blocks = [block for block in blocks if "10.0.0.7" not in block]  # one is for another machine's address
    assert blocks
    program = tmp_path / "orders.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=patient(300)
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    totals = [line for line in ran.stdout.splitlines() if line.startswith("[")]
    assert len(totals) == 1
    for each in ("['ann', 7]", "['bob', 3]"):
        assert each in totals[0]
    assert (tmp_path / "published-orders").is_dir()
