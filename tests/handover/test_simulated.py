"""Random handovers in the simulated cluster: begun, stopped, killed, overlapping, woken. Whatever came of it, the counts are right.

MULTILANG_SEED replays a seed; 1,000 with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from multilang.component.errors import UnrecoverableError
from multilang.state.providers import provider_of
from multilang.transactional import OpaqueMap, TransactionalMap
from multilang.transactional.names import CURRENT, ID
from multilang.transactional.stores import open_state
from tests.handover.simulation import World, ZooKeeperWorld
from tests.handover.transactions import OpaqueWords, build, updating
from tests.soak import SOAK
from tests.state.conftest import conf_of
from tests.state.topologies import exact, stored, topology, words_of
from tests.transactional.topologies import Words, counts_of

SENTENCES = 60
SEEDS = range(1000 if SOAK else 8)
if "MULTILANG_SEED" in os.environ:
    SEEDS = range(int(os.environ["MULTILANG_SEED"]), int(os.environ["MULTILANG_SEED"]) + 1)
WORDS = 60
KINDS = ["exact sqlite", "exact redis", "at-least-once sqlite", "at-least-once redis"]


def handovers(world, topology, conf, check):
    """One life after the other, each begun while those before it run, lie stopped or are dead; check after all."""
    chance = world.chance
    for _ in range(chance.randint(1, 4)):
        run = world.begin(topology, conf)
        world.go_on(lambda run=run: run.ended, turns=int(chance.expovariate(1 / 30)))
        for each in world.runs:
            if each.ended:
                continue
            what = chance.choice(["kill", "stop", "stop", "wake", "leave"])
            if what == "kill":
                each.kill()
            else:
                each.stopped = {"stop": True, "wake": False, "leave": each.stopped}[what]
    for each in world.runs:
        if each.can_go_on and chance.random() < 0.7:
            each.stopped = True
    last = None
    while last is None or last.error is not None:  # as long as another one is in the midst of it
        last = world.begin(topology, conf)
        assert world.go_on(lambda last=last: last.ended), f"it hangs at {last.where}"
        assert last.error is None or _is_told(last.error), last.error
    assert world.go_on(lambda: not any(run.can_go_on for run in world.runs))
    counts = check()
    for each in chance.sample(world.runs, len(world.runs)):
        each.stopped = False
        if chance.random() < 0.5:
            assert world.go_on(lambda each=each: each.ended)
    assert world.go_on(lambda: all(run.ended for run in world.runs))
    print(f"at {world.now:.0f} s: {[(run.points, 'killed' if run.killed else run.error) for run in world.runs]}")
    for run in world.runs:
        assert run.error is None or _is_told(run.error), run.error
    if not any(
        run.epoch > last.epoch for run in world.runs
    ):  # else one was stopped before it claimed, and was the newest then
        assert check() == counts
    check()


def _is_told(error):
    """Return whether the run ended by the rules of ownership, and by no other failure."""
    while error is not None:
        if isinstance(error, UnrecoverableError):
            return True
        error = error.__cause__
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_states_are_right_whoever_wrote_last(seed, tmp_path, request, monkeypatch):
    kind, store = KINDS[seed % len(KINDS)].split()
    conf = {
        **conf_of(store, request, tmp_path),
        "multilang.trace": "tests.handover.simulation.at_step",
        "topology.message.timeout.secs": 5,
        "topology.max.spout.pending": 20,
        "test.sentences": SENTENCES,
        "test.burst": 4,
        "topology.state.checkpoint.interval.ms": 20,
    }
    provider = provider_of(conf)

    def check():
        counted, least = Counter(stored(provider, "count", 2)), words_of(SENTENCES)
        lengths = sum(stored(provider, "lengths", 1).values())
        if kind == "exact":
            assert counted == least
            assert lengths == least.total()
        else:
            assert not least - counted
            assert lengths >= least.total()
        return counted, lengths

    handovers(World(seed, monkeypatch), exact if kind == "exact" else topology, conf, check)
    provider.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_are_right_whoever_wrote_last(seed, tmp_path, monkeypatch):
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    transactions(seed, tmp_path, conf, World(seed, monkeypatch))


@pytest.mark.parametrize("seed", SEEDS[: 250 if SOAK else 4])
def test_transactions_in_zookeeper_are_right_whoever_wrote_last(seed, tmp_path, monkeypatch, zookeeper):
    conf = {**zookeeper.conf, "transactional.zookeeper.root": str(tmp_path)}
    with ZooKeeperWorld(seed, monkeypatch, zookeeper.port, 2.0) as world:
        state = open_state({**conf, ID: "transactional" if seed % 2 else "opaque"})
        seen = []

        def goes_on():
            seen.append(state.get_data(CURRENT))
            assert seen == sorted(seen), "a run that woke has written which transaction is the current one"

        try:
            transactions(seed, tmp_path, conf, world, goes_on)
        finally:
            state.close()


def transactions(seed, tmp_path, store, world, also=lambda: None):
    update = updating(TransactionalMap if seed % 2 else OpaqueMap, tmp_path / "maps.sqlite")
    counted = build("transactional", Words, update, 2) if seed % 2 else build("opaque", OpaqueWords, update, 1)
    conf = {
        **store,
        "multilang.trace": "tests.handover.simulation.at_step",
        "topology.max.spout.pending": 1 + seed % 3,
        "topology.message.timeout.secs": 5,
        "test.words": WORDS,
        "test.take": 5,
    }

    def check():
        counts = Counter(update.map.multi_get(counts_of(WORDS)))
        assert counts == counts_of(WORDS)
        also()
        return counts

    handovers(world, counted, conf, check)
    update.map.close()
