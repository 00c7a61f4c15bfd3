"""Streams on a real Storm: a word count, in all and by windows, gives what plain Python gives, and the embedded cluster."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING

from multilang.local import LocalCluster
from multilang.topology import load_topology
from tests.patience import patient
from tests.storm.conftest import SHIPPED, acked, give, wait_for
from tests.storm.shipped.stream_counts import LINES, answer

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

    Counts = tuple[Counter[str], Counter[tuple[str, int]]]


def counts(rows: Path) -> Counts:
    """Return the greatest running count of each word, and the sum of what each of its windows told."""
    totals: Counter[str] = Counter()
    windows: Counter[tuple[str, int]] = Counter()
    lines = rows.read_text().split("\n")[:-1] if rows.exists() else []
    for component, word, value in map(json.loads, lines):
        if component == "all":
            totals[word] = max(totals[word], value)
        else:
            windows[word, value[0]] += value[1]
    return totals, windows


def test_a_word_count_and_its_windows_count_as_plain_python_does(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path
) -> None:
    module = shutil.copy(SHIPPED / "stream_counts.py", tmp_path)
    embedded, rows = tmp_path / "embedded.rows", tmp_path / "rows"
    with LocalCluster("inprocess", {"test.rows": str(embedded)}) as cluster:
        run = cluster.submit(load_topology(f"{module}"))
        run.wait(lambda _: counts(embedded) == answer(), timeout=patient(60))
    give(storm, tmp_path / "stream_counts.py", "streams", "--interpreter", sys.executable, **{"test.rows": str(rows)})
    wait_for(lambda: counts(rows) == answer(), "all words are counted, and all windows have ended")
    acks = len(LINES) - 1  # the last line's words stay in their windows
    wait_for(lambda: acked(nimbus, "streams", "lines") == (acks, 0), "all lines but the last one are acked")
    assert counts(rows) == answer()
