"""A topology keeps the declaration beside what state and transactions make of it."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, BatchBolt, Spout, StatefulBasicBolt, TopologyBuilder, transactional
from multilang.coordination import BatchBoltExecutor
from multilang.state import ReplayableSpout
from multilang.state.bolt import Stateful
from multilang.topology.groupings import Grouping
from multilang.topology.transform import transformed


class Numbers(ReplayableSpout):
    output_fields = ["n"]


class Total(StatefulBasicBolt):
    output_fields = ["total"]


class Show(BasicBolt):
    output_fields = ["shown"]


class Partial(BatchBolt):
    output_fields = ["tx", "n"]


class Store(BatchBolt):
    output_fields = ["tx", "stored"]


def stateful(conf=None):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers, 2)
    builder.set_bolt("total", Total, 3, conf={"test.own": 1}).fields_grouping("numbers", "n")
    builder.set_bolt("show", Show).shuffle_grouping("total")
    return builder.build("totals", conf)


def in_transactions(conf=None):
    spout = transactional.MemoryTransactionalSpout({0: []}, ["n"], 1)
    builder = transactional.TransactionalTopologyBuilder("totals", "numbers", spout, 2)
    builder.set_bolt("partial", Partial, 3).shuffle_grouping("numbers")
    builder.set_bolt("show", Show).fields_grouping("partial", "n")
    builder.set_committer_bolt("store", Store).global_grouping("partial")
    return builder.build("totals", conf)


def shape(topology):
    """Return the declaration as comparable data, with the very components."""
    return {
        id: (spec.kind, spec.component, spec.factory, spec.tasks, spec.streams, [repr(each) for each in spec.inputs])
        for id, spec in topology.components.items()
    }


def plain(topology):
    return all(getattr(spec.component, "wrapped", None) is None for spec in topology.components.values())


@pytest.mark.parametrize("alignment", ["at-least-once", "exact"])
def test_a_stateful_topology_keeps_its_declaration(alignment):
    topology = stateful({"multilang.state.alignment": alignment})
    declared = topology.declared
    assert "$checkpointspout" in topology.components
    assert list(declared.components) == ["numbers", "total", "show"]
    assert plain(declared)
    assert not plain(topology)
    numbers, total, show = declared.components.values()
    assert (numbers.kind, numbers.factory, numbers.tasks, numbers.inputs) == ("spout", Numbers, 2, [])
    assert (total.factory, total.tasks, total.conf) == (Total, 3, {"test.own": 1})
    assert [(each.component, each.stream) for each in total.inputs] == [("numbers", "default")]
    assert list(show.streams) == ["default"]
    assert declared.declared is declared
    assert shape(transformed(declared, leaving=Stateful.transformations)) == shape(declared)


def test_a_transactional_topology_keeps_its_declaration():
    topology = in_transactions()
    declared = topology.declared
    assert "numbers/coordinator" in topology.components
    assert list(declared.components) == ["numbers", "partial", "show", "store"]
    numbers, partial, show, store = declared.components.values()
    assert (numbers.kind, type(numbers.component), numbers.tasks) == (
        "spout",
        transactional.MemoryTransactionalSpout,
        2,
    )
    assert numbers.inputs == []
    assert numbers.conf == topology["numbers"].conf
    assert type(partial.component) is type(store.component) is BatchBoltExecutor
    assert (show.factory, type(show.component)) == (Show, Show)
    assert [(each.component, each.stream) for each in show.inputs] == [("partial", "default")]
    assert repr(show.inputs[0].grouping) == repr(Grouping("fields", "n"))


@pytest.mark.parametrize("build", [stateful, in_transactions])
def test_a_conf_changes_both_forms_alike(build):
    topology = build()
    changed = topology.with_conf({"topology.max.task.parallelism": 1, "topology.debug": True}, name="other")
    for each in (changed, changed.declared):
        assert each.name == "other"
        assert each.conf["topology.debug"] is True
        assert {spec.tasks for spec in each.components.values()} == {1}
    assert list(changed.declared.components) == list(topology.declared.components)
    assert topology.declared["numbers"].tasks == 2


def test_a_topology_to_which_nothing_is_added_is_its_own_declaration():
    class Ones(Spout):
        output_fields = ["one"]

    builder = TopologyBuilder()
    builder.set_spout("ones", Ones)
    topology = builder.build("plain")
    assert topology.declared is topology
    assert topology.with_conf({"topology.debug": True}).declared.conf["topology.debug"] is True
