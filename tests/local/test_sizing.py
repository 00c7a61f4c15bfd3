"""The tasks that a topology needs for a rate, by the cost of its tuples in a short run."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import StatefulBasicBolt, TopologyBuilder
from multilang.loading.topologies import load_topology
from multilang.local import LocalCluster, LocalClusterError, sizing
from multilang.local.sizing import BUSY, Cost, measure
from tests.local import burning


def cost(**more: Any) -> Cost:
    values: dict[str, Any] = {"id": "bolt", "tasks": 1, "tuples": 5000, "cost_us": 50.0, "per_source": 1.0, **more}
    return Cost(**values)


@settings(max_examples=150, deadline=None, database=None)
@given(st.floats(0.5, 5000), st.floats(0.01, 50), st.floats(1, 3), st.floats(1, 1e6))
def test_so_many_tasks_are_enough_and_one_less_is_not(us: float, per_source: float, skew: float, rate: float) -> None:
    component = cost(cost_us=us, per_source=per_source, skew=skew)
    tasks, load = component.needed(rate), rate * per_source * us / 1e6 * skew
    assert load / tasks <= BUSY * (1 + 1e-9)
    assert tasks == 1 or load / (tasks - 1) > BUSY * (1 - 1e-9)
    assert component.cpus(rate) == pytest.approx(load / skew)
    assert component.limit(tasks) == pytest.approx(rate * tasks / load)


def test_more_tasks_do_not_help_where_they_do_not_share() -> None:
    lone = cost(cost_us=100.0, tasks=2, skew=2.0, undivided="global")
    assert lone.needed(20_000) == 2
    assert lone.limit(2) == pytest.approx(10_000)


def by_id(topology: Any, seconds: float = 60) -> dict[str, Cost]:
    return {each.id: each for each in measure(topology, seconds)[0]}


def test_a_known_cost_is_found_as_cpu_time() -> None:
    costs, messages = measure(burning.topology, 60)
    assert [(each.id, each.tasks, each.per_source) for each in costs] == [
        ("numbers", 1, 1.0), ("burns", 2, 1.0), ("ends", 2, 2.0),
    ]  # fmt: skip
    assert 900 <= costs[1].cost_us <= 3000
    assert costs[1].needed(10_000) >= 13  # nine seconds of CPU a second, each task busy for 70 %
    assert messages == pytest.approx(2.0, rel=0.6)  # what comes of one number travels in one or two messages


def test_it_is_the_time_in_which_tasks_are_busy_where_cpu_time_can_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(pid: str) -> float:
        raise FileNotFoundError(f"/proc/{pid}/stat")

    monkeypatch.setattr(sizing, "_cpu_secs", unreadable)
    costs = by_id(burning.topology)
    assert costs["burns"].cost_us >= 900
    assert costs["ends"].cost_us < 500


def test_what_more_tasks_do_not_share_is_known() -> None:
    to_all = by_id(burning.to_all)["ends"]
    assert (to_all.per_source, to_all.skew, to_all.undivided) == (4.0, 1.0, "all")
    to_one = by_id(burning.to_one)["ends"]
    assert (to_one.per_source, to_one.skew, to_one.undivided) == (2.0, 2.0, "global")


@pytest.mark.parametrize(
    ("topology", "message"),
    [("unread", "bolt 'never' saw too few tuples to be measured"), ("dies", "bolt 'ends' died while it was measured")],
)
def test_what_can_not_be_planned_is_refused_by_name(topology: str, message: str) -> None:
    with pytest.raises(LocalClusterError, match=message):
        measure(getattr(burning, topology), 5)


def test_the_rates_of_a_thousand_tasks_are_those_that_were_planned() -> None:
    costs = by_id(burning.topology)
    large: Any = burning.built(tasks=1000)  # type: ignore[no-untyped-call]
    with LocalCluster("simulated", {"test.numbers": 60}) as cluster:
        run = cluster.submit(large)
        run.wait(timeout=1e6)
        status = run.status(by_task=False)
    assert status["numbers"].emitted == 60
    for id in ("burns", "ends"):
        assert costs[id].per_source * 60 == pytest.approx(status[id].executed)


class Counts(StatefulBasicBolt):
    def init_state(self, state: Any) -> None:
        self.state = state

    def process(self, tup: Any) -> None:
        self.state.put("n", self.state.get("n", 0) + 1)


def test_the_librarys_own_spouts_are_not_planned(tmp_path: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", burning.Numbers)
    builder.set_bolt("burns", burning.Burns).shuffle_grouping("numbers")
    builder.set_bolt("counts", Counts).shuffle_grouping("burns")
    conf = {
        "topology.max.spout.pending": 20,
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": os.fspath(tmp_path / "state.db")},
        "topology.state.checkpoint.interval.ms": 50,
    }
    assert list(by_id(builder.build("counted", conf=conf))) == ["numbers", "burns", "counts"]


def test_what_has_no_spout_of_its_own_is_refused() -> None:
    topology = load_topology("examples/transactional_words.py")  # it is not run: its map may be another test's
    with pytest.raises(LocalClusterError, match=r"has no spout but the library's own .spout/coordinator."):
        measure(topology, 0.5)
