"""The builder's refusals, and what they say to write instead."""

from __future__ import annotations

import threading

import pytest

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.component.streams import Stream
from multilang.topology import CustomGrouping, Grouping, Input, ShellBolt, ShellSpout, TopologyBuilder, TopologyError


class Sentences(Spout):
    output_fields = ["sentence"]
    output_streams = {"errors": ["line", "reason"]}


class Split(BasicBolt):
    output_fields = ["word", "length"]
    output_streams = {"routed": Stream(["word"], direct=True)}


class Count(Bolt):
    output_fields = ["word", "count"]
    component_conf = {"topology.tick.tuple.freq.secs": 5, "count.top": 10}


class Silent(Bolt):
    pass


class NeedsArguments(Bolt):
    def __init__(self, size):
        self.size = size


class Holder(BasicBolt):
    output_fields = ["word"]

    def __init__(self, thing):
        self.settings = {"deep": [thing]}


class Everywhere(CustomGrouping):
    def choose_tasks(self, source_task, values):
        return []


class Locked(Everywhere):
    def __init__(self):
        self.lock = threading.Lock()


@pytest.fixture
def builder():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split).shuffle_grouping("sentences")
    return builder


def refuses(text):
    return pytest.raises(TopologyError, match=text)


class TestDeclaring:
    def test_each_grouping_method_subscribes_in_its_way(self, builder):
        custom = Everywhere()
        builder.set_spout("more", Sentences())
        builder.set_spout("yet-more", Sentences())
        builder.set_bolt("all", Silent).all_grouping("sentences").all_grouping("sentences", "errors")
        (
            builder.set_bolt("mixed", Silent)
            .shuffle_grouping("split")
            .fields_grouping("sentences", "reason", "line", stream="errors")
            .direct_grouping("split", stream="routed")
            .global_grouping("sentences")
            .none_grouping("more")
            .local_or_shuffle_grouping("more", "errors")
            .partial_key_grouping("yet-more", ["sentence"])
            .custom_grouping("yet-more", custom, stream="errors")
        )
        topology = builder.build("mixed")
        assert topology["mixed"].inputs == [
            Input("split", "default", Grouping("shuffle")),
            Input("sentences", "errors", Grouping("fields", ["reason", "line"])),
            Input("split", "routed", Grouping("direct")),
            Input("sentences", "default", Grouping("global")),
            Input("more", "default", Grouping("none")),
            Input("more", "errors", Grouping("local_or_shuffle")),
            Input("yet-more", "default", Grouping("partial_key", ["sentence"])),
            Input("yet-more", "errors", Grouping("custom", custom=custom)),
        ]

    def test_a_source_may_be_declared_after_its_subscriber(self):
        builder = TopologyBuilder()
        builder.set_bolt("split", Split).shuffle_grouping("sentences")
        builder.set_spout("sentences", Sentences)
        assert list(builder.build().components) == ["split", "sentences"]

    def test_a_custom_grouping_may_be_a_class(self, builder):
        builder.set_bolt("any", Silent).custom_grouping("split", Everywhere)
        assert isinstance(builder.build()["any"].inputs[0].grouping.custom, Everywhere)

    def test_the_builders_conf_wins_over_the_classs(self, builder):
        builder.set_bolt("count", Count, conf={"count.top": 3}).fields_grouping("split", "word")
        assert builder.build()["count"].conf == {"topology.tick.tuple.freq.secs": 5, "count.top": 3}

    def test_a_component_of_another_language_declares_streams_and_conf(self):
        builder = TopologyBuilder()
        builder.set_spout("words", ShellSpout(["words-of", "ruby"], output_fields=["word"]))
        bolt = ShellBolt(["node-bolt"], output_streams={"out": Stream(["x"], direct=True)}, conf={"a": 1})
        builder.set_bolt("node", bolt, conf={"b": 2}).shuffle_grouping("words")
        spec = builder.build()["node"]
        assert spec.command == ["node-bolt"]
        assert spec.streams == {"out": Stream(["x"], direct=True)}
        assert spec.conf == {"a": 1, "b": 2}

    def test_what_was_built_does_not_change_with_the_builder(self, builder):
        first = builder.build("first")
        builder.set_bolt("count", Count).fields_grouping("split", "word")
        assert list(first.components) == ["sentences", "split"]
        assert list(builder.build("second").components) == ["sentences", "split", "count"]

    def test_without_a_name_the_topology_is_called_as_its_module(self, builder):
        assert builder.build().name == "test_builder"


