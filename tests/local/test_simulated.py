from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from multilang.component import BasicBolt, Bolt
from multilang.local import Faults, LocalCluster, NotDrainedError
from multilang.testing import each_seed
from multilang.topology import TopologyBuilder
from tests.local import topologies
from tests.patience import PACE
from tests.soak import SOAK

SEEDS = 1000 if SOAK else 60
MANY = Faults(crash=0.02, acker_crash=0.01, late=0.03, limit=30)


def simulate(topology, seed, faults=None, capture=(), **conf):
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(topology, capture=capture)
        run.wait()
        return run


def test_the_same_seed_gives_the_same_run_event_by_event():
    for seed in range(10):
        one, two = (simulate(topologies.word_count, seed, MANY, ["count"], **{"test.sentences": 30}) for _ in range(2))
        assert list(map(str, one.log)) == list(map(str, two.log))
        assert len(one.log) > 300
        assert [tup.values for tup in one.captured("count")] == [tup.values for tup in two.captured("count")]


def test_different_seeds_give_different_runs():
    logs = {tuple(map(str, simulate(topologies.passing, seed).log)) for seed in range(20)}
    assert len(logs) == 20


def test_the_same_seed_gives_the_same_run_in_another_process():
    script = (
        "from tests.local.test_simulated import MANY, simulate; from tests.local import topologies\n"
        "print(*simulate(topologies.word_count, 5, MANY, **{'test.sentences': 20}).log, sep='\\n')"
    )
    root = str(Path(__file__).parent.parent.parent)
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].splitlines()) > 200


@pytest.mark.soak
def test_whatever_goes_wrong_every_sentence_is_counted_and_acked():
    happened: Counter[str] = Counter()

    def check(seed):
        run = simulate(topologies.word_count, seed, MANY, ["count"], **{"test.sentences": 20})
        counters = run.counters
        happened.update(event.what for event in run.log)
        assert counters["sentences"].pending == 0
        assert counters["sentences"].acked == 20
        assert counters["sentences"].emitted == 20 + counters["sentences"].failed
        heard = Counter(tup["word"] for tup in run.captured("count"))
        expected = Counter(word for n in range(20) for word in topologies.SENTENCES[n % 5].split())
        assert heard >= expected  # at least once

    each_seed(check, seeds=SEEDS)
    # The faults did happen, or nothing was tested.
    for what in ("crash of", "crash of acker", "late message to", "timeout of", "lost on the way to", "fail"):
        assert happened[what] > 0, what


@pytest.mark.soak
def test_a_thousand_seeds_of_a_small_topology_take_less_than_a_minute():
    start = time.process_time()
    each_seed(lambda seed: simulate(topologies.word_count, seed, Faults(), **{"test.sentences": 10}), seeds=SEEDS)
    assert time.process_time() - start < SEEDS * 0.06 * PACE


def test_spouts_die_too_when_asked_for_and_give_again_what_was_lost():
    def check(seed):
        run = simulate(topologies.passing, seed, Faults(crash=0.05, spouts=True), ["pass"], **{"test.numbers": 20})
        assert {tup["n"] for tup in run.captured("pass")} == set(range(20))

    each_seed(check, seeds=20)


def test_tuples_of_one_task_to_another_keep_their_order_whatever_happens():
    class Emits(topologies.Unreliable):
        output_fields = ["n"]

    class Keeps(BasicBolt):
        output_fields = ["n", "from", "to"]

        def process(self, tup):
            self.emit([tup["n"], tup.task, self.context.task])

    builder = TopologyBuilder()
    builder.set_spout("emits", Emits, parallelism=2)
    builder.set_bolt("keeps", Keeps, parallelism=3).all_grouping("emits")
    topology = builder.build("in-order")

    def check(seed):
        run = simulate(topology, seed, Faults(crash=0, acker_crash=0, late=0.1, limit=1000), ["keeps"])
        pairs = defaultdict(list)
        for n, source, target in (tup.values for tup in run.captured("keeps")):
            pairs[source, target].append(n)
        assert len(pairs) == 6
        for received in pairs.values():
            assert received == list(range(50))

    each_seed(check, seeds=20)


