"""A drained run has committed what stateful bolts counted, whether the tuples were anchored or not."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import Bolt, LocalCluster, StatefulBasicBolt, StatefulBolt, TopologyBuilder
from multilang.state import ReplayableSpout
from multilang.state.providers import provider_of

if TYPE_CHECKING:
    from typing import Any

    from multilang import Topology

ROWS = 23
KEYS = 5


class Numbers(ReplayableSpout):
    """Emits numbers, reliably or not."""

    output_fields = ["n"]

    def __init__(self, anchored: bool = True, rows: int = ROWS) -> None:
        self.anchored = anchored
        self.rows = rows

    def initialize(self, conf: Any, context: Any) -> None:
        self.n = 0
        self.exact = self._collector.replays_by_position

    def position(self) -> int:
        return self.n

    def seek(self, position: int) -> None:
        # The next run of the topology, which has other numbers than the one before.
        self.n = position
        self.rows += position

    def next_tuple(self) -> None:
        if self.n < self.rows:
            self.n += 1
            if self.anchored or self.exact:
                self.emit([self.n])
            else:
                self._collector.emit([self.n])

    def exhausted(self) -> bool:
        return self.n >= self.rows


class _Counting:
    output_fields = ["n"]
    log_of: Counter[str] = Counter()

    def init_state(self, state: Any) -> None:
        self.state = state

    def count(self, tup: Any) -> None:
        key = tup["n"] % KEYS
        self.state.put(key, self.state.get(key, 0) + 1)


class CountAndAck(_Counting, StatefulBasicBolt):
    def process(self, tup: Any) -> None:
        self.count(tup)
        self.emit([tup["n"]])


class CountUnanchored(_Counting, StatefulBolt):
    def process(self, tup: Any) -> None:
        self.ack(tup)
        self.count(tup)
        self.emit([tup["n"]], anchors=[])


class CountLater(_Counting, StatefulBolt):
    """Acks at once, and counts and emits in a timer, when what the tuple led to may be committed for long."""

    def process(self, tup: Any) -> None:
        self.ack(tup)
        self.set_timer(0.25, lambda: (self.count(tup), self.emit([tup["n"]], anchors=[])))


class Pass(Bolt):
    output_fields = ["n"]

    def process(self, tup: Any) -> None:
        self.emit([tup["n"]], anchors=[tup])
        self.ack(tup)


class PassUnanchored(Bolt):
    output_fields = ["n"]

    def process(self, tup: Any) -> None:
        self.ack(tup)
        self.emit([tup["n"]], anchors=[])


class PassLater(Bolt):
    output_fields = ["n"]

    def process(self, tup: Any) -> None:
        self.ack(tup)
        self.set_timer(0.25, lambda: self.emit([tup["n"]], anchors=[]))


KINDS = [CountAndAck, CountUnanchored, CountLater, Pass, PassUnanchored, PassLater]
# Each bolt: its kind, how many tasks it has, and the component before it that it reads (modulo their number).
BOLTS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(1, 2), st.integers(0, 9)), min_size=1, max_size=4
).filter(lambda bolts: any(issubclass(kind, _Counting) for kind, _, _ in bolts))


def built(bolts: list[tuple[Any, int, int]], anchored: bool, alignment: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(anchored))
    before = ["numbers"]
    for number, (kind, tasks, source) in enumerate(bolts):
        builder.set_bolt(f"b{number}", kind, parallelism=tasks).fields_grouping(before[source % len(before)], "n")
        before.append(f"b{number}")
    return builder.build("drained", {"multilang.state.alignment": alignment})


def stored(conf: dict[str, Any], topology: Topology) -> dict[str, int]:
    """Return how many tuples the state of each stateful bolt has."""
    provider = provider_of({**topology.conf, **conf, "topology.name": "drained"})
    found: dict[str, int] = {}
    for id, spec in topology.declared.components.items():
        if isinstance(spec.component, _Counting):
            for task in range(spec.tasks):
                state = provider.new_state(f"{id}-{task}")
                found[id] = found.get(id, 0) + sum(dict(state.items()).values())
                state.close()
    provider.close()
    return found


def run_twice(topology: Topology, mode: Any, end: str, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        conf = {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": str(Path(folder, "s.sqlite"))},
            "topology.state.checkpoint.interval.ms": 100,
        }
        expected = Counter[str]()
        counting = [id for id, spec in topology.declared.components.items() if isinstance(spec.component, _Counting)]
        for _ in range(2):
            with LocalCluster(mode, conf=conf, seed=seed) as cluster:
                run = cluster.submit(topology, capture=["numbers", *counting])
                if end == "drained":
                    run.wait(timeout=60)
                else:
                    run.wait(lambda run: len(run.captured("numbers")) == ROWS, timeout=60)
                    if end == "inactive":
                        run.deactivate()
                        run.wait(timeout=60)
                    else:
                        run.kill(wait_secs=60)
                expected.update({id: len(run.captured(id)) for id in counting})
                assert not run.errors
            found = stored(conf, topology)
            assert found == expected
        if end == "drained":
            assert found == dict.fromkeys(counting, 2 * ROWS)


ENDS = ["drained", "inactive", "killed"]


@settings(max_examples=15, deadline=None)
@given(BOLTS, st.booleans(), st.sampled_from(["at-least-once", "exact"]), st.sampled_from(ENDS), st.integers(0, 99))
def test_simulated_what_was_emitted_is_in_the_state(
    bolts: Any, anchored: bool, alignment: str, end: str, seed: int
) -> None:
    run_twice(built(bolts, anchored, alignment), "simulated", end, seed)


@settings(max_examples=4, deadline=None)
@given(BOLTS, st.booleans(), st.sampled_from(["at-least-once", "exact"]), st.sampled_from(ENDS))
def test_in_process_what_was_emitted_is_in_the_state(bolts: Any, anchored: bool, alignment: str, end: str) -> None:
    run_twice(built(bolts, anchored, alignment), "inprocess", end)


@pytest.mark.parametrize(("alignment", "end"), [("at-least-once", "inactive"), ("exact", "drained")])
def test_with_processes_what_was_emitted_is_in_the_state(alignment: str, end: str) -> None:
    bolts = [(PassLater, 1, 0), (CountAndAck, 1, 1), (CountUnanchored, 1, 0)]
    run_twice(built(bolts, False, alignment), "process", end)


class Unacked(_Counting, StatefulBolt):
    """Never acks; no tuple is anchored, so nothing times out."""

    def process(self, tup: Any) -> None:
        self.count(tup)


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_a_bolt_that_acks_nothing_loses_nothing(mode: Any) -> None:
    topology = built([(Unacked, 1, 0)], False, "at-least-once")
    with tempfile.TemporaryDirectory() as folder:
        conf = {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": str(Path(folder, "s.sqlite"))},
        }
        with LocalCluster(mode, conf=conf) as cluster:
            cluster.submit(topology).wait(timeout=20)
        assert stored(conf, topology) == {"b0": ROWS}


def test_what_is_not_committed_yet_is_named() -> None:
    topology = built([(CountAndAck, 1, 0)], False, "at-least-once")
    with LocalCluster("simulated", conf={"topology.state.checkpoint.interval.ms": 20_000}) as cluster:
        run = cluster.submit(topology)
        run.wait(lambda run: run.counters["b0"].acked >= ROWS, timeout=10)
        (task,) = [each.id for each in run.tasks if each.component == "b0"]
        assert f"bolt 'b0' (task {task}): its state is not committed yet" in run.waiting_for
