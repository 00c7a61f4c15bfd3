"""The cost of a topology's tuples, measured by a short run."""

from __future__ import annotations

import os
from typing import Any

import pytest

from multilang import StatefulBasicBolt, TopologyBuilder
from multilang.errors import MultilangError
from multilang.loading.topologies import load_topology
from multilang.local import LocalCluster
from multilang.local.measured import measure
from multilang.runtime.sizing import Costs, size
from tests.local import burning


def of(costs: Costs, id: str) -> Any:
    return next(each for each in costs.components if each.id == id)


def test_in_process_a_known_cost_is_found() -> None:
    costs = measure(burning.topology, 60, mode="inprocess")
    assert costs.by == "busy"
    assert costs.source_tuples == burning.NUMBERS
    assert [(each.id, each.tasks, each.per_source) for each in costs.components] == [
        ("numbers", 1, 1.0), ("burns", 2, 1.0), ("ends", 2, 2.0),
    ]  # fmt: skip
    assert of(costs, "burns").cost_us >= 1000
    assert of(costs, "burns").low_us <= of(costs, "burns").cost_us <= of(costs, "burns").high_us
    assert of(costs, "ends").cost_us < 500
    assert size(costs, 10_000).components[1].tasks >= 15  # ten seconds of CPU a second, each task busy for 70 %


def test_with_processes_it_is_cpu_time() -> None:
    costs = measure(burning.topology, 60)
    assert costs.by == ("cpu" if os.path.exists("/proc/self/stat") else "busy")
    assert 900 <= of(costs, "burns").cost_us <= 3000
    assert of(costs, "ends").per_source == 2.0
    assert costs.messages is not None
    assert costs.messages == pytest.approx(2.0, rel=0.6)  # what comes of one number travels in one or two messages
    assert costs.acker_messages is not None
    assert 1 < costs.acker_messages <= costs.messages + 1  # one of the spout for each number, or for several in a block


def test_what_more_tasks_do_not_share_is_known() -> None:
    to_all = of(measure(burning.to_all, 60, mode="inprocess"), "ends")
    assert (to_all.per_source, to_all.skew) == (4.0, 1.0)
    assert to_all.undivided.startswith("the all grouping gives each tuple of 'burns' to all")
    to_one = of(measure(burning.to_one, 60, mode="inprocess"), "ends")
    assert (to_one.per_source, to_one.skew) == (2.0, 2.0)
    assert to_one.undivided.startswith("the global grouping gives all tuples of 'burns' to one")


@pytest.mark.parametrize(
    ("topology", "message"),
    [("unread", "bolt 'never' saw no tuple while it was measured"), ("dies", "bolt 'ends' died while it was measured")],
)
def test_what_can_not_be_planned_is_refused_by_name(topology: str, message: str) -> None:
    with pytest.raises(MultilangError, match=message):
        measure(getattr(burning, topology), 0.5, mode="inprocess")


def test_the_rates_of_a_thousand_tasks_are_those_that_were_planned() -> None:
    costs = measure(burning.topology, 60, mode="inprocess")
    large: Any = burning.built(tasks=1000)  # type: ignore[no-untyped-call]
    with LocalCluster("simulated", {"test.numbers": 60}) as cluster:
        run = cluster.submit(large)
        run.wait(timeout=1e6)
        status = run.status(by_task=False)
    emitted = status["numbers"].emitted
    assert emitted == 60
    for planned in size(costs, emitted).components:
        assert planned.rate == pytest.approx(status[planned.id].emitted if planned.id == "numbers" else status[planned.id].executed)  # fmt: skip


class Counts(StatefulBasicBolt):
    def init_state(self, state: Any) -> None:
        self.state = state

    def process(self, tup: Any) -> None:
        self.state.put("n", self.state.get("n", 0) + 1)


def test_the_librarys_own_spouts_are_not_planned() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", burning.Numbers)
    builder.set_bolt("counts", Counts).shuffle_grouping("numbers")
    conf = {
        "topology.max.spout.pending": 20,
        "topology.state.provider": "memory",
        "topology.state.checkpoint.interval.ms": 50,
    }
    costs = measure(builder.build("counted", conf=conf), 60, mode="inprocess")
    assert [each.id for each in costs.components] == ["numbers", "counts"]


def test_what_has_no_spout_of_its_own_is_refused() -> None:
    topology = load_topology("examples/transactional_words.py")  # it is not run: its map may be another test's
    with pytest.raises(MultilangError, match=r"has no spout but the library's own .spout/coordinator."):
        measure(topology, 0.5, mode="inprocess")
