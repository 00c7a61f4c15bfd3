"""The lines of progress, where nothing can be drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from multilang.cli import view
from multilang.local import LocalCluster
from tests.local import topologies


@pytest.mark.parametrize("moves", [True, False])
def test_a_line_of_progress_names_what_the_run_waits_for_whether_something_moves_or_not(monkeypatch, capsys, moves):
    monkeypatch.setattr(view, "PLAIN_EVERY", 0.0)
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(topologies.passing)
        run.wait(timeout=60)
        before = run.counters
    after = {id: replace(each, executed=each.executed + 5 * moves) for id, each in before.items()}
    with view.RunView("t", "process", quiet=False) as progress:
        progress.update(before, "waiting for the first")
        progress.update(after, "waiting for bolt 'batch' (task 2): 1 tuples neither acked nor failed")
    assert capsys.readouterr().err.endswith("; waiting for bolt 'batch' (task 2): 1 tuples neither acked nor failed\n")
