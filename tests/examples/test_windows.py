"""The examples of windows give what a plain look at their whole input gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from multilang.loading.modules import load_module
from multilang.local import LocalCluster
from multilang.topology import load_topology
from tests.patience import patient
from tests.windowing import reference

EXAMPLES = Path(__file__).parents[2] / "examples"
MODES = ["process", "inprocess", "simulated"]


def ran(mode, topology, capture, until, **conf):
    """Run a topology until all is there; the last tuples stay in a window."""
    with LocalCluster(mode, conf, seed=1) as cluster:
        run = cluster.submit(topology, capture=capture)
        run.wait(until, timeout=patient(100))
    return run


def sliding_sums():
    """Return what examples/sliding_sums.py emits: its sums and their averages."""
    numbers = [n * 37 % 1000 for n in range(900)]
    sums = [sum(numbers[max(0, end - 30) : end]) for end in range(10, 901, 10)]
    return sums, [sum(sums[n : n + 3]) / 3 for n in range(0, 90, 3)]


@pytest.mark.parametrize("mode", MODES)
def test_sliding_sums_are_those_of_the_last_thirty(mode):
    run = ran(
        mode,
        load_topology(f"{EXAMPLES}/sliding_sums.py"),
        ["sums", "averages"],
        lambda run: len(run.captured("averages")) == 30,
    )
    sums, averages = sliding_sums()
    assert [tup["sum"] for tup in run.captured("sums")] == sums
    assert [tup["average"] for tup in run.captured("averages")] == averages


@pytest.mark.parametrize("mode", MODES[2:])
def test_visits_written_as_streams_give_the_same_sessions_and_pages(mode):
    lines = 3000
    run = ran(
        mode,
        load_topology(f"{EXAMPLES}/stream_visits.py"),
        ["parse", "sessions", "late", "pages"],
        lambda run: run.counters["log"].acked == lines,
        **{"example.lines": lines},
    )
    late = {tuple(tup["value"]) for tup in run.captured("late")}
    visits = [tuple(line.split(" ")) for line in load_module(f"{EXAMPLES}/page_visits.py").log(lines)]
    visits = [(int(visit[0]), *visit[1:]) for visit in visits if len(visit) == 3]
    events = [reference.Event(n, 0, visit[1], visit[0]) for n, visit in enumerate(visits) if visit not in late]
    sessions = reference.sessions(events, 120_000, visits[-1][0] - 5000)
    found = sorted((tup["key"], tup["value"][1]) for tup in run.captured("sessions"))
    assert found == sorted((user, len(numbers)) for (user, _, _), numbers in sessions.items())
    counted = sum(tup["value"][1] for tup in run.captured("pages"))
    assert lines * 0.99 < counted <= len(visits) - 1  # all but those that were late


@pytest.mark.parametrize("mode", MODES)
def test_page_visits_finds_each_session_and_the_top_pages(mode):
    lines = 3000
    run = ran(
        mode,
        load_topology(f"{EXAMPLES}/page_visits.py"),
        ["parse", "sessions", "top"],
        # all lines but the last one, in a window for ever, and those that are late have been in a session and a minute
        lambda run: run.counters["log"].acked == lines,
        **{"example.lines": lines},
    )
    late, late_for_top = (
        {tuple(tup["late_tuple"]["values"]) for tup in run.captured(bolt, "late")} for bolt in ("sessions", "top")
    )
    visits = [tuple(line.split(" ")) for line in load_module(f"{EXAMPLES}/page_visits.py").log(lines)]
    assert len(run.captured("parse", "broken")) == sum(len(visit) != 3 for visit in visits) > 0
    visits = [(int(visit[0]), *visit[1:]) for visit in visits if len(visit) == 3]
    events = [reference.Event(n, 0, visit[1], visit[0]) for n, visit in enumerate(visits) if visit not in late]
    sessions = reference.sessions(events, 120_000, visits[-1][0] - 5000)
    assert {(tup["user"], tup["pages"]) for tup in run.captured("sessions")} == {
        (user, len(numbers)) for (user, _, _), numbers in sessions.items()
    }
    assert len(run.captured("sessions")) == len(sessions)
    tops = {tup["minute"]: tup["pages"] for tup in run.captured("top")}
    events = [reference.Event(n, 0, visit[2], visit[0]) for n, visit in enumerate(visits) if visit not in late_for_top]
    pages: dict[int, Counter[str]] = {}
    for (page, end), numbers in reference.timed(events, 60_000, 60_000, visits[-1][0] - 5000).items():
        pages.setdefault(end, Counter())[page] = len(numbers)
    assert tops.keys() == pages.keys()
    assert all(count == pages[end][page] for end, top in tops.items() for page, count in top)
