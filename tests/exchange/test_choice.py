"""The library puts into one block what comes of many tuples where this is known to be safe, unless somebody says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from multilang import (
    BasicBolt,
    BatchingBolt,
    Bolt,
    LingeringBolt,
    ReliableSpout,
    ShellBolt,
    ShellSpout,
    Spout,
    TopologyBuilder,
)
from multilang.compat.logged import LogInfo
from multilang.connectors import (
    CollectingSink,
    FileSink,
    FileSpout,
    FromIterable,
    KafkaSink,
    KafkaSpout,
    RedisStreamSink,
    RedisStreamSpout,
    SqlSink,
    SqlSpout,
    TailSpout,
    TimerSpout,
    WebhookSink,
)
from multilang.exchange.choice import acks_by_itself
from multilang.exchange.hops import hops
from multilang.exchange.transform import by_blocks
from multilang.settings import EDGES
from multilang.state import PositionSpout, ReplayableSpout, StatefulBasicBolt, StatefulBolt
from multilang.streams.asynchronous import AsyncProgram
from multilang.streams.bolts import ChainBolt, CombiningBolt, StatefulChainBolt, StatefulCombiningBolt
from multilang.streams.windows import WindowProgram
from multilang.topology import Topology
from multilang.windowing import WindowedBolt


class Emits(ReliableSpout):
    output_fields = ("n",)


class Works(BasicBolt):
    output_fields = ("n",)


class Raw(Bolt):
    output_fields = ("n",)


class Acks(Bolt):
    """Acks each tuple in process."""

    output_fields = ("n",)
    acks_by_itself = True

    def process(self, tup: Any) -> None:
        self.ack(tup)


class Keeps(Acks):
    """Does otherwise than the class that it inherits from."""

    def process(self, tup: Any) -> None: ...


class Ticks(Acks):
    def process_tick(self, tup: Any) -> None: ...


class Lingers(LingeringBolt):
    output_fields = ("n",)


class LingersLong(Lingers):
    linger_secs = 10


class LingersOtherwise(Lingers):
    def process(self, tup: Any) -> None: ...


class Batches(BatchingBolt):
    output_fields = ("n",)


class Drops(Emits):
    def fail(self, tup_id: Any) -> None: ...


class Again(Drops):
    emits_again = True


class Never(Emits):
    max_replays = 0


class Plain(Spout):
    output_fields = ("n",)


def line(*bolts: Any, spout: Any = Emits, conf: dict[str, Any] | None = None) -> Topology:
    """Return a spout with bolts behind each other, ``b0`` and so on."""
    builder = TopologyBuilder()
    builder.set_spout("s", spout)
    before = "s"
    for number, bolt in enumerate(bolts):
        builder.set_bolt(f"b{number}", bolt).shuffle_grouping(before)
        before = f"b{number}"
    return builder.build("line", conf=conf)


def ways(topology: Topology) -> list[str]:
    return [str(hop) for hop in hops(topology)]


def may(topology: Topology) -> bool:
    """Return whether what comes of many tuples is together in all blocks."""
    return all(hop.by_block and hop.by_root is None for hop in hops(topology))


@pytest.mark.parametrize(
    ("kind", "acks"),
    [
        (BasicBolt, True),  # when process returns, or at its exception
        (LogInfo, True),
        (CollectingSink, True),
        (ChainBolt, True),
        (LingeringBolt, True),  # by a timer of a moment
        (RedisStreamSink, True),
        (KafkaSink, True),
        (WebhookSink, True),
        (CombiningBolt, True),
        (AsyncProgram, True),  # when its calls are done
        (Acks, True),  # says so
        (Ticks, True),
        (Bolt, False),  # nobody knows
        (Keeps, False),
        (BatchingBolt, False),  # at ticks, which may be far apart
        (LingersLong, False),
        (LingersOtherwise, False),
        (WindowedBolt, False),  # when a window is over
        (WindowProgram, False),
        (StatefulBolt, False),  # at a checkpoint
        (StatefulBasicBolt, False),
        (StatefulChainBolt, False),
        (StatefulCombiningBolt, False),
    ],
)
def test_bolts(kind: type[Bolt], acks: bool) -> None:
    assert acks_by_itself(kind.__new__(kind)) == acks


def test_a_sink_that_waits_for_a_file_to_be_full_keeps_its_tuples(tmp_path: Any) -> None:
    assert not acks_by_itself(FileSink(str(tmp_path), roll_secs=60))
    assert acks_by_itself(SqlSink(f"sqlite:///{tmp_path}/x", "insert into t values (?)"))


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        (ReliableSpout, True),
        (ReplayableSpout, True),
        (PositionSpout, True),
        (KafkaSpout, True),
        (RedisStreamSpout, True),
        (FromIterable, True),
        (FileSpout, True),
        (TailSpout, True),
        (SqlSpout, True),
        (TimerSpout, True),
        (Again, True),  # says so
        (Spout, False),
        (Drops, False),  # has a fail of its own
        (Never, False),  # is told to drop what fails
    ],
)
def test_spouts(kind: type[Spout], again: bool) -> None:
    topology = line(Works)
    topology.components["s"].component = kind.__new__(kind)
    assert may(topology) == again


def test_all_that_comes_of_a_spout_is_looked_at() -> None:
    assert may(line(Works, Lingers, Acks))
    reason = "'b2' may hold tuples until others arrive; if not, set acks_by_itself = True in Raw"
    assert ways(line(Works, Works, Raw)) == [f"by root: {reason}"] * 3
    assert ways(line(Works, spout=Plain)) == [
        "by root: 's' may drop what fails; if not, set emits_again = True in Plain"
    ]
    assert ways(line(Works, ShellBolt(["cat"], output_fields=["n"])))[0] == (
        "by root: 'b1' is a program of its own, which may hold tuples until others arrive"
    )
    shell = line(Works, Works, spout=ShellSpout(["cat"], output_fields=["n"]))
    assert ways(shell) == [
        "tuple by tuple: 's' is a program of its own",
        "by root: 's' is a program of its own, which may drop what fails",
    ]


def test_one_of_two_spouts_is_enough() -> None:
    builder = TopologyBuilder()
    builder.set_spout("emits", Emits)
    builder.set_spout("plain", Plain)
    builder.set_bolt("both", Works).shuffle_grouping("emits").shuffle_grouping("plain")
    builder.set_bolt("last", Works).shuffle_grouping("both")
    found = {hop.key[:1] + hop.key[2:]: hop.by_root is None for hop in hops(builder.build("t"))}
    assert found == {("emits", "both"): True, ("plain", "both"): False, ("both", "last"): False}


def test_a_cycle_would_tie_tuples_to_later_ones_without_end() -> None:
    builder = TopologyBuilder()
    builder.set_spout("s", Emits)
    builder.set_bolt("once", Works).shuffle_grouping("s")
    builder.set_bolt("again", Works).shuffle_grouping("once").shuffle_grouping("again")
    assert ways(builder.build("t")) == ["by root: its tuples may come back to 'again'"] * 3


def test_nothing_bounds_what_is_not_acked() -> None:
    (way,) = ways(line(Works, conf={"topology.acker.executors": 0}))
    assert way == "by root: without ackers ('topology.acker.executors' is 0) nothing bounds the tuples in flight"


def test_behind_a_hop_of_single_tuples_what_failed_could_not_travel_apart() -> None:
    topology = line(Works, Works, Works)
    topology.components["b0"].conf["multilang.exchange"] = "tuple"
    assert [hop.by_root is None for hop in hops(topology)] == [True, False, False]
    assert ways(topology)[2] == "by root: 'multilang.exchange' of 'b0' is 'tuple'"


@pytest.mark.parametrize("how", ["tuple", "root", "block"])
def test_what_is_said_holds(how: str) -> None:
    changed = by_blocks(line(Works, Raw, spout=Plain, conf={"multilang.exchange": how}))
    found = [spec.conf[EDGES] for spec in changed.components.values() if EDGES in spec.conf]
    assert [each["apart"] for each in found] == {"tuple": [], "root": [True] * 3, "block": [False] * 3}[how]
    assert not any("careful" in each for each in found)


def test_what_is_chosen_is_told_to_the_processes() -> None:
    found = by_blocks(line(Works, Acks)).components
    assert [(spec.conf[EDGES]["apart"], spec.conf[EDGES]["careful"]) for spec in found.values()] == [(False, True)] * 3
    found = by_blocks(line(Works, Raw)).components
    # What only Raw itself emits is with nothing else, too: it gets tuples that are apart.
    assert [spec.conf[EDGES]["apart"] for spec in found.values()] == [True] * 3


def test_many_bolts_declared_the_wrong_way_round() -> None:
    builder = TopologyBuilder()
    for number in reversed(range(1500)):
        builder.set_bolt(f"b{number}", Works).shuffle_grouping(f"b{number - 1}" if number else "s")
    builder.set_spout("s", Plain)
    assert not may(builder.build("t"))
