"""The example of a live topology that gets its history from Spark, run as its reader does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.command import ROOT
from tests.patience import patient
from tests.soak import SOAK, soak_only

if TYPE_CHECKING:
    from pathlib import Path

MONTHS = "12" if SOAK else "2"


@soak_only
def test_history_by_spark_and_the_last_month_live_are_what_sql_says_of_all(
    spark_programs: None, tmp_path: Path
) -> None:
    program = ROOT / "examples" / "backfill" / "backfill.py"
    state = tmp_path / "totals.sqlite"
    shown = subprocess.run(
        [sys.executable, program, "--months", MONTHS, "--state", state],
        capture_output=True,
        text=True,
        timeout=patient(500),
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "the same by plain Spark SQL" in shown.stdout
    assert state.exists()
