"""A ReliableSpout never has more under way than topology.max.spout.pending, and loses nothing of what waits for room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component import Bolt, ReliableSpout, Stream
from multilang.local import Faults, LocalCluster
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.protocol.messages import Emit
from multilang.testing import run_spout
from multilang.topology import TopologyBuilder

if TYPE_CHECKING:
    from tests.component.harness import Starter

MOST = "topology.max.spout.pending"
ROWS = 60


class Bursts(ReliableSpout):
    output_fields = ["n"]
    max_replay_delay_secs = 0
    log_of: list[str] = []

    def __init__(self, burst: int = 3, rows: int = ROWS) -> None:
        self.burst = burst
        self.rows = rows

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        for _ in range(min(self.burst, self.rows - self.n)):
            self.n += 1
            self.emit([self.n], tup_id=self.n)

    def acked(self, tup_id):
        self.log_of.append(f"-{tup_id}")

    def exhausted(self):
        return self.n >= self.rows


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 40), st.data())
def test_never_more_is_under_way_and_all_comes_in_order(most, burst, rows, data):
    run = run_spout(Bursts(burst, rows), conf={MOST: most})
    while not (run.exhausted and not run.pending):
        run.next()
        assert len(run.pending) <= most
        assert run.spout.under_way <= most
        if run.pending and data.draw(st.booleans()):
            tup_id = data.draw(st.sampled_from(run.pending))
            (run.ack if data.draw(st.integers(0, 3)) else run.fail)(tup_id)
    firsts = list(dict.fromkeys(each.tup_id for each in run.emitted))
    assert firsts == list(range(1, rows + 1))
    assert run.spout.held_back == 0


class Slow(Bolt):
    """Acks its inputs late, so that as many as may be are under way."""

    log_of: list[str] = []

    def initialize(self, conf, context):
        self.kept = []

    def process(self, tup):
        self.log_of.append(f"+{tup['n']}")
        self.kept.append(tup)
        self.set_timer(0.01, self.settle)

    def settle(self):
        if self.kept:
            self.ack(self.kept.pop(0))


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
@pytest.mark.parametrize("most", [1, 4, 7])
def test_a_whole_topology_keeps_the_limit(mode, most):
    Bursts.log_of = Slow.log_of = log = []
    builder = TopologyBuilder()
    builder.set_spout("bursts", Bursts(5))
    builder.set_bolt("slow", Slow).shuffle_grouping("bursts")
    topology = builder.build("t", conf={MOST: most})
    faults = Faults(crash=0.02) if mode == "simulated" else None
    with LocalCluster(mode=mode, seed=most, faults=faults) as cluster:
        cluster.submit(topology).wait(timeout=3600 if mode == "simulated" else 60)  # virtual seconds
    under_way, highest = set(), 0
    for entry in log:
        (under_way.add if entry[0] == "+" else under_way.discard)(entry[1:])
        highest = max(highest, len(under_way))
    assert highest == most
    assert {entry[1:] for entry in log if entry[0] == "-"} == {str(n) for n in range(1, ROWS + 1)}


def test_on_the_wire_the_rest_waits_for_acks(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["n"]
            n = 0
            def next_tuple(self):
                for _ in range(3):
                    self.n += 1
                    self.emit([self.n], tup_id=self.n)
        """, spout=True, conf={MOST: 4}).started()  # fmt: skip

    def ids(*command: object) -> list[object]:
        return [message.id for message in child.ask(*command) if isinstance(message, Emit)]

    assert ids() == [1, 2, 3]
    assert ids() == [4]
    assert ids() == []
    assert ids("ack", 2) == []
    assert ids() == [5]
    assert ids("ack", 1) + ids("ack", 3) == []
    assert ids() == [6]
    assert ids() == [7]


class Wide(ReliableSpout):
    output_streams = {"default": ["n"], "direct": Stream(["n"], direct=True)}

    def next_tuple(self):
        self.told = []
        self.values = [{"a": [1]}]
        self.emit([0], tup_id="first")
        self.emit(self.values, tup_id="held", on_task_ids=self.told.append)
        self.values[0]["a"].append(2)


def test_what_is_held_back_is_sent_as_it_was_and_its_task_ids_come_then():
    run = run_spout(Wide, 1, conf={MOST: 1})
    spout = run.spout
    assert (run.values, spout.told, spout.held_back) == ([[0]], [], 1)
    task = spout.context.tasks("sink")[0]
    assert spout.emit([7], tup_id="direct", stream="direct", direct_task=task, need_task_ids=True) == [task]
    assert spout.emit([8], tup_id="asked", need_task_ids=True) == [task]  # the one that can't wait
    run.ack("first")
    run.next()
    assert spout.held_back == 2  # "asked" has the room
    run.ack("asked")
    run.next()
    assert (run.values[-1], spout.told) == ([{"a": [1]}], [[task]])
    run.ack("held")
    run.next()
    assert (run.emitted[-1].values, run.emitted[-1].direct_task) == ([7], task)


@pytest.mark.parametrize(
    ("values", "more", "error"),
    [
        ([1, 2], {}, LocalProtocolError),
        ([{1}], {}, UnserializableValue),
        ([1], {"stream": "nope"}, LocalProtocolError),
        ([1], {"stream": "direct", "direct_task": 99}, LocalProtocolError),
        ([1], {"tup_id": "held"}, LocalProtocolError),
    ],
)
def test_what_is_wrong_is_told_at_once_although_it_would_be_held_back(values, more, error):
    run = run_spout(Wide, 1, conf={MOST: 1})
    with pytest.raises(error):
        run.spout.emit(values, **more)
    assert run.spout.held_back == 1
