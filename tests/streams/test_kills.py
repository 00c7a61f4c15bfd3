"""Streams under seeded faults: tasks, ackers and sources die at any event, messages are late."""

from __future__ import annotations

from collections import Counter

import pytest

from multilang import LocalCluster
from multilang.local import Faults
from multilang.state.providers import provider_of
from multilang.streams import StreamBuilder
from tests.soak import SOAK
from tests.state.topologies import stored

SEEDS = range(300 if SOAK else 4)
WORDS = [f"w{n % 7}" for n in range(300)]
each_seed = pytest.mark.parametrize("seed", SEEDS)


def counting(conf=None, *, state=True):
    s = StreamBuilder(state=state)
    words = s.source([WORDS[n : n + 3] for n in range(0, len(WORDS), 3)], parallelism=2).flat_map(list)
    counts = words.key_by(str).count()
    # of the counts' own changes: one exchange more, behind a component that combines and has a state
    counts.map(lambda pair: pair[0]).key_by(len).reduce(max, name="last")
    return s.build("kills", conf)


@pytest.fixture
def conf(tmp_path):
    return {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
        "topology.message.timeout.secs": 5,
        "topology.max.spout.pending": 8,  # a few at once: many checkpoints in little work
    }


@each_seed
def test_exact_alignment_counts_each_element_once(conf, seed) -> None:
    faults = Faults(crash=0.02, acker_crash=0.0003, late=0.0005, spouts=True, limit=20)
    topology = counting({"multilang.state.alignment": "exact"}, state=False)
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(topology)
        run.wait(timeout=24 * 3600)
        assert run.faults_so_far
    assert {key: value[0] for key, value in stored(provider_of(conf), "count", 2).items()} == Counter(WORDS)


@each_seed
def test_at_least_once_loses_no_element(conf, seed) -> None:
    faults = Faults(crash=0.02, acker_crash=0.0003, late=0.0005, limit=20)
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(counting())
        run.wait(timeout=24 * 3600)
        assert run.faults_so_far
    counted = {key: value[0] for key, value in stored(provider_of(conf), "count", 2).items()}
    assert all(counted[word] >= count for word, count in Counter(WORDS).items()), counted
