"""Bolts that keep tuples longer than an id can wait are refused wherever ids are coordinated, each with its own reason."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, BatchBolt, BatchingBolt, Spout, StatefulBasicBolt, StatefulBolt
from multilang.coordination import BatchBoltExecutor, CoordinatedBolt, KeyedFairBolt
from multilang.drpc import LinearDRPCTopologyBuilder
from multilang.topology import TopologyBuilder, TopologyError
from multilang.transactional import Committer, MemoryTransactionalSpout, TransactionalTopologyBuilder
from multilang.windowing import StatefulWindowedBolt, Tumbling, WindowedBolt

HERE = "tests.coordination.test_unfit"
STATE, WINDOWS = "until a checkpoint", "until their windows end"
applied: list[str] = []


class Ids(Spout):
    output_fields = ["id", "n"]


class Counts(StatefulBolt):
    output_fields = ["id", "result"]


class BasicCounts(StatefulBasicBolt):
    output_fields = ["id", "result"]


class Windows(WindowedBolt):
    output_fields = ["id", "result"]
    window = Tumbling(3)

    def process_window(self, window):
        pass


class SavedWindows(StatefulWindowedBolt):
    output_fields = ["id", "result"]
    window = Tumbling(3)

    def process_window(self, window):
        pass


class Groups(BatchingBolt):
    output_fields = ["id", "result"]


class Audited(BasicBolt):
    output_fields = ["id", "result"]
    transformations = [f"{HERE}:audited"]


class AuditedBatch(BatchBolt):
    output_fields = ["id", "result"]
    transformations = [f"{HERE}:audited"]


def audited(topology):
    applied.append(topology.name)
    return topology


def step(bolt):
    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(bolt)
    return builder.build()


def in_transactions(bolt):
    builder = TransactionalTopologyBuilder("words", "spout", MemoryTransactionalSpout({0: [["a"]]}, ["word"], 1))
    builder.set_bolt("x", bolt).shuffle_grouping("spout")
    return builder.build()


def committing(bolt):
    builder = TransactionalTopologyBuilder("words", "spout", MemoryTransactionalSpout({0: [["a"]]}, ["word"], 1))
    builder.set_committer_bolt("x", bolt).shuffle_grouping("spout")
    return builder.build()


def by_hand(bolt):
    builder = TopologyBuilder()
    builder.set_bolt("x", CoordinatedBolt(bolt() if isinstance(bolt, type) else bolt))
    return builder.build("by-hand")


BUILDERS = [(step, "request"), (in_transactions, "transaction"), (committing, "transaction")]
STATEFUL = [(Counts, STATE), (BasicCounts, STATE)]
UNFIT = [
    *((*place, *bolt) for place in BUILDERS for bolt in [*STATEFUL, (Windows, WINDOWS), (SavedWindows, WINDOWS)]),
    *((by_hand, "id", *bolt) for bolt in [*STATEFUL, (SavedWindows, STATE)]),
]


@pytest.mark.parametrize(("place", "unit", "bolt", "reason"), UNFIT)
@pytest.mark.parametrize("given", [lambda bolt: bolt, lambda bolt: bolt(), KeyedFairBolt])
def test_a_bolt_that_keeps_tuples_is_refused_with_its_own_reason(place, unit, bolt, reason, given):
    with pytest.raises(TopologyError, match=rf"{bolt.__name__}\): .* {reason}, for which no {unit} can wait; write a"):
        place(given(bolt))


def test_a_bolt_whose_groups_end_at_ticks_is_fit():
    assert "bolt0" in step(Groups).components
    assert CoordinatedBolt(Groups()).sources == {}


def test_a_windowed_bolt_by_hand_has_the_settings_of_its_windows():
    builder = TopologyBuilder()
    builder.set_spout("ids", Ids)
    builder.set_bolt("x", CoordinatedBolt(Windows())).fields_grouping("ids", "id")
    assert builder.build("by-hand")["x"].conf["topology.bolts.window.length.count"] == 3


@pytest.mark.parametrize(
    ("place", "bolt"),
    [
        (step, Audited),
        (step, AuditedBatch),
        (step, KeyedFairBolt(Audited)),
        (in_transactions, Audited),
        (committing, type("Commits", (AuditedBatch, Committer), {})),
    ],
)
def test_what_a_coordinated_bolt_asks_of_its_topology_is_done(place, bolt):
    applied.clear()
    topology = place(bolt)
    assert applied == [topology.name]


def test_what_is_asked_through_wrappers_by_hand_is_done():
    for bolt in (CoordinatedBolt(Audited()), CoordinatedBolt(BatchBoltExecutor(AuditedBatch()))):
        assert bolt.transformations == [f"{HERE}:audited"]
