"""The example with the flights, run as its reader does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from tests.cli.command import ROOT
from tests.patience import patient
from tests.soak import SOAK, soak_only

if TYPE_CHECKING:
    from pathlib import Path

MONTHS = "12" if SOAK else "1"
LIMIT = patient(400)  # seconds
SVG = "{http://www.w3.org/2000/svg}"


@soak_only
def test_flights_are_counted_alike_whichever_way_they_come(spark_programs: None, tmp_path: Path) -> None:
    program = ROOT / "examples" / "flights" / "flights.py"
    chart, result = tmp_path / "delays.svg", tmp_path / "result.json"
    shown = subprocess.run(
        [sys.executable, program, "--months", MONTHS, "--chart", chart, "--json", result],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "the same by sql, live, published, spark" in shown.stdout
    found = json.loads(result.read_text())
    flights = int(re.sub(r"\D", "", shown.stdout.partition(" flights arrived")[0]))
    assert flights > 26_000
    for rows in found.values():
        assert sum(row[2] for row in rows.values()) == flights
    assert found["carriers"]["UA"][1] == "United Air Lines Inc."
    assert found["airports"]["SJU"][1] == "SJU"  # the table of airports does not have it
    drawn = ET.parse(chart).getroot()
    texts = ["".join(each.itertext()) for each in drawn.iter(f"{SVG}text")]
    for row in found["carriers"].values():
        assert any(f"{row[4] / row[2]:+.1f} " in text for text in texts)
        assert row[1] in texts
