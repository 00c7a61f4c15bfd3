"""A simulated run stores nothing where the topology says: the same seed is the same run, and real runs keep what is theirs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from multilang import BasicBolt, BatchBolt, LocalCluster, TopologyBuilder
from multilang.local import Faults
from multilang.state.providers import provider_of
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from tests.state.positioned import Numbers
from tests.state.topologies import Lines, build, stored, words_of
from tests.windowing import topologies as windows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from multilang import Topology

RANDOM = re.compile(r"[0-9a-f]{16}")  # names of claims, which no seed may repeat
FAULTS = Faults(crash=0.002, late=0.001, spouts=True, limit=8)


def seen(topology: Topology, conf: dict[str, Any] | None = None) -> list[str]:
    """The events of a run."""
    with LocalCluster("simulated", seed=7, faults=FAULTS, conf=conf) as cluster:
        run = cluster.submit(topology)
        run.wait()
        assert run.faults_so_far
        return [RANDOM.sub("*", str(event)) for event in run.log]


class Take(BasicBolt):
    def process(self, tup):
        pass


class Update(BatchBolt, Committer):
    def __init__(self, place: str) -> None:
        self.counts = TransactionalMap(place)

    def initialize(self, conf, context, collector, id):
        self.words: list[str] = []

    def process(self, tup):
        self.words.append(tup["word"])

    def finish_batch(self):
        self.counts.update(self.id, {word: self.words.count(word) for word in set(self.words)})


def states(place: str) -> Topology:
    return build({"multilang.store": place, "multilang.state.alignment": "exact", "test.sentences": 30}, Lines, 2)


def a_provider(place: str) -> Topology:
    path = place.removeprefix("sqlite://")
    return build(
        {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": path},
            "topology.state.checkpoint.interval.ms": 100,
            "test.sentences": 30,
        }
    )


def no_place(place: str) -> Topology:
    return build({"test.sentences": 30})


def positions(place: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(300), parallelism=2)
    builder.set_bolt("take", Take).shuffle_grouping("numbers")
    return builder.build("numbers", {"multilang.positions": place})


def transactions(place: str) -> Topology:
    words = [[word] for word in ["the", "cow", "jumped", "over", "the", "moon"] * 20]
    builder = TransactionalTopologyBuilder("words", "words", MemoryTransactionalSpout({0: words}, ["word"], 5))
    builder.set_bolt("update", Update(place)).global_grouping("words")
    return builder.build("words", {"multilang.transactional.store": place})


def windowed(place: str) -> Topology:
    return windows.topology(1, conf={"multilang.store": place, "topology.state.checkpoint.interval.ms": 100})


@pytest.mark.parametrize("kind", [states, a_provider, no_place, positions, transactions, windowed])
def test_the_same_seed_is_the_same_run_whatever_is_stored(
    kind: Callable[[str], Topology], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    topology = kind(f"sqlite://{tmp_path}/stored.sqlite")
    assert seen(topology) == seen(topology)
    assert [*tmp_path.iterdir()] == []


def test_a_place_that_the_run_is_given_is_used(tmp_path: Path) -> None:
    given = {"multilang.store": f"sqlite://{tmp_path}/given.sqlite"}
    with LocalCluster("simulated", seed=7) as cluster:
        cluster.submit(states(f"sqlite://{tmp_path}/named.sqlite"), conf=given).wait()
    assert stored(provider_of(given), "count", 2) == words_of(30)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("named")] == []