class TestIds:
    def test_a_duplicate_id_is_refused(self, builder):
        with refuses("already a spout 'sentences'; give this bolt another id"):
            builder.set_bolt("sentences", Split)

    def test_storms_own_prefix_is_refused(self, builder):
        with refuses("'__acker': ids that start with '__' are Storm's own; write 'acker'"):
            builder.set_bolt("__acker", Split)

    @pytest.mark.parametrize("id", ["", " split", "split\n", "\ud800"])
    def test_an_id_that_can_not_be_shown_is_refused(self, builder, id):
        with refuses("an id is printable text"):
            builder.set_bolt(id, Split)

    def test_an_id_that_is_no_string_is_refused(self, builder):
        with refuses("7: an id is a string"):
            builder.set_bolt(7, Split)

    @pytest.mark.parametrize("id", ["orders/coordinator", "$checkpointspout", "größe"])
    def test_what_storm_takes_for_an_id_is_taken(self, builder, id):
        builder.set_bolt(id, Split).shuffle_grouping("sentences")
        assert id in builder.build().components

    @pytest.mark.parametrize("name", ["a/b", "a.b", "a:b", "a\\b"])
    def test_a_topology_name_that_storm_refuses_is_refused_with_another(self, builder, name):
        with refuses("write 'a-b'"):
            builder.build(name)

    def test_an_empty_topology_name_is_refused(self, builder):
        with refuses("printable text such as 'word-count'"):
            builder.build("")

    def test_a_stream_with_storms_own_prefix_is_refused(self):
        builder = TopologyBuilder()
        builder.set_spout("words", ShellSpout(["x"], output_streams={"__tick": ["a"]}))
        with refuses("spout 'words': stream '__tick': ids that start with '__' are Storm's own; write 'tick'"):
            builder.build()


class TestNumbers:
    @pytest.mark.parametrize("number", [0, -1, 1.5, "2", True, None])
    def test_parallelism_below_one_or_no_number_is_refused(self, builder, number):
        with refuses("bolt 'count': parallelism is a number from 1 on"):
            builder.set_bolt("count", Count, parallelism=number)

    @pytest.mark.parametrize("number", [0, -1, 1.5, "2", False])
    def test_tasks_below_one_or_no_number_are_refused(self, builder, number):
        with refuses("bolt 'count': tasks is a number from 1 on"):
            builder.set_bolt("count", Count, tasks=number)

    def test_two_numbers_of_tasks_that_differ_are_refused(self, builder):
        with refuses("tasks=2 and conf 'topology.tasks': 3 differ"):
            builder.set_bolt("count", Count, tasks=2, conf={"topology.tasks": 3})

    @pytest.mark.parametrize("key", ["topology.tasks", "topology.max.task.parallelism"])
    def test_a_number_in_the_conf_that_is_none_is_refused(self, builder, key):
        with refuses(f"bolt 'count': conf: {key} is 'many'; use a whole number from 1"):
            builder.set_bolt("count", Count, conf={key: "many"})


class TestConf:
    def test_a_value_that_json_lacks_is_named(self, builder):
        with refuses(r"bolt 'count': conf: 'count.stop' can't be sent as JSON: \{'a'\} is a set"):
            builder.set_bolt("count", Count, conf={"count.stop": {"a"}})

    def test_it_is_found_however_deep(self, builder):
        with refuses("the topology's conf: 'a' can't be sent as JSON: the key .* of a dict is an int"):
            builder.build(conf={"a": [{"b": {1: 2}}]})

    def test_a_key_that_is_no_string_is_named(self, builder):
        with refuses("the topology's conf: the key 7 is no string; conf is sent as JSON, so write '7'"):
            builder.build(conf={7: 1})

    def test_conf_that_is_no_dict_is_refused(self, builder):
        with refuses("is a dict of settings"):
            builder.build(conf=[("a", 1)])

    def test_a_classs_own_conf_is_checked_too(self, builder):
        class Odd(Bolt):
            component_conf = {"when": object()}

        with refuses("bolt 'odd': component_conf of Odd: 'when' can't be sent as JSON"):
            builder.set_bolt("odd", Odd)


