"""Whatever is killed, every row is processed at least once, and nothing hangs."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from spark_bridge import PartitionSpout, RDDSource, ServedSource, publish
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.spark.sources.topologies import Echo, TooMuch, through

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from multilang.local.topology import LocalTopology

ROWS = 200_000 if SOAK else 20_000
LIMIT = patient(300.0)


def child_pids(pid: int) -> list[int]:
    """All processes below one, from /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has just ended
    found = {pid}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid})


def python_workers(pid: int) -> list[int]:
    """The Python processes that Spark's executors below this process work with."""
    found = []
    for each in child_pids(pid):
        try:
            if b"pyspark.daemon" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(each)
        except OSError:
            pass
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it was quicker


def spout_pids(run: LocalTopology) -> list[int]:
    return [task.pid for task in run.tasks if task.component == "rows" and task.pid is not None]


@soak_only
def test_driver_workers_and_spouts_are_killed_and_every_row_is_processed(
    spark_programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(os.environ.get("MULTILANG_SEED", "drivers"))
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", "a secret of more than sixteen characters")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def driver() -> subprocess.Popen[str]:
        command = [sys.executable, Path(__file__).with_name("driver.py"), str(port), str(ROWS), "4"]
        with (tmp_path / "driver.log").open("a") as log:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    process = driver()
    try:
        spout = PartitionSpout(ServedSource(f"served://127.0.0.1:{port}"), fields=["value"])
        spout.save_secs = 0.1
        topology = through(spout, TooMuch, tasks=2, multilang_source_store=str(tmp_path / "kept"))
        with LocalCluster() as cluster:
            run = cluster.submit(topology, capture=["echo"])

            def processed() -> int:
                return len(run.captured("echo"))

            plan = ["worker", "spout", "driver", *draw.choices(["worker", "spout", "driver"], k=12 if SOAK else 0)]
            for number, victim in enumerate(plan):
                goal = ROWS * (number + 1) // (len(plan) + 1)
                run.wait(until=lambda _, goal=goal: processed() >= goal, timeout=LIMIT)
                if victim == "driver":
                    kill(process.pid)
                    process.communicate()
                    process = driver()
                else:
                    pids = spout_pids(run) if victim == "spout" else python_workers(process.pid)
                    if pids:
                        kill(draw.choice(pids))
            said, _ = process.communicate(timeout=LIMIT)
            rows = {tup["row"][0] for tup in run.captured("echo")}
        assert said == f"acked {ROWS}\n", (tmp_path / "driver.log").read_text()[-3000:]
        assert rows == set(range(ROWS))
    finally:
        kill(process.pid)
        process.communicate()


def test_python_workers_are_killed_and_blocks_evicted_while_a_topology_reads(spark: SparkSession) -> None:
    draw = random.Random(os.environ.get("MULTILANG_SEED", "workers"))
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    source = RDDSource(spark.sparkContext.parallelize(range(ROWS), 3), block_rows=100)
    with LocalCluster(mode="inprocess") as cluster:
        run = cluster.submit(through(PartitionSpout(source), tasks=2), capture=["echo"])
        next_blow, next_row = time.monotonic(), 0

        def blow_and_look(run: LocalTopology) -> bool:
            nonlocal next_blow, next_row
            acked = run.counters["rows"].acked
            # Some rows come between two blows, however long Spark takes to have its Python again.
            if time.monotonic() >= next_blow and acked >= next_row:
                next_blow = time.monotonic() + draw.uniform(0.05, 0.3)
                next_row = acked + draw.randrange(ROWS // 20)
                pids = python_workers(gateway.proc.pid)
                if pids and draw.random() < 0.7:
                    kill(draw.choice(pids))
                else:
                    source._blocks.unpersist()
            return acked >= ROWS

        run.wait(until=blow_and_look, timeout=LIMIT)
        run.wait(timeout=LIMIT)
        rows = sorted(tup["row"][0] for tup in run.captured("echo"))
    source.close()
    assert rows == list(range(ROWS))


keys = st.one_of(st.integers(-3, 3), st.just("the skewed one"), st.text(max_size=3))
some = st.lists(keys, max_size=5)
giant = st.builds(lambda key, n: [key] * n, keys, st.integers(50, 200))


@soak_only
@settings(max_examples=40 if SOAK else 3)
@example(parts=[[], [], []])
@example(parts=[[], ["the skewed one"] * 500, [], [1, "é"]])
@given(parts=st.lists(st.one_of(some, giant, st.just([])), min_size=1, max_size=4))
def test_no_hidden_order_matters_to_any_kind_of_source(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, parts: list[list[int | str]]
) -> None:
    rdd = spark.sparkContext.parallelize(parts, len(parts)).flatMap(lambda part: part)
    due = sorted((row for part in parts for row in part), key=repr)
    live = RDDSource(rdd, block_rows=7)
    for source in (live, publish(rdd, str(tmp_path_factory.mktemp("parts") / "rows"), group_rows=7)):
        with LocalCluster(mode="inprocess") as cluster:
            run = cluster.submit(through(PartitionSpout(source), Echo, tasks=3), capture=["echo"])
            run.wait(timeout=LIMIT)
            assert sorted((tup["row"][0] for tup in run.captured("echo")), key=repr) == due
    live.close()
