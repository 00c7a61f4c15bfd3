"""Stores and state providers of somebody's own on Spark: those that make mappings, and those that only a driver can import."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from multilang import StatefulBasicBolt
from multilang.local import LocalCluster, LocalClusterError
from multilang.settings import STORE
from multilang.state import StateError, StateProvider, WrongProviderError
from multilang.state.settings import PROVIDER
from multilang.topology.errors import TopologyError
from spark_bridge.job import run_topology
from spark_bridge.job.states import States
from spark_bridge.stream import stream_topology
from tests.patience import patient
from tests.spark.job.test_stateful import failing, sentences
from tests.spark.stream.conftest import Lines, state_of
from tests.state.topologies import SENTENCES, exact, topology, words_of
from tests.store import file_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
KINDS = ["plain_states.PlainProvider", "plain_states.LeastProvider"]


@pytest.fixture(params=KINDS, ids=[kind.rpartition(".")[2] for kind in KINDS])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    return entries(f"tests.state.{request.param}", tmp_path / "own")


def entries(kind: str, folder: Path) -> dict[str, object]:
    return {
        PROVIDER: kind,
        STORE: f"tests.store.file_store.FileStore:{folder}",
        "topology.name": "stateful",
        "topology.state.checkpoint.interval.ms": 100,
    }


def test_spark_and_the_embedded_cluster_take_turns_at_a_state_of_ones_own(spark: SparkSession, own) -> None:
    rng, done = Random(7), 0
    with LocalCluster(mode="inprocess", conf={**own, "test.sentences": 20}) as cluster:
        cluster.submit(topology).wait(timeout=patient(120))
    total = words_of(20)
    for topology_of_turn in (topology, exact):
        count = rng.randrange(20, 60)
        with run_topology(
            topology_of_turn,
            sentences(spark, done, done + count),
            spark,
            initial_state=own,
            save_state=own,
            positions={"sentences": [0, 1]} if topology_of_turn is exact else None,
        ) as result:
            assert result.acked == count
        total += words_of(done + count) - words_of(done)
        done += count
        assert state_of(own) == total
    with LocalCluster(mode="inprocess", conf={**own, "test.sentences": 20}) as cluster:
        with pytest.raises(
            LocalClusterError, match=r"stored state of 'sentences'.* multilang state rm TOPOLOGY sentences"
        ):
            cluster.submit(topology).wait(timeout=patient(120))
        cluster.submit(exact).wait(timeout=patient(120))
    assert state_of(own) == total + words_of(20)


def test_a_query_counts_each_row_once_in_a_state_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    own = entries("tests.state.plain_states.LeastProvider", tmp_path / "own")
    lines, checkpoint = Lines(tmp_path / "lines"), tmp_path / "checkpoint"
    for batch in range(2):
        lines.put([SENTENCES[n % 5] for n in range(batch * 30, batch * 30 + 30)])
        query = stream_topology(
            topology,
            {"sentences": lines.stream(spark)},
            checkpoint=str(checkpoint),
            state=own,
            trigger={"availableNow": True},
        )
        query.wait(patient(300))
        assert state_of(own) == words_of(30 * batch + 30)
        # As after a crash between the state's commit and Spark's own: the batch comes again, and is in the state already.
        os.remove(checkpoint / "commits" / str(batch))


def test_a_driver_killed_at_every_step_of_a_commit_counts_each_batch_once(tmp_path: Path) -> None:
    conf = entries("tests.state.plain_states.PlainProvider", tmp_path / "own")
    command = [sys.executable, "-m", "tests.spark.stream.killed_saves", json.dumps(conf)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = [f"{task}|{phase} {step}" for task in ("count-0", "lengths-0") for phase in ("PREPARE", "COMMIT") for step in ("write", "synced")]  # fmt: skip
    assert set(names) <= set(json.loads(done.stdout))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A store in a module that Spark's own processes can't import, and neither what lies beside it."""
    folder = tmp_path / "code"
    folder.mkdir()
    shutil.copy(file_store.__file__, folder / "own_folder_code.py")
    (folder / "own_store.py").write_text("from own_folder_code import FileStore\n\n\nclass Own(FileStore):\n    pass\n")
    monkeypatch.syspath_prepend(str(folder))
    import_module("own_store")
    return {STORE: f"own_store.Own:{tmp_path / 'own'}", "topology.name": "stateful"}


def test_the_store_goes_to_the_executors_with_the_topology(spark: SparkSession, elsewhere, tmp_path: Path) -> None:
    def imported(_):
        try:
            import_module("own_store")
        except ImportError:
            return ["not there"]
        return ["there"]

    assert spark.sparkContext.parallelize([0], 1).mapPartitions(imported).collect() == ["not there"]
    with run_topology(topology, sentences(spark, 0, 30), spark, save_state=elsewhere):
        pass
    assert state_of(elsewhere) == words_of(30)
    with run_topology(topology, sentences(spark, 30, 60), spark, initial_state=elsewhere, save_state=elsewhere):
        pass
    assert state_of(elsewhere) == words_of(60)


class Wrong(StateProvider):
    def new_state(self, namespace):
        return {}


def test_what_an_own_provider_can_not_do_is_said_before_any_job(spark: SparkSession, tmp_path: Path) -> None:
    least = entries("tests.state.plain_states.LeastProvider", tmp_path / "own")
    with pytest.raises(
        StateError, match=r"can't take the whole state at once: .*LeastProvider has no replace\(states\)"
    ):
        run_topology(topology, sentences(spark, 0, 5), spark, save_state=least)
    with pytest.raises(WrongProviderError, match=r"Wrong.new_state\('\$checkpointspout-0'\) returned {} \(dict\)"):
        run_topology(topology, sentences(spark, 0, 5), spark, save_state={PROVIDER: f"{__name__}.Wrong"})
    for conf in (least, {**least, PROVIDER: None}):
        states = States(topology, conf)
        assert states.is_local is True
        states.close()


class Undone(StatefulBasicBolt):
    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put(tup["key"], tup["n"])

    def pre_rollback(self):
        self.state = None


def test_a_hook_before_the_rollback_is_refused_as_one_before_the_commit(spark: SparkSession) -> None:
    rows = {"rows": spark.sparkContext.parallelize([("k", n) for n in range(4)], 2)}
    with pytest.raises(
        TopologyError, match=r"bolt 'fails' does something in pre_rollback.*rolled back: do it in init_state"
    ):
        run_topology(failing(Undone), rows, spark)