class TestComponents:
    def test_a_bolt_given_as_a_spout_is_sent_to_the_right_method(self, builder):
        with refuses("'x' is a bolt, Split: add it with set_bolt"):
            builder.set_spout("x", Split())
        with refuses("'x' is a spout, ruby a.rb: add it with set_spout"):
            builder.set_bolt("x", ShellSpout(["ruby", "a.rb"]))

    @pytest.mark.parametrize(
        "thing", [lambda tup: None, "split.py", int, None], ids=["lambda", "text", "class", "None"]
    )
    def test_what_is_no_component_is_refused(self, builder, thing):
        with refuses(
            r"bolt 'x': give an instance or a subclass of Bolt, ShellBolt\(\[command, ...\]\) or JavaBolt\(class\), not"
        ):
            builder.set_bolt("x", thing)

    def test_a_class_that_needs_arguments_is_refused(self, builder):
        with refuses(r"NeedsArguments\(\) failed: .*'size'; give an instance, NeedsArguments\(...\)"):
            builder.set_bolt("x", NeedsArguments)

    def test_wrong_streams_are_refused_under_the_components_name(self, builder):
        class Wrong(Bolt):
            output_fields = "word"

        with refuses(r"bolt 'x' \(Wrong\): the fields of a stream are a list"):
            builder.set_bolt("x", Wrong)

    @pytest.mark.parametrize(
        ("thing", "name"),
        [(threading.Lock(), "lock"), ((n for n in [1]), "generator"), (threading, "module")],
        ids=["lock", "generator", "module"],
    )
    def test_a_component_that_can_not_be_copied_is_refused_with_the_part_at_fault(self, builder, thing, name):
        builder.set_bolt("holder", Holder(thing)).shuffle_grouping("split")
        with refuses(
            rf"bolt 'holder': self\.settings\['deep'\]\[0\] of Holder is a {name}, .* create it in initialize\(\)"
        ):
            builder.build()

    def test_a_custom_grouping_that_can_not_be_copied_is_refused(self, builder):
        builder.set_bolt("any", Silent).custom_grouping("split", Locked())
        with refuses("bolt 'any' in its custom grouping of 'split': self.lock of Locked is a lock"):
            builder.build()

    @pytest.mark.parametrize(
        "thing",
        [len, lambda: 0, Split, [1, {"a": {2}}], b"x"],
        ids=["builtin", "lambda", "class", "containers", "bytes"],
    )
    def test_a_component_holds_whatever_can_be_copied(self, builder, thing):
        builder.set_bolt("holder", Holder(thing)).shuffle_grouping("split")
        spec = builder.build()["holder"]
        assert type(spec.new().settings["deep"][0]) is type(thing)

    def test_a_class_whose_instances_hold_a_lock_runs_since_each_task_makes_its_own(self, builder):
        class OwnLock(BasicBolt):
            def __init__(self):
                self.lock = threading.Lock()

        builder.set_bolt("own", OwnLock).shuffle_grouping("split")
        spec = builder.build()["own"]
        assert spec.new().lock is not spec.new().lock


