"""A component that raises each time: the same number of restarts, and the same end, in every mode."""

from __future__ import annotations

from time import monotonic

import pytest

from multilang import LocalCluster
from multilang.local import TaskStartError
from tests.local.raising import checkpointed, dying, topologies
from tests.patience import patient

LIVES = 5


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
@pytest.mark.parametrize("name", ["Raising", "Silent"])
def test_a_spout_that_never_emits_ends_the_topology_by_name(name, mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(topologies[name])
        with pytest.raises(
            TaskStartError, match=rf"(?s)'source' \(task \d\) died {LIVES} times without emitting a tuple.*no such row"
        ):
            run.wait(timeout=patient(60))
        assert run.counters["source"].restarts == LIVES - 1


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_checkpoint_spout_that_completes_no_checkpoint_ends_the_topology_by_name(mode, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(checkpointed)
        with pytest.raises(
            TaskStartError,
            match=rf"(?s)'\$checkpointspout' \(task \d\) died {LIVES} times without completing a checkpoint.*no such row",
        ):
            run.wait(timeout=patient(60))


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_spout_that_emits_in_each_life_goes_on(mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(topologies["Emitting"])
        run.wait(lambda run: run.counters["source"].restarts > LIVES, timeout=patient(60))


def test_a_spout_that_emits_and_dies_in_one_turn_waits_before_each_start():
    with LocalCluster(mode="inprocess") as cluster:
        begun = monotonic()
        run = cluster.submit(topologies["EmittingAtOnce"])
        run.wait(lambda run: run.counters["source"].restarts > LIVES, timeout=patient(60))
        assert monotonic() - begun >= LIVES * 0.1


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_bolt_that_dies_of_each_tuple_lets_the_run_end_with_what_failed(mode):
    with LocalCluster(mode=mode, seed=1) as cluster:
        run = cluster.submit(dying)
        run.wait(timeout=patient(60))
        counters = run.counters
        assert counters["source"].failed == 3
        assert counters["bolt"].restarts >= 1
        assert counters["bolt"].acked == 0
