"""Subscriptions travel in blocks or not, and a component sees nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from multilang import (
    BasicBolt,
    CustomGrouping,
    ShellBolt,
    Spout,
    Stream,
    TopologyBuilder,
)
from multilang.component.context import Context
from multilang.drpc.spout import DRPCSpout
from multilang.exchange.hops import hops
from multilang.exchange.names import STREAM
from multilang.exchange.routes import Routes
from multilang.exchange.transform import by_blocks
from multilang.settings import EDGES
from multilang.topology import Grouping, Topology, TopologyError

BLOCK = {"multilang.exchange": "block"}
TUPLE = {"multilang.exchange": "tuple"}


class Source(Spout):
    output_fields = ("n", "key")
    output_streams = {"direct": Stream(["n"], direct=True), "$own": ["n"], "other": ["n"]}


class Asking(Source):
    questions = frozenset({"other"})


class Work(BasicBolt):
    output_fields = ("n",)


class First(CustomGrouping):
    def choose_tasks(self, source_task: int, values: Any) -> list[int]:
        return []


def build(conf: dict[str, Any], bolt: Any = Work, spout: Any = Source, own: dict[str, Any] | None = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("s", spout)
    bolt = builder.set_bolt("b", bolt, 2, conf=own).fields_grouping("s", "key").direct_grouping("s", stream="direct")
    bolt.all_grouping("s", stream="$own").custom_grouping("s", First, stream="other")
    builder.set_bolt("local", Work, 2).local_or_shuffle_grouping("s")
    return builder.build("t", conf=conf)


def edges(topology: Topology) -> set[tuple[str, str, str]]:
    found = set()
    for source, spec in topology.components.items():
        for stream, targets in spec.conf.get(EDGES, {"out": {}})["out"].items():
            found |= {(source, stream, target) for target in targets}
    return found


def test_those_that_may_travel_in_blocks() -> None:
    assert edges(by_blocks(build(BLOCK))) == {("s", "default", "b"), ("s", "default", "local")}


def test_local_or_shuffle_of_several_workers_stays() -> None:
    assert edges(by_blocks(build({**BLOCK, "topology.workers": 2}))) == {("s", "default", "b")}


def test_by_root_unless_something_else_is_wished() -> None:
    changed = by_blocks(build({}))
    assert edges(changed) == {("s", "default", "b"), ("s", "default", "local")}
    assert all(spec.conf[EDGES]["apart"] for spec in changed.components.values())


def test_tuple_by_tuple_nothing_changes() -> None:
    topology = build(TUPLE)
    assert by_blocks(topology) is topology


def test_a_captured_stream_stays() -> None:
    topology = build(BLOCK)
    assert by_blocks(topology, {("s", "default")}) is topology


def test_what_comes_of_one_tuple_may_be_all_that_is_together() -> None:
    changed = by_blocks(build({"multilang.exchange": "root"}, own=BLOCK))
    assert edges(changed) == {("s", "default", "b"), ("s", "default", "local")}
    assert {id: spec.conf[EDGES]["apart"] for id, spec in changed.components.items()} == {
        "s": True,
        "b": False,
        "local": True,
    }


def test_no_block_goes_where_it_might_be_larger_than_a_message_may_be() -> None:
    """A tuple alone may be smaller than the limit, and the process would end at the block again and again."""
    own = {"multilang.buffer.max.bytes": 500_000}
    topology = build({}, own=own)
    assert edges(by_blocks(topology)) == {("s", "default", "local")}
    assert "'multilang.buffer.max.bytes' of 'b' is 500000, and a block may have" in {
        str(hop.against).rpartition(" 524288")[0] for hop in hops(topology)
    }
    assert edges(by_blocks(build(own))) == set()
    assert edges(by_blocks(build({"multilang.buffer.max.bytes": 1 << 20}))) == edges(by_blocks(build({})))


def test_one_component_may_refuse_or_wish_alone() -> None:
    assert edges(by_blocks(build(BLOCK, own={"multilang.exchange": "tuple"}))) == {("s", "default", "local")}
    assert edges(by_blocks(build(TUPLE, own=BLOCK))) == set()


def test_what_comes_of_a_spout_that_replays_nothing_fails_alone() -> None:
    builder = TopologyBuilder()
    builder.set_spout("requests", DRPCSpout("f"))
    builder.set_spout("s", Source)
    builder.set_bolt("b", Work).shuffle_grouping("requests").shuffle_grouping("s")
    builder.set_bolt("c", Work).shuffle_grouping("b")
    builder.set_bolt("d", Work).shuffle_grouping("s")
    assert edges(by_blocks(builder.build("t", conf=BLOCK))) == {("s", "default", "d")}


def test_other_languages_and_spouts_that_ask_stay() -> None:
    shell = ShellBolt(["cat"], output_fields=["n"])
    assert edges(by_blocks(build(BLOCK, shell))) == {("s", "default", "local")}
    assert edges(by_blocks(build(BLOCK, spout=Asking))) == set()


@pytest.mark.parametrize(("key", "value"), [("multilang.exchange", "on"), ("multilang.exchange.tuples", 0)])
def test_a_wrong_setting_is_named(key: str, value: Any) -> None:
    with pytest.raises(TopologyError, match=f"conf: {key} is {value!r}; use"):
        by_blocks(build({**BLOCK, key: value}))


def test_the_context_is_as_declared() -> None:
    declared = build(BLOCK)
    changed = by_blocks(declared)
    tasks = declared.task_ids(1)
    assert STREAM in changed["s"].streams
    assert STREAM not in declared["s"].streams
    for task, component in tasks.items():
        conf = changed[component].conf if component != "__acker" else {}
        if EDGES in conf:
            shown = Routes(conf, changed.context_for(task, tasks)).context
            assert shown == Context(declared.context_for(task, tasks))


class Own(Grouping):
    __slots__ = ()

    type = "own"


def test_a_grouping_that_a_process_would_not_know_by_its_name_stays() -> None:
    builder = TopologyBuilder()
    builder.set_spout("s", Source)
    builder.set_bolt("b", Work).grouping("s", Own())
    assert edges(by_blocks(builder.build("t", conf=BLOCK))) == set()
