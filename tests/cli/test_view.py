"""The table of a run, and the lines of progress where nothing can be drawn."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from multilang.cli import view
from multilang.engine.status import ComponentStatus, RunStatus
from multilang.local import LocalCluster
from tests.local import topologies
from tests.patience import patient


@pytest.mark.parametrize("moves", [True, False])
def test_a_line_of_progress_names_what_the_run_waits_for_whether_something_moves_or_not(monkeypatch, capsys, moves):
    monkeypatch.setattr(view, "PLAIN_EVERY", 0.0)
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(topologies.passing)
        run.wait(timeout=patient(60))
        before = run.status()
    moved = tuple(replace(each, executed=each.executed + 5 * moves) for each in before.components)
    after = replace(before, components=moved)
    with view.RunView("t", "process", quiet=False) as progress:
        progress.update(before, "waiting for the first")
        progress.update(after, "waiting for bolt 'batch' (task 2): 1 tuple neither acked nor failed")
    assert capsys.readouterr().err.endswith("; waiting for bolt 'batch' (task 2): 1 tuple neither acked nor failed\n")


FAST = ComponentStatus(id="sentences", kind="spout", tasks=2, emitted=12_345, executed=0, acked=12_000, failed=3, pending=342, complete_latency_ms=15.2, latency_p99_ms=48.3, rate=1234.5, capacity=0.07)  # fmt: skip
BUSY = ComponentStatus(id="split", kind="bolt", tasks=4, emitted=98_765, executed=12_345, acked=12_300, failed=0, unfinished=45, process_latency_ms=2.31, rate=1200.0, capacity=0.97)  # fmt: skip
UNKNOWN = ComponentStatus(id="written-in-another-language", kind="bolt", tasks=1, executed=5, rate=0.2)
STATUS = RunStatus(topology="t", engine="process", state="active", seconds=10.0, components=(FAST, BUSY, UNKNOWN))


def drawn(width, *, terminal):
    screen = Console(
        file=StringIO(), width=width, force_terminal=terminal, color_system="standard" if terminal else None
    )
    screen.print(view.components_table(STATUS, screen))
    return screen.file.getvalue()


def test_a_wide_table_tells_the_capacity_and_what_is_not_known_is_a_dash():
    assert [line.rstrip() for line in drawn(140, terminal=False).splitlines()] == [
        "component                    kind   tasks  emitted  processed   acked  failed  pending  latency    p99  capacity     rate",
        "sentences                    spout      2   12,345             12,000       3      342    15 ms  48 ms        7%  1,234/s",
        "split                        bolt       4   98,765     12,345  12,300       0       45   2.3 ms      -       97%  1,200/s",
        "written-in-another-language  bolt       1        -          5       -       -        -        -      -         -      0/s",
    ]


def test_a_narrow_table_has_no_less_important_columns_and_no_line_is_broken():
    lines = [line.rstrip() for line in drawn(96, terminal=False).splitlines()]
    assert lines == [
        "component                   tasks emitted processed  acked failed pending latency    rate",
        "sentences                       2  12,345           12,000      3     342   15 ms 1,234/s",
        "split                           4  98,765    12,345 12,300      0      45  2.3 ms 1,200/s",
        "written-in-another-language     1       -         5      -      -       -       -     0/s",
    ]


def test_on_a_terminal_failures_and_the_bottleneck_stand_out():
    shown = drawn(140, terminal=True)
    assert re.search("\x1b\\[1;31m +3\x1b", shown)
    assert re.search("\x1b\\[1;33m +97%\x1b", shown)
    assert not re.search("\x1b\\[1;33m +7%", shown)
