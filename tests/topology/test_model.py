"""Tasks, contexts and copies: what runners read from a topology."""

from __future__ import annotations

import pytest

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.spout import Spout
from multilang.component.streams import Stream
from multilang.topology import ShellBolt, ShellSpout, TopologyBuilder, TopologyError


class Source(Spout):
    output_streams = {"default": ["word", "n"], "control": ["cmd"]}


class Split(BasicBolt):
    output_streams = {
        "routed": Stream(["how", "word"], direct=True),
        "summary": ["word"],
        "default": ["word", "length"],
    }


class Sink(Bolt):
    def __init__(self, size=3):
        self.size = size
        self.seen = []


@pytest.fixture
def wire():
    """The topology whose handshakes with Storm 2.8.3 were captured."""
    builder = TopologyBuilder()
    builder.set_spout("src", Source)
    builder.set_bolt("split", Split, parallelism=2).fields_grouping("src", "word")
    (
        builder.set_bolt("sink", Sink, parallelism=2, tasks=3)
        .shuffle_grouping("split")
        .direct_grouping("split", stream="routed")
        .all_grouping("src", "control")
        .global_grouping("split", stream="summary")
    )
    return builder.build("wire")


TASKS = {"1": "__acker", "2": "sink", "3": "sink", "4": "sink", "5": "split", "6": "split", "7": "src"}


def sorted_streams(context):
    return {**context, "streams": sorted(context["streams"])}  # Storm's are in a hash map's order


class TestContext:
    def test_a_bolts_context_is_what_storm_sent(self, wire):
        assert sorted_streams(wire.context_for(6, wire.task_ids(1))) == {
            "componentid": "split",
            "source->stream->fields": {"src": {"control": ["cmd"], "default": ["word", "n"]}},
            "source->stream->grouping": {"src": {"default": {"fields": ["word"], "type": "FIELDS"}}},
            "stream->outputfields": {"default": ["word", "length"], "routed": ["how", "word"], "summary": ["word"]},
            "stream->target->grouping": {
                "default": {"sink": {"type": "SHUFFLE"}},
                "routed": {"sink": {"type": "DIRECT"}},
                "summary": {"sink": {"fields": [], "type": "FIELDS"}},
            },
            "streams": ["default", "routed", "summary"],
            "task->component": TASKS,
            "taskid": 6,
        }

    def test_a_spouts_context_is_what_storm_sent(self, wire):
        assert sorted_streams(wire.context_for(7, wire.task_ids(1))) == {
            "componentid": "src",
            "source->stream->fields": {},
            "source->stream->grouping": {},
            "stream->outputfields": {"control": ["cmd"], "default": ["word", "n"]},
            "stream->target->grouping": {
                "control": {"sink": {"type": "ALL"}},
                "default": {"split": {"fields": ["word"], "type": "FIELDS"}},
            },
            "streams": ["control", "default"],
            "task->component": TASKS,
            "taskid": 7,
        }

    def test_a_context_can_be_changed_without_harm_to_the_topology(self, wire):
        context = wire.context_for(6, wire.task_ids(1))
        context["stream->outputfields"]["default"].append("more")
        context["source->stream->grouping"]["src"]["default"]["fields"].clear()
        assert wire.context_for(6, wire.task_ids(1)) != context
        assert wire["split"].streams["default"].fields == ("word", "length")

    def test_a_system_task_has_no_context(self, wire):
        with pytest.raises(TopologyError, match="no component '__acker'"):
            wire.context_for(1, wire.task_ids(1))


