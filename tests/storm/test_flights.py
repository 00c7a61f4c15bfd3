"""The example's topology on a real Storm, from partitions that Spark's executors wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.cli.command import ROOT, multilang
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.storm.conftest import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

EXAMPLE = ROOT / "examples" / "flights"
MONTHS = "12" if SOAK else "1"
LIMIT = patient(300)  # seconds, for each of its steps


@soak_only
def test_flights_published_by_spark_are_counted_on_storm_as_by_sql(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/published"
    due = tmp_path / "due.json"
    command = [sys.executable, EXAMPLE / "flights.py", "sql", "--months", MONTHS, "--publish", url, "--json", due]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert shown.returncode == 0, shown.stderr

    shown = multilang(
        "submit", EXAMPLE / "delays.py", "--nimbus", storm.address, "--name", "flights", "--interpreter", sys.executable,
        "-c", f"multilang.source={url}", "-c", f"flights.folder={tmp_path}",
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    expected: dict[str, dict[str, list[Any]]] = json.loads(due.read_text())

    def report() -> dict[str, dict[str, list[Any]]]:
        path = tmp_path / "report.json"
        return json.loads(path.read_text()) if path.exists() else {}  # type: ignore[no-any-return]

    wait_for(lambda: report() == expected, "what Storm has counted is what SQL has", LIMIT)
    assert sum(row[2] for row in expected["carriers"].values()) > 20_000
