"""Windows on a real Storm: the answer of their definition, and of the embedded cluster, though a worker is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from multilang.local import LocalCluster
from multilang.topology import load_topology
from tests.cli.command import ROOT
from tests.patience import patient
from tests.servers import RedisServer, running
from tests.soak import SOAK, soak_only
from tests.storm.conftest import SHIPPED, give, wait_for, workers
from tests.windowing import every

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

KILLS = 4 if SOAK else 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's folder with the topologies."""
    shutil.copy(SHIPPED / "windows.py", tmp_path)
    parts = tmp_path / "tests" / "windowing"
    parts.mkdir(parents=True)
    for name in ("every", "reference", "topologies"):
        shutil.copy(ROOT / "tests" / "windowing" / f"{name}.py", parts)
    return tmp_path


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    own = tmp_path / "redis"
    own.mkdir()
    yield from running(RedisServer, own, "redis-server")


def submit(storm: Cluster, folder: Path, name: str, conf: dict[str, Any]) -> Path:
    """Submit one of the topologies, and return the file of its rows."""
    (folder / f"on_storm_{name}.py").write_text(f"from windows import {name} as topology\n")
    rows = folder / f"{name}.rows"
    conf = {"test.rows": str(rows), **conf}
    give(storm, folder / f"on_storm_{name}.py", name, "--interpreter", sys.executable, **conf)
    return rows


def read(rows: Path) -> dict[tuple[str, str], list[list[Any]]]:
    """Return the rows by component and stream."""
    found: dict[tuple[str, str], list[list[Any]]] = {}
    lines = rows.read_text().split("\n")[:-1] if rows.exists() else []
    for component, stream, values in map(json.loads, lines):
        found.setdefault((component, stream), []).append(values)
    return found


def windows(rows: Path, expected: dict[str, Counter[Any]]) -> dict[str, Counter[Any]]:
    found = read(rows)
    return {name: every.given(found.get((name, "default"), ())) for name in expected}


def missing(rows: Path, expected: dict[str, Counter[Any]]) -> dict[str, int]:
    """Return how many windows of each bolt are not there yet."""
    found = windows(rows, expected)
    left = {name: len(due.keys() - found[name].keys()) for name, due in expected.items()}
    return {name: count for name, count in left.items() if count}


def test_every_kind_of_windows_gives_the_answer_of_the_embedded_cluster(
    storm: Cluster, nimbus: Nimbus, folder: Path
) -> None:
    events = 1000
    with LocalCluster("inprocess", {"test.events": events, "test.rows": str(folder / "embedded.rows")}) as cluster:
        expected = every.answer(events)
        run = cluster.submit(load_topology(f"{folder}/windows.py:plain"))
        run.wait(lambda _: not missing(folder / "embedded.rows", expected), timeout=patient(240))
    rows = submit(storm, folder, "plain", {"test.events": events, "topology.workers": 2})
    wait_for(lambda: not missing(rows, expected), "all windows are there")
    assert windows(rows, expected) == windows(folder / "embedded.rows", expected) == expected


def test_late_tuples_go_to_their_stream_and_windows_by_the_clock_have_each_tuple(
    storm: Cluster, nimbus: Nimbus, folder: Path
) -> None:
    rows = submit(storm, folder, "late", {"test.events": 0})
    numbers = [[n] for n in range(1, 8)]  # the last tuple stays in its window
    wait_for(lambda: sorted(read(rows).get(("late", "acks"), ())) == numbers, "all tuples but the last one are acked")
    wait_for(lambda: sum(row[0] for row in read(rows)["clock", "default"]) == 8, "the clock's windows have all")
    found = read(rows)
    assert found["shows", "default"] == [[10, [1]], [20, [2]], [30, [3]], [1_000_000, [4, 7]]]
    late = [row[0] for row in found["shows", "late"]]
    assert [(each["component"], each["stream"], each["fields"], each["values"]) for each in late] == [
        ("late", "default", ["n", "ts"], [5, 9]),
        ("late", "default", ["n", "ts"], [6, 999_999]),
    ]


@soak_only
@pytest.mark.timeout(600 + 150 * KILLS)
def test_windows_in_a_state_are_exact_though_a_worker_is_killed(
    storm: Cluster, nimbus: Nimbus, redis: RedisServer, folder: Path
) -> None:
    events = 10_000 * KILLS
    expected = every.answer(events)
    conf = {
        **redis.conf,
        "test.events": events,
        "topology.workers": 2,
        "topology.max.spout.pending": 500,
        "topology.message.timeout.secs": 15,
        "topology.state.checkpoint.interval.ms": 500,
    }
    rows = submit(storm, folder, "stateful", conf)
    total = sum(map(len, expected.values()))
    for kill in range(1, KILLS + 1):
        enough = total - total * kill // (KILLS + 3)
        wait_for(lambda enough=enough: sum(missing(rows, expected).values()) < enough, "some windows are there")
        victim = random.choice(workers(storm))
        os.kill(victim, signal.SIGKILL)
        assert missing(rows, expected), "it was killed in the middle"
        wait_for(lambda victim=victim: len(set(workers(storm)) - {victim}) == 2, "there are two workers again")
    wait_for(lambda: not missing(rows, expected), "all windows are there")
    found = windows(rows, expected)
    assert {name: each.keys() for name, each in found.items()} == {name: each.keys() for name, each in expected.items()}
