"""Many tuples at once: what a spout emits together is what it would be one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component import BatchingBolt, ReliableSpout
from multilang.local import LocalCluster
from multilang.protocol import LocalProtocolError, UnserializableValue
from multilang.topology import TopologyBuilder
from tests.patience import patient

VALUES = st.one_of(st.integers(-(2**64), 2**64), st.text(max_size=3), st.just(float("nan")), st.just(b"bytes"))
ROWS = st.lists(
    st.lists(VALUES, min_size=1, max_size=2) | st.lists(st.integers(0, 9), min_size=2, max_size=2), max_size=8
)


class Turns(ReliableSpout):
    """Emits the rows of a turn, with ids, at once or one by one; a turn with something wrong in it ends there."""

    output_fields = ["turn", "value"]
    replay_delay_secs = 0.0
    max_replays = 1
    turns, at_once = (), True

    def initialize(self, conf, context):
        self.left = list(self.turns)
        self.seen = []

    def next_tuple(self):
        if not self.left:
            return
        rows, ids = self.left.pop(0)
        try:
            if self.at_once:
                self.emit_many(rows, ids)
            elif ids is None:
                for row in rows:
                    self.emit(row)
            else:
                for row, id in zip(rows, ids, strict=True):
                    self.emit(row, id)
        except (LocalProtocolError, UnserializableValue, ValueError) as error:
            self.seen.append(str(error))
        self.seen.append((self.under_way, self.held_back))

    def acked(self, tup_id):
        self.seen.append(tup_id)

    def gave_up(self, tup_id, values, failures):
        self.seen.append([tup_id, repr(values), failures])

    def exhausted(self):
        return not self.left


class Groups(BatchingBolt):
    """Remembers its groups; fails what has a 7 in it."""

    batch_size = 3
    component_conf = {"topology.tick.tuple.freq.secs": 3600}

    def initialize(self, conf, context):
        self.groups = []

    def process_batch(self, key, tups):
        self.groups.append([repr(tup.values) for tup in tups])
        if any(7 in tup.values for tup in tups):
            raise ValueError("a seven")


def run(turns, at_once, bolt, conf):
    """Return what the spout and the bolts saw."""
    spout = type("Given", (Turns,), {"turns": turns, "at_once": at_once})
    builder = TopologyBuilder()
    builder.set_spout("turns", spout)
    builder.set_bolt("groups", bolt).shuffle_grouping("turns")  # one task: among several, there is no order
    with LocalCluster("inprocess", {"topology.enable.message.timeouts": False, **conf}, seed=1) as cluster:
        running = cluster.submit(builder.build("many"))
        instances = {(task.component, task.id): task.instance for task in running.tasks}
        source = next(instance for (component, _), instance in instances.items() if component == "turns")
        groups = [each.groups for (name, _), each in sorted(instances.items()) if name == "groups"]
        last: list[object] = []

        def rests(_):
            last.append((source.under_way, source.waiting_for_replay, len(source.left), len(source.seen)))
            return len(last) > 3 and last[-4:] == [last[-1]] * 4

        running.wait(rests, timeout=patient(60))
        return source.seen, groups


@given(
    st.lists(st.tuples(ROWS, st.none() | st.lists(st.integers(0, 12) | st.text(max_size=1), max_size=8)), max_size=4),
    st.sampled_from([{}, {"topology.max.spout.pending": 4}, {"topology.acker.executors": 0}]),
)
def test_a_spout_emits_at_once_what_it_emits_one_by_one(turns, conf):
    at_once = run(turns, True, Groups, conf)
    assert at_once == run(turns, False, Groups, conf)
    assert at_once == run(
        turns, True, Groups, {**conf, "topology.acker.executors": conf.get("topology.acker.executors", 2)}
    )


@pytest.mark.parametrize("size", [1, 3, None])
def test_a_batching_bolt_gets_groups_of_its_size_however_many_tuples_come_together(size):
    bolt = type("Sized", (Groups,), {"batch_size": size})
    rows = [[0, n * 10] for n in range(8)]
    _, (groups,) = run([(rows, list(range(8))), (rows[:2], ["a", "b"])], True, bolt, {})
    assert [len(group) for group in groups] == {1: [1] * 10, 3: [3, 3, 3], None: []}[size]
