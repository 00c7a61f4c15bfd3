"""Windows give the same answer and ack every tuple, whatever the collector is that stands around them."""

from __future__ import annotations

import pytest

from multilang import Spout, TopologyBuilder
from multilang.local import LocalCluster
from multilang.windowing import Count, StatefulWindowedBolt, Tumbling, WindowedBolt, milliseconds
from tests.patience import patient
from tests.soak import SOAK
from tests.windowing import around

SEEDS = range(1, 31 if SOAK else 2)
IN_BLOCKS = {"multilang.exchange": "block"}
IDS = around.EVENTS // around.OF_AN_ID


def check(kinds, mode, seed, folder, **how):
    topology = around.built(kinds, **how)
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(folder / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 50,
    }
    coordinated = how.get("coordinated", False)
    expected = {" ".join(kind): around.answer(kind) for kind in kinds}
    capture = [*expected, *([(name, "finished") for name in expected] if coordinated else [])]
    exact = how.get("exact", False)
    total = IDS if coordinated else around.EVENTS

    def shown(name):
        return sorted(str(tup.values) for tup in run.captured(name))

    def end():
        counts = run.counters["events"]  # of a spout of exact alignment, its checkpoints are among what is acked
        return counts.acked if not exact else min(counts.acked, total), counts.failed, counts.pending

    def is_done(_):
        return end() == (total, 0, 0) and all(shown(name) == rows for name, rows in expected.items())

    with LocalCluster(mode, conf, seed=seed) as cluster:
        run = cluster.submit(topology, capture=capture)
        try:
            run.wait(is_done, timeout=patient(60))
        except TimeoutError:
            pass  # the comparisons say more
        assert not run.errors
        for name, rows in expected.items():
            assert shown(name) == rows, name
            if coordinated:
                finished = {tup["id"] for tup in run.captured(name, "finished")}
                assert finished >= {*range(IDS)}, name
        assert end() == (total, 0, 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("state", [False, True], ids=["without state", "with state"])
@pytest.mark.parametrize("coordinated", [False, True], ids=["alone", "coordinated"])
@pytest.mark.parametrize("mode", ["simulated", "inprocess"])
def test_in_one_process(mode, coordinated, state, seed, tmp_path):
    check(around.chosen(seed, 20 if SOAK else 8), mode, seed, tmp_path, state=state, coordinated=coordinated)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exact", [False, True], ids=["at least once", "exact"])
@pytest.mark.parametrize("mode", ["simulated", "inprocess"])
def test_with_state_of_their_own(mode, exact, seed, tmp_path):
    check(
        around.chosen(seed, 20 if SOAK else 8), mode, seed, tmp_path, base=StatefulWindowedBolt, state=True, exact=exact
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exchange", [{}, IN_BLOCKS], ids=["by tuple", "in blocks"])
@pytest.mark.parametrize(
    ("base", "state", "coordinated"),
    [(WindowedBolt, True, True), (WindowedBolt, True, False), (StatefulWindowedBolt, True, False)][
        : None if SOAK else 1
    ],
)
def test_with_processes(base, state, coordinated, exchange, seed, tmp_path):
    kinds = around.chosen(seed, 4)
    check(kinds, "process", seed, tmp_path, base=base, state=state, coordinated=coordinated, conf=exchange)


class FailsOnce(WindowedBolt):
    """Fails once, at the window of its second key."""

    output_fields = ["key", "count"]
    window = Tumbling(milliseconds(500))
    key_by = "key"
    timestamp_field = "ts"
    watermark_interval = milliseconds(10)
    aggregate = Count()
    anchor = "none"
    failures = 1

    def process_window(self, window):
        if window.key == "bee" and FailsOnce.failures:
            FailsOnce.failures -= 1
            raise RuntimeError("once")
        self.emit([window.key, window.result])


class ThreeKeys(Spout):
    """Sends nine tuples together, and again those that failed, late by a tuple that ends the windows."""

    output_fields = ["key", "ts"]

    def initialize(self, conf, context):
        self.left = [*range(9)]
        self.is_ended = False

    def next_tuple(self):
        if self.left:
            rows, self.left = self.left, []
            self.emit_many([[around.KEYS[n % 3], 1 + n] for n in rows], rows)
        elif not self.is_ended:
            self.is_ended = True
            self.emit(["end", 10_000])

    def fail(self, n):
        self.left.append(n)
        self.is_ended = False


def test_a_window_that_fails_takes_back_none_that_was_evaluated_before_it():
    FailsOnce.failures = 1
    builder = TopologyBuilder()
    builder.set_spout("events", ThreeKeys)
    builder.set_bolt("windows", FailsOnce).global_grouping("events")
    builder.set_bolt("reads", around.Reads).global_grouping("windows")
    topology = builder.build("windows", {"topology.message.timeout.secs": 1})
    with LocalCluster("inprocess", fail_fast=False) as cluster:
        run = cluster.submit(topology, capture=["windows"])
        run.wait(lambda run: run.counters["events"].acked == 9, timeout=patient(30))
        assert sorted(tup.values for tup in run.captured("windows")) == [["ant", 3], ["bee", 3], ["cat", 3]]
