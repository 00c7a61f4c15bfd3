"""States in an SQLite file: how a topology begins and ends with a file that can't be used. The file itself: tests/store."""

from __future__ import annotations

import gc
import os
import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from multilang.local import LocalCluster, LocalClusterError, TaskStartError
from multilang.state import StateError
from multilang.state.providers import provider_of
from multilang.store import sqlite
from tests.patience import patient
from tests.state.conftest import conf_of, opened
from tests.state.topologies import topology


def test_a_torn_file_is_reported_before_any_task_is_started(tmp_path):
    conf = conf_of("sqlite", None, tmp_path)
    found = provider_of(conf)
    state = opened(found, "count-0")
    for n in range(5000):
        state.put(f"key {n}", "x" * 40)
    state.commit()
    state.close()
    found.close()
    path = tmp_path / "state.sqlite"
    path.write_bytes(path.read_bytes()[:-5000])
    with LocalCluster(conf=conf) as cluster, pytest.raises(TaskStartError, match="is damaged"):
        cluster.submit(topology)


@pytest.mark.parametrize("left", [b"", b"not a database " * 5000])
@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_file_that_is_emptied_or_overwritten_ends_its_topology(mode, left, tmp_path):
    path = tmp_path / "state.sqlite"
    conf = {
        **conf_of("sqlite", None, tmp_path),
        "topology.state.checkpoint.interval.ms": 50,
        "topology.max.spout.pending": 100,
        "test.sentences": 10**9,
    }
    with LocalCluster(mode, conf=conf) as cluster:
        run = cluster.submit(topology)
        run.wait(lambda run: run.counters["sentences"].acked > 100, timeout=patient(60))
        path.write_bytes(left)
        with pytest.raises(
            LocalClusterError, match=r"state\.sqlite (is damaged|was deleted, renamed, emptied or replaced)"
        ):
            run.wait(lambda run: False, timeout=patient(120))


def test_a_value_that_sqlite_does_not_take_is_refused_where_it_is_put(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite.SqliteStore, "largest", 100_000)
    found = provider_of(conf_of("sqlite", None, tmp_path))
    state = opened(found, "count-0")
    for value in ("x" * 100_000, {"deep": "é" * 60_000}):
        with pytest.raises(ValueError, match=r"value of 'large' in the state of 'count-0' has [\d,]+ bytes.*100,000"):
            state.put("large", value)
    state.put("small", "x" * 90_000)
    state.prepare_commit(2)
    state.commit(2)
    assert state.get("small") == "x" * 90_000
    state.close()
    found.close()


def test_a_limit_on_open_files_is_reported_with_what_to_do_wherever_it_is_hit(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "WAIT_SECS", 0.5)
    conf = {"topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")}, "test.sentences": 100}

    def run() -> None:
        with LocalCluster("inprocess", conf=conf) as cluster:
            cluster.submit(topology).wait(timeout=patient(60))

    def of_run() -> list[str]:  # what other tests left may open and close others meanwhile
        links = (Path("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
        return [file for link in links if link.is_symlink() and (file := os.readlink(link)).startswith(str(tmp_path))]

    run()  # so that no module has to be imported later
    gc.collect()  # what other tests left
    most = max(map(int, os.listdir("/proc/self/fd")))
    with ExitStack() as held:
        while (number := held.enter_context(open(os.devnull)).fileno()) < most:
            pass  # a limit is one on the numbers, of which the lowest is taken
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        told: list[str] = []
        while len(told) < 50:
            resource.setrlimit(resource.RLIMIT_NOFILE, (number + 1 + len(told), limits[1]))
            try:
                run()
                break
            except (LocalClusterError, StateError) as error:
                told.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            gc.collect()  # an error may keep what it was raised in
            assert of_run() == []
    assert 3 < len(told) < 50
    assert not [each for each in told if "ulimit -n" not in each]