class RaceBolt(Bolt):
    """Wrong on purpose: takes it for granted that tuples of two tasks come in turns."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.last = None

    def process(self, tup):
        assert tup.task != self.last, "two in a row from one task"
        self.last = tup.task
        self.ack(tup)


def test_a_failing_seed_is_named_and_replays(monkeypatch):
    builder = TopologyBuilder()
    builder.set_spout("numbers", topologies.Numbers, parallelism=2)
    builder.set_bolt("race", RaceBolt).shuffle_grouping("numbers")
    topology = builder.build("race")

    def check(seed):
        tried.append(seed)
        with LocalCluster("simulated", {"test.numbers": 2}, seed=seed, fail_fast=True) as cluster:
            cluster.submit(topology).wait()

    tried: list[int] = []
    with pytest.raises(AssertionError, match="two in a row") as failed:
        each_seed(check, seeds=1000)
    found = re.search(r"^to replay this run alone: MULTILANG_SEED=(\d+)$", str(failed.value), re.MULTILINE)
    assert found is not None
    seed = int(found[1])
    tried.clear()
    monkeypatch.setenv("MULTILANG_SEED", str(seed))
    with pytest.raises(AssertionError, match=f"seed {seed} fails"):
        each_seed(check, seeds=1000)
    assert tried == [seed]


def test_virtual_time_costs_nothing_and_an_endless_wait_ends_with_the_seed():
    conf = {"topology.enable.message.timeouts": False, "test.numbers": 3}
    with LocalCluster("simulated", conf, seed=99) as cluster:
        run = cluster.submit(topologies.forgets_once)
        with pytest.raises(NotDrainedError, match=r"\(seed 99\) is not drained after 86400 virtual seconds"):
            run.wait()


def test_the_module_random_is_seeded_for_components_and_left_alone_for_others():
    import random

    class Draws(BasicBolt):
        output_fields = ["x"]

        def process(self, tup):
            self.emit([random.random()])

    builder = TopologyBuilder()
    builder.set_spout("numbers", topologies.Numbers)
    builder.set_bolt("draws", Draws).shuffle_grouping("numbers")
    topology = builder.build("draws")
    random.seed(1)
    before = random.getstate()
    runs = [[tup["x"] for tup in simulate(topology, 3, capture=["draws"]).captured("draws")] for _ in range(2)]
    assert runs[0] == runs[1]
    assert random.getstate() == before


def test_faults_are_spread_over_the_run_when_asked_for_and_by_the_same_seed_again():
    def faults(seed):
        spread = Faults(crash=0.05, late=0.05, acker_crash=0.01, limit=4, pause_secs=2.0)
        log = simulate(topologies.word_count, seed, spread, **{"test.sentences": 50}).log
        return [event.at for event in log if event.what in ("crash of", "crash of acker", "late message to")]

    times = [faults(seed) for seed in range(5)]
    assert max(map(len, times)) == 4
    assert all(later - earlier >= 2.0 for each in times for earlier, later in pairwise(each))
    assert [faults(seed) for seed in range(5)] == times


@pytest.mark.parametrize(
    "wrong", [{"crash": 2}, {"late": -0.1}, {"restart_secs": -1}, {"pause_secs": -1}, {"pause_secs": float("nan")}]
)
def test_faults_that_can_not_be_are_refused(wrong):
    with pytest.raises(ValueError, match="Faults"):
        Faults(**wrong)


def test_faults_are_for_simulations():
    with pytest.raises(ValueError, match="simulated"):
        LocalCluster("inprocess", faults=Faults())


@pytest.mark.soak
@pytest.mark.parametrize(
    "topology",
    ["passing", "fails_twice", "forgets_once", "pairs", "routed", "called_back", "cycle", "batches", "fan"],
)
def test_every_kind_of_topology_comes_to_its_end_whatever_goes_wrong(topology):
    def check(seed):
        # Pairs need an even number; one left over by a crash would wait for another for ever, but times out.
        run = simulate(getattr(topologies, topology), seed, MANY, **{"test.numbers": 12})
        for counters in run.counters.values():
            assert counters.pending == 0
            if counters.kind == "spout" and counters.acked:
                assert counters.acked == 12 * counters.tasks
                assert counters.emitted == counters.acked + counters.failed

    each_seed(check, seeds=SEEDS // 3)


def test_a_seed_is_named_too_when_the_check_fails_by_pytest_itself():
    def nothing_raised(seed):
        with pytest.raises(ValueError):
            pass

    with pytest.raises(AssertionError, match=r"seed 0 fails.*DID NOT RAISE"):
        each_seed(nothing_raised)
    with pytest.raises(pytest.skip.Exception):
        each_seed(lambda seed: pytest.skip("not here"))