class TestSubscriptions:
    def test_an_unknown_component_is_refused_with_the_nearest(self, builder):
        builder.set_bolt("count", Count).fields_grouping("spilt", "word")
        with refuses(r"bolt 'count' subscribes to 'spilt', but there is no such component; did you mean 'split'\?"):
            builder.build()

    def test_with_nothing_near_it_shows_what_there_is(self, builder):
        builder.set_bolt("count", Count).fields_grouping("xyz", "word")
        with refuses("write one of 'count', 'sentences', 'split'"):
            builder.build()

    def test_a_system_component_is_refused_with_how_to_get_ticks(self, builder):
        builder.set_bolt("count", Count).all_grouping("__system", "__tick")
        with refuses("'__system' is Storm's own; for ticks, give the bolt conf="):
            builder.build()

    def test_an_unknown_stream_is_refused_with_the_nearest(self, builder):
        builder.set_bolt("log", Silent).shuffle_grouping("sentences", stream="error")
        with refuses(r"stream 'error' of 'sentences', which declares no such stream; did you mean 'errors'\?"):
            builder.build()

    def test_a_source_without_streams_is_told_to_declare_one(self, builder):
        builder.set_bolt("silent", Silent).shuffle_grouping("split")
        builder.set_bolt("log", Silent).shuffle_grouping("silent")
        with refuses(r"stream 'default' of 'silent'.* give its class output_fields = "):
            builder.build()

    @pytest.mark.parametrize("method", ["fields_grouping", "partial_key_grouping"])
    def test_an_undeclared_field_is_refused_with_the_nearest(self, builder, method):
        getattr(builder.set_bolt("count", Count), method)("split", "wordd")
        with refuses(r"groups stream 'default' of 'split' by the field 'wordd'.* did you mean 'word'\?"):
            builder.build()

    def test_a_field_of_another_stream_of_the_source_is_refused(self, builder):
        builder.set_bolt("count", Count).fields_grouping("sentences", "reason")
        with refuses("by the field 'reason', which the stream does not declare; write 'sentence'"):
            builder.build()

    def test_direct_grouping_on_a_regular_stream_is_refused(self, builder):
        builder.set_bolt("count", Count).direct_grouping("split")
        with refuses(
            r"not direct; declare it with Stream\(\['word', 'length'\], direct=True\), or write another grouping"
        ):
            builder.build()

    def test_regular_grouping_on_a_direct_stream_is_refused(self, builder):
        builder.set_bolt("count", Count).local_or_shuffle_grouping("split", stream="routed")
        with refuses(r"by local or shuffle grouping .* is direct.* write direct_grouping\('split', stream='routed'\)"):
            builder.build()

    def test_a_second_grouping_of_the_same_stream_is_refused(self, builder):
        declarer = builder.set_bolt("count", Count).shuffle_grouping("split")
        with refuses("already subscribes to stream 'default' of 'split', by shuffle grouping"):
            declarer.fields_grouping("split", "word")

    @pytest.mark.parametrize("method", ["fields_grouping", "partial_key_grouping"])
    def test_grouping_by_no_field_is_refused(self, builder, method):
        with refuses("names no field; write the fields after the component, or global_grouping"):
            getattr(builder.set_bolt("count", Count), method)("split")

    @pytest.mark.parametrize(
        ("fields", "why"), [(("word", "word"), "'word' twice"), (([1],), "1 which is no field name")]
    )
    def test_a_field_named_twice_or_not_by_name_is_refused(self, builder, fields, why):
        with refuses(why):
            builder.set_bolt("count", Count).fields_grouping("split", *fields)

    def test_a_component_given_itself_instead_of_its_id_is_refused(self, builder):
        with refuses("the component to subscribe to is given by its id"):
            builder.set_bolt("count", Count).shuffle_grouping(Split)

    def test_a_custom_grouping_that_is_a_function_is_refused(self, builder):
        with refuses("takes an instance of a subclass of CustomGrouping"):
            builder.set_bolt("count", Count).custom_grouping("split", lambda task, values: [1])

    def test_a_spout_that_subscribes_is_refused(self, builder):
        with refuses("spout 'more' can't subscribe to anything; make it a bolt, with set_bolt"):
            builder.set_spout("more", Sentences).shuffle_grouping("split")


class TestFlow:
    def test_a_topology_without_a_spout_is_refused(self):
        with refuses("has no spout"):
            TopologyBuilder().build("empty")

    def test_a_bolt_without_input_is_refused(self, builder):
        builder.set_bolt("lonely", Split)
        with refuses(r"bolt 'lonely' has no input; .*\.shuffle_grouping\('sentences'\)"):
            builder.build()

    def test_a_bolt_without_input_that_ticks_is_taken(self, builder):
        builder.set_bolt("clock", Split, conf={"topology.tick.tuple.freq.secs": 1})
        builder.set_bolt("after", Silent).shuffle_grouping("clock")
        assert "after" in builder.build().components

    def test_a_cycle_that_a_spout_feeds_is_taken(self, builder):
        builder.set_bolt("crawl", Split).shuffle_grouping("sentences").shuffle_grouping("parse").shuffle_grouping(
            "crawl"
        )
        builder.set_bolt("parse", Split).shuffle_grouping("crawl")
        assert len(builder.build().components) == 4

    def test_a_cycle_that_nothing_feeds_is_refused_in_the_order_of_its_flow(self, builder):
        builder.set_bolt("a", Split).shuffle_grouping("c")
        builder.set_bolt("b", Split).shuffle_grouping("a")
        builder.set_bolt("c", Split).shuffle_grouping("b")
        builder.set_bolt("behind", Silent).shuffle_grouping("b")
        with refuses("'a' -> 'b' -> 'c' -> 'a' feed each other in a cycle, but no spout feeds them; subscribe one"):
            builder.build()

    def test_a_bolt_that_feeds_only_itself_is_refused(self, builder):
        builder.set_bolt("count", Split).fields_grouping("count", "word")
        with refuses("bolt 'count' has no input but itself.* subscribe it to 'sentences' or 'split'"):
            builder.build()


@pytest.mark.parametrize("fields", [{"a", "b"}, (name for name in ["a"]), 5, [1], b"ab"])
def test_fields_have_an_order(fields: object) -> None:
    with pytest.raises(ConfigError, match="the fields of a stream are a list of names"):
        Stream(fields)  # type: ignore[arg-type]


def test_output_streams_is_a_mapping() -> None:
    class Wrong(Bolt):
        output_streams = ["errors"]  # type: ignore[assignment]

    with pytest.raises(ConfigError, match="output_streams maps stream names to fields"):
        Wrong().declared_streams()