class TestTasks:
    def test_they_are_numbered_through_all_components_in_the_order_of_their_ids(self, wire):
        assert wire.task_ids(2) == dict(enumerate(["__acker"] * 2 + ["sink"] * 3 + ["split"] * 2 + ["src"], 1))

    def test_without_ackers_there_is_no_acker(self, wire):
        assert wire.task_ids(0)[1] == "sink"

    def test_ids_are_sorted_as_java_sorts_them(self):
        builder = TopologyBuilder()
        for id in ("\uff5e", "\U0001f600", "a", "Z", "$x"):
            builder.set_spout(id, Source)
        assert list(builder.build().task_ids(1).values()) == ["$x", "Z", "__acker", "a", "\U0001f600", "\uff5e"]

    @pytest.mark.parametrize(
        ("arguments", "conf", "topology_conf", "executors", "tasks"),
        [
            ({}, {}, {}, 1, 1),
            ({"parallelism": 4}, {}, {}, 4, 4),
            ({"parallelism": 4, "tasks": 8}, {}, {}, 4, 8),
            ({"parallelism": 4, "tasks": 2}, {}, {}, 2, 2),
            ({"parallelism": 4}, {"topology.tasks": 6}, {}, 4, 6),
            ({"parallelism": 4}, {}, {"topology.tasks": 6}, 4, 6),
            ({"parallelism": 4}, {"topology.tasks": 5}, {"topology.tasks": 6}, 4, 5),
            ({"parallelism": 4, "tasks": 3}, {}, {"topology.tasks": 6}, 3, 3),
            ({"parallelism": 4}, {}, {"topology.max.task.parallelism": 2}, 2, 2),
            ({"parallelism": 4}, {"topology.max.task.parallelism": 1}, {"topology.max.task.parallelism": 2}, 1, 1),
        ],
    )
    def test_their_number_follows_arguments_and_conf_as_in_storm(
        self, arguments, conf, topology_conf, executors, tasks
    ):
        builder = TopologyBuilder()
        builder.set_spout("src", Source, conf=conf, **arguments)
        spec = builder.build(conf=topology_conf)["src"]
        assert (spec.parallelism, spec.tasks) == (executors, tasks)


class TestCopies:
    def test_each_task_has_a_component_that_shares_nothing(self, wire):
        one, two = wire["sink"].new(), wire["sink"].new()
        one.seen.append("x")
        assert two.seen == []
        assert wire["sink"].component.seen == []

    def test_an_instance_keeps_what_it_was_made_with(self):
        builder = TopologyBuilder()
        builder.set_spout("src", Source)
        builder.set_bolt("sink", Sink(size=9), parallelism=2).shuffle_grouping("src")
        spec = builder.build()["sink"]
        assert spec.new().size == 9
        assert spec.new().seen is not spec.component.seen

    def test_a_command_stays_the_same(self):
        builder = TopologyBuilder()
        builder.set_spout("src", ShellSpout(["words-of", "ruby"], output_fields=["a"]))
        assert builder.build()["src"].new().command == ["words-of", "ruby"]

    def test_other_conf_gives_another_topology_and_leaves_this_one(self, wire):
        small = wire.with_conf({"topology.max.task.parallelism": 1, "x": 2}, name="small")
        assert (small.name, small.conf["x"], len(small.task_ids(0))) == ("small", 2, 3)
        assert (wire.name, wire.conf, len(wire.task_ids(0))) == ("wire", {}, 6)


class TestLookingUp:
    def test_spouts_and_bolts_are_apart(self, wire):
        assert list(wire.spouts) == ["src"]
        assert list(wire.bolts) == ["split", "sink"]

    def test_a_component_by_a_wrong_id_is_answered_with_the_nearest(self, wire):
        with pytest.raises(TopologyError, match=r"no component 'spilt'; did you mean 'split'\?"):
            wire["spilt"]

    def test_subscribers_come_with_their_input(self, wire):
        assert [(spec.id, input_.stream) for spec, input_ in wire.subscribers("src")] == [
            ("split", "default"),
            ("sink", "control"),
        ]


class TestShellComponents:
    @pytest.mark.parametrize(
        ("command", "text"),
        [
            ("node split.js", r"write \['node', 'split.js'\]"),
            ([], "a list of words"),
            (["node", 7], "a list of words"),
            (["node", "a\0b"], "a list of words"),
            (["", "a"], "names no program"),
        ],
    )
    def test_a_command_that_is_none_is_refused(self, command, text):
        with pytest.raises(TopologyError, match=text):
            ShellBolt(command, output_fields=["word"])

    def test_wrong_streams_are_refused_under_the_command(self):
        with pytest.raises(TopologyError, match=r"ShellSpout\(\['a'\]\): the fields of a stream are a list"):
            ShellSpout(["a"], output_fields="word")
