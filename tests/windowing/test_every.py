"""Every kind of windows by event time gives the answer of its definition, in the three modes, whatever dies."""

from __future__ import annotations

import pytest

from multilang.local import Faults, LocalCluster
from multilang.windowing import StatefulWindowedBolt
from tests.patience import patient
from tests.soak import SOAK
from tests.windowing import every

EVENTS = 300


def are_there(run, expected):
    return all(
        every.given(map(tuple_of, run.captured(name))).keys() >= windows.keys() for name, windows in expected.items()
    )


def tuple_of(tup):
    return tup.values


def check(run, expected, *, exactly):
    for name, windows in expected.items():
        found = every.given(map(tuple_of, run.captured(name)))
        if exactly:
            assert found == windows, name
        else:  # a window that is evaluated again says the same
            assert found.keys() == windows.keys(), name


@pytest.mark.parametrize("mode", ["simulated", "inprocess", "process"])
@pytest.mark.parametrize("topology", [every.plain, every.stateful], ids=["plain", "stateful"])
def test_each_mode_gives_the_answer(mode, topology, tmp_path):
    expected = every.answer(EVENTS)
    conf = {
        "test.events": EVENTS,
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
    }
    with LocalCluster(mode, conf, seed=1) as cluster:
        run = cluster.submit(topology, capture=[*expected])
        run.wait(lambda run: are_there(run, expected), timeout=patient(200))
        check(run, expected, exactly=True)


@pytest.mark.parametrize("seed", range(1, 101 if SOAK else 3))
def test_kills_change_nothing(tmp_path, seed):
    events = EVENTS if SOAK else EVENTS // 3
    expected = every.answer(events)
    conf = {
        "test.events": events,
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 200,
        "topology.message.timeout.secs": 20,
    }
    faults = Faults(crash=0.003, acker_crash=0.0003, late=0.0005, spouts=True, limit=20)
    topology = every.built(StatefulWindowedBolt, tasks=1, conf={"multilang.state.alignment": "exact"})
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(topology, capture=[*expected])
        run.wait(lambda run: are_there(run, expected), timeout=24 * 3600)
        run.run_for(30)
        assert run.faults_so_far
        check(run, expected, exactly=False)
