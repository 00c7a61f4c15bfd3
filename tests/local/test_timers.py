"""Timers give the same answers in every mode, and a run waits for what they still have to do."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, Bolt, TopologyBuilder
from multilang.local import Faults, LocalCluster, LocalClusterError
from multilang.testing import each_seed
from tests.local import timed
from tests.patience import patient
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS


def run_whole(mode, topology, capture=("bolt",), seed=1, **conf):
    with LocalCluster(mode, conf, seed=seed) as cluster:
        run = cluster.submit(topology, capture=list(capture))
        run.wait(timeout=None if mode == "simulated" else 60)
        return run


def values(run, component="bolt"):
    return [list(tup.values) for tup in run.captured(component)]


@EVERY_MODE
def test_tuples_that_are_held_until_a_timer_are_waited_for_and_so_is_what_comes_of_them(mode):
    run = run_whole(mode, timed.holds, ["bolt", "sums"])
    assert sorted(values(run)) == [[n, "held"] for n in range(30)]
    assert values(run, "sums")[-1] == [sum(range(30)), 30]
    assert run.counters["numbers"].acked == 30
    assert run.errors == []


@MOSTLY_IN_PROCESS
def test_a_timer_that_tuples_put_off_again_and_again_runs_once_and_is_waited_for(mode):
    builder = TopologyBuilder()
    builder.set_spout("numbers", timed.Numbers)
    builder.set_bolt("bolt", timed.Sums).global_grouping("numbers")
    run = run_whole(mode, builder.build("sums"))
    assert values(run)[-1] == [sum(range(30)), 30]


@MOSTLY_IN_PROCESS
def test_timers_run_in_the_order_of_their_times(mode):
    got = values(run_whole(mode, timed.twice, **{"test.numbers": 5}))
    assert len(got) == 10
    for n in range(5):
        assert got.index([n, "first"]) < got.index([n, "second"])


@EVERY_MODE
def test_repeated_timers_and_chains_of_them_do_not_keep_a_run_from_its_end(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(timed.beats, capture=["bolt"])
        run.wait(lambda run: len(run.captured("bolt")) > 20, timeout=60)
        run.wait(timeout=patient(60))
        assert run.waiting_for == []
        assert {tup["what"] for tup in run.captured("bolt")} == {"beat", "chain"}


@EVERY_MODE
def test_a_timer_acks_and_fails_as_process_does(mode):
    run = run_whole(mode, timed.fails)
    assert sorted(values(run)) == [[n] for n in range(30)]
    counters = run.counters
    assert (counters["numbers"].acked, counters["numbers"].failed) == (30, 30)


@EVERY_MODE
def test_a_bolt_that_dies_in_a_timer_is_started_again_without_its_timers(mode, tmp_path):
    conf = {"test.marker": str(tmp_path / "died"), "test.numbers": 3, "topology.message.timeout.secs": 1}
    run = run_whole(mode, timed.dies, **conf)
    assert {n for (n,) in values(run)} == {0, 1, 2}  # on a busy machine, one may time out and come again
    assert run.counters["bolt"].restarts == 1
    assert "the disk is full" in run.errors[0].message
    assert any(error.fatal for error in run.errors)


@MOSTLY_IN_PROCESS
def test_a_basic_bolt_reports_what_its_timer_raises_and_goes_on(mode):
    run = run_whole(mode, timed.reports, **{"test.numbers": 3})
    assert len(values(run)) == 3
    assert run.counters["bolt"].restarts == 0
    assert len(run.errors) == 3
    assert all("in a timer: the disk is full" in error.message for error in run.errors)


@EVERY_MODE
def test_a_spout_emits_from_its_timers(mode):
    run = run_whole(mode, timed.timed, ["numbers", "bolt"])
    assert values(run, "numbers") == [[4], [3], [2], [1], [0]]
    assert run.counters["numbers"].acked == 5


@EVERY_MODE
def test_a_spout_s_timers_rest_while_the_topology_is_deactivated(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(timed.timed, capture=["numbers", "bolt"])
        run.wait(lambda run: run.captured("numbers"), timeout=patient(60))
        run.deactivate()
        run.wait(timeout=patient(60))  # what was emitted is acked, and all is still
        emitted = len(run.captured("numbers"))
        run.run_for(0.2)
        assert len(run.captured("numbers")) == emitted
        run.activate()
        run.wait(timeout=patient(60))
        assert len(run.captured("numbers")) == 5


@MOSTLY_IN_PROCESS
def test_what_is_waited_for_is_named(mode):
    builder = TopologyBuilder()
    builder.set_spout("numbers", timed.Numbers)
    builder.set_bolt("bolt", Late).global_grouping("numbers")
    with LocalCluster(mode, {"test.numbers": 1}, seed=1) as cluster:
        run = cluster.submit(builder.build("late"))
        run.wait(lambda run: run.counters["numbers"].acked == 1, timeout=patient(60))
        run.wait(lambda run: "timer" in "".join(run.waiting_for), timeout=patient(60))
        assert any(line.startswith("bolt 'bolt' (task 2): ") for line in run.waiting_for)


class Late(BasicBolt):
    def process(self, tup):
        self.set_timer(3600, print)


# ---- simulated ----


def test_virtual_timers_run_at_their_very_instants():
    at = []

    class Notes(Bolt):
        output_fields = ["n"]

        def initialize(self, conf, context):
            begin = self.clock()
            for secs in (0.25, 3600, 7.5):
                self.set_timer(secs, lambda secs=secs: at.append((secs, self.clock() - begin)))

        def process(self, tup):
            self.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("numbers", timed.Numbers)
    builder.set_bolt("bolt", Notes).global_grouping("numbers")
    run = run_whole("simulated", builder.build("notes"))
    assert at == [(0.25, 0.25), (7.5, 7.5), (3600, 3600)]
    assert run.clock.now() >= 3600


def test_a_seed_replays_timers_faults_included():
    faults = Faults(crash=0.02, acker_crash=0.01, late=0.03, limit=20)

    def simulate(topology, seed):
        conf = {"topology.message.timeout.secs": 5}
        with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
            run = cluster.submit(topology, capture=["bolt"])
            run.wait()
            return run

    happened = set()

    def check(seed):
        for topology in (timed.holds, timed.fails):
            one, two = simulate(topology, seed), simulate(topology, seed)
            assert list(map(str, one.log)) == list(map(str, two.log))
            assert {tup["n"] for tup in one.captured("bolt")} == set(range(30))
            assert one.counters["numbers"].acked == 30
            happened.update(event.what for event in one.log)

    each_seed(check, seeds=15)
    assert {"timer", "crash of", "timeout of"} <= happened


def test_with_fail_fast_an_exception_in_a_timer_ends_the_run(tmp_path):
    with LocalCluster("inprocess", {"test.marker": str(tmp_path / "died")}, fail_fast=True) as cluster:
        run = cluster.submit(timed.dies)
        with pytest.raises(LocalClusterError, match=r"OSError in component 'bolt' .* in a timer: the disk is full"):
            run.wait(timeout=patient(60))
