"""State under seeded faults: tasks, ackers and spouts die at any event, messages are late. What was counted is the input's.

MULTILANG_SEED replays a seed; a failure names its own.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from multilang.local import LocalCluster
from multilang.local.faults import Faults
from multilang.state.providers import provider_of
from tests.soak import SOAK
from tests.state.topologies import exact, stored, topology, words_of

SEEDS = 300 if SOAK else 8
SENTENCES = 150
each_seed = pytest.mark.parametrize(
    "seed", [int(os.environ["MULTILANG_SEED"])] if "MULTILANG_SEED" in os.environ else range(SEEDS)
)


@pytest.fixture
def conf(tmp_path):
    return {
        "topology.name": "stateful",
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
        "topology.message.timeout.secs": 5,
        "test.sentences": SENTENCES,
        "test.burst": 4,  # a few in each turn: many checkpoints in little work
    }


@each_seed
def test_exact_alignment_counts_each_word_once(conf, seed):
    faults = Faults(crash=0.002, acker_crash=0.0003, late=0.0005, spouts=True, limit=30)
    with LocalCluster(mode="simulated", conf=conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(exact)
        run.wait(timeout=24 * 3600)
        assert run.faults_so_far
    found = provider_of(conf)
    assert stored(found, "count", 2) == words_of(SENTENCES)
    assert sum(stored(found, "lengths", 1).values()) == sum(words_of(SENTENCES).values())


@each_seed
def test_a_recovery_that_is_quicker_than_the_pause_between_turns_is_not_the_end(conf, seed):
    """The sources had no more when all went back to what was committed; seed 78 once was over with nothing counted."""
    faults = Faults(crash=0.02, late_secs=0.01, restart_secs=0.01, limit=2)
    own = {**conf, "topology.message.timeout.secs": 1, "test.sentences": 30}
    with LocalCluster(mode="simulated", conf=own, seed=78 + seed, faults=faults) as cluster:
        cluster.submit(exact).wait(timeout=24 * 3600)
    assert stored(provider_of(conf), "count", 2) == words_of(30)


@each_seed
def test_ticks_that_come_before_the_state_hold_no_checkpoint_up(conf, seed):
    own = {**conf, "topology.tick.tuple.freq.secs": 0.05}
    with LocalCluster(mode="simulated", conf=own, seed=seed, faults=Faults(crash=0.002, limit=10)) as cluster:
        run = cluster.submit(exact)
        run.wait(timeout=24 * 3600)
        assert [str(error) for error in run.errors if "at a checkpoint" in str(error)] == []
    assert stored(provider_of(conf), "count", 2) == words_of(SENTENCES)


@each_seed
def test_at_least_once_counts_no_word_less_and_no_emission_twice(conf, seed):
    """Duplicates are bounded by what the spout emitted again: a replay is counted at most once more."""
    faults = Faults(crash=0.002, acker_crash=0.0003, late=0.0005, limit=30)
    with LocalCluster(mode="simulated", conf=conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(topology, conf={"topology.max.spout.pending": 20}, capture=["sentences"])
        run.wait(timeout=24 * 3600)
        emitted = Counter(word for tup in run.captured("sentences") for word in tup["sentence"].split())
    found = provider_of(conf)
    counted, least = stored(found, "count", 2), words_of(SENTENCES)
    assert {word: (least[word], count, emitted[word]) for word, count in counted.items() if count < least[word]} == {}
    assert {word: (least[word], count, emitted[word]) for word, count in counted.items() if count > emitted[word]} == {}


def test_the_same_seed_gives_the_same_run(conf, tmp_path):
    logs = []
    for name in ("one", "other"):
        own = {**conf, "topology.state.provider.config": {"path": str(tmp_path / name)}}
        with LocalCluster(mode="simulated", conf=own, seed=7, faults=Faults(spouts=True)) as cluster:
            run = cluster.submit(exact)
            run.wait(timeout=24 * 3600)
            logs.append(list(map(str, run.log)))
    assert logs[0] == logs[1]
