"""The size of a topology for a rate: enough tasks, and not one more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.errors import MultilangError
from multilang.runtime.sizing import Cost, Costs, Part, cost_of, size


def cost(id: str = "bolt", **more: Any) -> Cost:
    us = more.pop("cost_us", 50.0)
    values: dict[str, Any] = {
        "kind": "bolt", "tasks": 1, "tuples": 5000, "cost_us": us, "low_us": us, "high_us": us, "per_source": 1.0, **more,
    }  # fmt: skip
    return Cost(id=id, **values)


def costs(*components: Cost, **more: Any) -> Costs:
    return Costs(
        topology="t", engine="process", by="cpu", seconds=5.0, cpus=2, source_tuples=1000, components=components, **more
    )


@settings(max_examples=150, deadline=None, database=None)
@given(
    st.floats(0.5, 5000), st.floats(0.01, 50), st.floats(1, 3), st.floats(1, 1e6), st.floats(0.1, 1), st.floats(1, 2)
)
def test_so_many_tasks_are_enough_and_one_less_is_not(
    us: float, per_source: float, skew: float, rate: float, busy: float, spread: float
) -> None:
    component = cost(cost_us=us, low_us=us / spread, high_us=us * spread, per_source=per_source, skew=skew)
    (planned,) = size(costs(component), rate, utilization=busy).components
    load = rate * per_source * us / 1e6 * skew
    assert load / planned.tasks <= busy * (1 + 1e-9)
    assert planned.tasks == 1 or load / (planned.tasks - 1) > busy * (1 - 1e-9)
    assert planned.least_tasks <= planned.tasks <= planned.most_tasks
    assert planned.busy == pytest.approx(load / planned.tasks)
    assert planned.cpus == pytest.approx(load / skew)
    (at_limit,) = size(costs(component), planned.limit, utilization=1).components
    assert abs(at_limit.tasks - planned.tasks) <= 1


def test_the_first_to_give_out_is_the_one_with_the_least_left() -> None:
    spout = cost("spout", kind="spout", cost_us=10)
    split = cost("split", cost_us=100, tasks=2)
    count = cost("count", cost_us=20, per_source=10)
    found = size(costs(spout, split, count, acker_messages=4.0, messages=3.0), 35_000, workers=4, worker_us=20)
    assert [each.tasks for each in found.components] == [1, 5, 10]
    assert [round(each.cpus, 3) for each in found.components] == [0.35, 3.5, 7.0]
    assert (found.tasks, round(found.cpus, 3)) == (16, 10.85)
    assert (found.first, round(found.first_at)) == ("split", 50_000)
    assert (found.declared_first, round(found.declared_at)) == ("count", 5_000)
    assert (found.ackers, found.acker_rate) == (4, 35_000)
    assert found.worker_cpus == pytest.approx(35_000 * 3 * 20 / 1e6)
    assert found.problems == ()


def test_more_tasks_do_not_help_where_they_do_not_share() -> None:
    lone = cost("lone", cost_us=100, tasks=2, skew=2.0, undivided="the global grouping gives all tuples to one task")
    assert size(costs(lone), 5000).problems == ()
    found = size(costs(lone), 20_000)
    assert found.components[0].tasks == 2
    (problem,) = found.problems
    assert problem.startswith("no number of tasks is enough for 'lone': the global grouping")
    assert "busy for 200% of its time" in problem
    assert "7,000 tuples/s" in problem


def test_costs_are_the_same_after_a_file() -> None:
    measured = costs(cost("a"), cost("b", undivided="why"), notes=("one",), acker_messages=2.0)
    assert Costs.from_json(json.loads(json.dumps(measured.as_json()))) == measured
    wrong: Any
    for wrong in (
        {},
        {"version": 1},
        {**measured.as_json(), "version": 99},
        {**measured.as_json(), "components": [{}]},
    ):
        with pytest.raises(MultilangError):
            Costs.from_json(wrong)


def part(secs: float, *tuples: int) -> Part:
    return Part(tuples=tuples, secs=secs)


def test_the_start_is_no_part_of_a_tuples_cost() -> None:
    notes: list[str] = []
    parts = [part(0.3, 0, 0), part(0.5, 100, 0), part(0.6, 200, 100), part(0.7, 1100, 1200), part(1.1, 3200, 3100)]
    found = cost_of("b", "bolt", parts, 3150, None, notes)
    assert (found.tuples, found.tasks, found.per_source) == (6000, 2, 2.0)
    assert found.cost_us == pytest.approx(0.5 / 6000 * 1e6)
    assert (found.low_us, found.high_us) == (pytest.approx(50.0), pytest.approx(100.0))
    assert found.skew == pytest.approx(3200 / 3150)
    assert notes == []


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "saw no tuple"),
        ([part(0.1, 0), part(0.2, 0)], "'b' saw no tuple while it was measured"),
        ([part(0.1, 0), part(0.2, 500)], "all its work at once"),
        ([part(0.1, 5), part(0.2, 5)], "so little"),
    ],
)
def test_what_can_not_be_measured_is_refused_by_name(parts: list[Part], message: str) -> None:
    with pytest.raises(MultilangError, match=message):
        cost_of("b", "bolt", parts, 100, None, [])


def test_what_is_below_the_clocks_resolution_is_an_upper_bound() -> None:
    notes: list[str] = []
    found = cost_of("b", "bolt", [part(0.1, 5), part(0.1, 5005)], 100, None, notes, resolution=0.01)
    assert (found.low_us, found.cost_us, found.high_us) == (0.0, pytest.approx(2.0), pytest.approx(4.0))
    assert notes == ["'b' took less time than the clock can tell, so that it costs at most what is shown"]


def test_few_tuples_are_told() -> None:
    notes: list[str] = []
    cost_of("b", "bolt", [part(0.1, 5), part(0.2, 500)], 100, None, notes)
    assert notes == ["'b' was measured with 495 tuples only, so that its cost is not sure"]


def test_where_more_tasks_make_blocks_smaller_tuples_are_counted_alone() -> None:
    alone = costs(cost("a", cost_us=100.0), cost("b", cost_us=200.0))
    both = costs(cost("a", cost_us=10.0, tasks=2), cost("b", cost_us=20.0), alone=alone)
    assert Costs.from_json(json.loads(json.dumps(both.as_json()))) == both
    few, many = size(both, 30_000), size(both, 60_000)
    assert (few.in_blocks, [each.tasks for each in few.components]) == (None, [1, 1])
    assert [each.tasks for each in many.components] == [9, 18]
    assert [each.least_tasks for each in many.components] == [1, 2]
    assert many.in_blocks is not None
    assert [each.tasks for each in many.in_blocks.components] == [1, 2]
    assert (many.declared_first, many.declared_at) == ("b", pytest.approx(50_000))
