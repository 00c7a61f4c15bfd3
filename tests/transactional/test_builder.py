"""The topology that the builder makes of the declarations, and its refusals."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, BatchBolt, Bolt, ShellBolt, StatefulBasicBolt, TopologyBuilder
from multilang.coordination import COORD_STREAM
from multilang.topology import TopologyError
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionalSpout,
    TransactionalTopologyBuilder,
)
from multilang.transactional.names import BATCH_STREAM, COMMIT_STREAM, ID

SPOUT = MemoryTransactionalSpout({0: [["moon"]]}, ["word"], 1)
COORDINATOR = "spout/coordinator"
TICKS = "topology.tick.tuple.freq.secs"


class Pass(BasicBolt):
    output_fields = ["tx", "word"]


class Batch(BatchBolt):
    output_fields = ["tx", "word"]
    component_conf = {"own": 1}


class Commit(Batch, Committer):
    pass


class NeedsArguments(TransactionalSpout):
    def __init__(self, needed):
        pass


def inputs(topology, id):
    return {(each.component, each.stream): each.grouping.type for each in topology[id].inputs}


def test_a_spout_becomes_a_coordinator_and_emitters_and_bolts_are_coordinated():
    builder = TransactionalTopologyBuilder("words", "spout", SPOUT, parallelism=3, conf={"mine": 7})
    builder.set_bolt("a", Pass, 2).shuffle_grouping("spout")
    builder.set_bolt("b", Batch).fields_grouping("a", "word").global_grouping("spout")
    builder.set_bolt("c", Commit, 4).all_grouping("b")
    builder.set_committer_bolt("d", Batch()).partial_key_grouping("c", "word")
    topology = builder.build()
    assert topology.name == "words"
    assert (topology[COORDINATOR].kind, topology[COORDINATOR].tasks) == ("spout", 1)
    assert (topology["spout"].kind, topology["spout"].tasks) == ("bolt", 3)
    assert topology[COORDINATOR].conf[ID] == topology["spout"].conf[ID] == "words"
    assert topology[COORDINATOR].conf["mine"] == topology["spout"].conf["mine"] == 7
    assert set(topology[COORDINATOR].streams) == {BATCH_STREAM, COMMIT_STREAM}
    assert inputs(topology, "spout") == {(COORDINATOR, BATCH_STREAM): "all"}
    assert inputs(topology, "a") == {("spout", "default"): "shuffle", ("spout", COORD_STREAM): "direct"}
    assert inputs(topology, "b") == {
        ("a", "default"): "fields",
        ("spout", "default"): "global",
        ("a", COORD_STREAM): "direct",
        ("spout", COORD_STREAM): "direct",
    }
    for id, source, grouping in (("c", "b", "all"), ("d", "c", "partial_key")):
        assert inputs(topology, id) == {
            (source, "default"): grouping,
            (source, COORD_STREAM): "direct",
            (COORDINATOR, COMMIT_STREAM): "all",
        }
    assert topology["b"].conf == {"own": 1, TICKS: 15, ID: "words"}
    assert builder.build("again")["d"].inputs == topology["d"].inputs


def test_a_spout_that_commits_hears_of_commits_and_ticks_may_be_the_topologys():
    builder = TransactionalTopologyBuilder("w", "spout", OpaqueMemoryTransactionalSpout({0: []}, ["word"], 1))
    builder.set_bolt("a", Pass).shuffle_grouping("spout")
    topology = builder.build(conf={TICKS: 1})
    assert inputs(topology, "spout") == {(COORDINATOR, BATCH_STREAM): "all", (COORDINATOR, COMMIT_STREAM): "all"}
    assert TICKS not in topology["a"].conf
    assert TICKS not in topology["spout"].conf


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda b: b.set_bolt("x", Bolt), "BasicBolt or a BatchBolt"),
        (lambda b: b.set_bolt("x", ShellBolt(["node"])), "BasicBolt or a BatchBolt"),
        (lambda b: b.set_bolt("x", 5), "BasicBolt or a BatchBolt"),
        (lambda b: b.set_bolt("x", StatefulBasicBolt), "updates a TransactionalMap"),
        (lambda b: b.set_committer_bolt("x", Pass), "a committer is a BatchBolt"),
        (lambda b: b.set_bolt("a", Pass), "already a bolt 'a'"),
        (lambda b: (b.set_bolt("x", Pass), b.build()), "'x' subscribes to nothing"),
        (lambda b: (b.set_bolt("x", Pass).shuffle_grouping("nobody"), b.build()), "nobody"),
        (
            lambda b: (b.set_bolt("x", Pass).all_grouping(COORDINATOR, stream=BATCH_STREAM), b.build()),
            "the coordinator",
        ),
        (
            lambda b: (
                b.set_bolt("x", Pass).shuffle_grouping("y"),
                b.set_bolt("y", Pass).shuffle_grouping("x").shuffle_grouping("spout"),
                b.build(),
            ),
            "can't have a cycle",
        ),
    ],
)
def test_what_could_not_be_committed_is_refused(declare, message):
    builder = TransactionalTopologyBuilder("words", "spout", SPOUT)
    builder.set_bolt("a", Pass).shuffle_grouping("spout")
    with pytest.raises(TopologyError, match=message):
        declare(builder)


@pytest.mark.parametrize(
    ("id", "spout", "message"),
    [
        ("", SPOUT, "printable text without '/'"),
        ("a/b", SPOUT, "printable text without '/'"),
        (7, SPOUT, "printable text without '/'"),
        ("..", SPOUT, "printable text without '/'"),
        ("a\0b", SPOUT, "printable text without '/'"),
        ("a\ud800", SPOUT, "printable text without '/'"),
        ("words", Pass, "give a TransactionalSpout"),
        ("words", NeedsArguments, "give an instance"),
    ],
)
def test_a_spout_or_an_id_that_is_none_is_refused(id, spout, message):
    with pytest.raises(TopologyError, match=message):
        TransactionalTopologyBuilder(id, "spout", spout)


def test_a_plain_builders_bolt_can_be_no_part_of_it():
    builder = TopologyBuilder()
    with pytest.raises(TopologyError):
        builder.set_spout("spout", SPOUT)
