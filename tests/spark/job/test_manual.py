"""The page on Spark does what it says of topologies as jobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
