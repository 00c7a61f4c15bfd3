"""The choice of the bolts that share a process, with the reasons of the others."""

from __future__ import annotations

from typing import Any

import pytest

from multilang import BasicBolt, CustomGrouping, ShellBolt, Spout, Stream, TopologyBuilder
from multilang.chains.names import VIEW
from multilang.chains.numbers import declared_tasks, member_tasks
from multilang.chains.plan import chains
from multilang.chains.transform import by_chains
from multilang.state import StatefulBasicBolt
from multilang.topology import Topology, TopologyError
from multilang.topology.java import JavaBolt
from multilang.windowing import Tumbling, WindowedBolt

TICKS = "topology.tick.tuple.freq.secs"


class Source(Spout):
    output_fields = ("n",)


class Step(BasicBolt):
    output_fields = ("n",)
    output_streams = {"named": ["n"], "direct": Stream(["n"], direct=True)}


class Counts(StatefulBasicBolt):
    output_fields = ("n",)


class Windowed(WindowedBolt):
    output_fields = ("n",)
    window = Tumbling(3)

    def process_window(self, window: Any) -> None:
        pass


class Mine(CustomGrouping):
    def prepare(self, context: Any, stream: str, target_tasks: tuple[int, ...]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, source_task: int, values: Any) -> list[int]:
        return [*self.tasks[:1]]


def line(*, second: Any = Step, grouping: str = "local_or_shuffle", conf: Any = None, **how: Any) -> Topology:
    """Two bolts behind a spout; ``first`` and ``target`` are the confs and numbers of tasks of both."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source)
    builder.set_bolt("first", Step, **how.get("first", {})).shuffle_grouping("source")
    declared = builder.set_bolt("second", second, **how.get("second_", {}))
    if grouping == "custom":
        declared.custom_grouping("first", Mine())
    elif grouping == "fields":
        declared.fields_grouping("first", "n")
    elif grouping == "direct":
        declared.direct_grouping("first", stream="direct")
    else:
        getattr(declared, f"{grouping}_grouping")("first")
    return builder.build("line", conf={"multilang.chaining": "local", **(conf or {})})


def reason(topology: Topology, *captured: tuple[str, str]) -> str | None:
    found = chains(topology, captured)
    keys = [key for key in found.against if key[2] == "second" and key[0] == "first" and key[1][0] != "$"]
    assert bool(keys) != bool(found.joined)
    return found.against[keys[0]] if keys else None


def test_a_bolt_runs_behind_its_source_where_the_grouping_keeps_tuples_near() -> None:
    assert reason(line()) is None
    assert chains(line()).members == {"first": ["first", "second"]}
    assert reason(line(grouping="shuffle", conf={"multilang.chaining": "shuffle"})) is None
    assert reason(line(grouping="none", conf={"multilang.chaining": "shuffle"})) is None
    assert reason(line(second_={"conf": {TICKS: 3, "own": 1}})) is None
    assert reason(line(first={"conf": {TICKS: 3}})) is None


REASONS = [
    (line(conf={"multilang.chaining": "off"}), "'multilang.chaining' of 'first' is 'off'"),
    (line(second_={"conf": {"multilang.chaining": "off"}}), "'multilang.chaining' of 'second' is 'off'"),
    (line(grouping="shuffle"), "'multilang.chaining' of 'second' is 'local', and the grouping shuffle"),
    (line(grouping="fields"), "the grouping is fields (n)"),
    (line(grouping="all"), "the grouping is all"),
    (line(grouping="direct"), "the grouping is direct"),
    (line(grouping="custom"), "the grouping from 'first' to 'second' is an object of the topology's own"),
    (line(second_={"parallelism": 2}), "'first' has 1 task, and 'second' 2"),
    (line(first={"parallelism": 2}, second_={"tasks": 2}), "'first' has 2 executors, and 'second' 1"),
    (line(second=ShellBolt(["cat"])), "'second', a program of its own, reads 'first' and would see the chain"),
    (line(second=JavaBolt("shop.Enrich")), "'second', a program of its own, reads 'first' and would see the chain"),
    (line(second=Counts), "needs what state, windows, batches or transactions put around it"),
    (line(second=Windowed), "'second' needs what state, windows, batches or transactions put around it"),
    (
        line(first={"conf": {TICKS: 3}}, second_={"conf": {TICKS: 4}}),
        f"'{TICKS}' of 'second' is 4, and there are ticks each 3 s before",
    ),
    (
        line(second_={"conf": {"topology.debug": True}}),
        "'topology.debug' of 'first' is None, and that of 'second' True",
    ),
]


@pytest.mark.parametrize(("topology", "expected"), REASONS, ids=[expected[:40] for _, expected in REASONS])
def test_a_bolt_stays_apart_with_a_reason(topology: Topology, expected: str) -> None:
    found = reason(topology)
    assert found is not None
    assert expected in found
    assert by_chains(topology) is topology


def test_a_captured_stream_keeps_its_component_apart() -> None:
    assert reason(line(), ("second", "default")) == "a stream of 'second' is captured"


def test_a_spout_and_what_comes_back_stay_apart() -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", Source)
    back = builder.set_bolt("first", Step).local_or_shuffle_grouping("source")
    back.local_or_shuffle_grouping("second", stream="named")
    builder.set_bolt("second", Step).local_or_shuffle_grouping("first")
    builder.set_bolt("after", Step).local_or_shuffle_grouping("second")
    found = chains(builder.build("back", conf={"multilang.chaining": "local"}))
    assert found.against["source", "default", "first"] == "its tuples may come back to it"
    assert found.against["first", "default", "second"] == "its tuples may come back to it"
    assert found.members == {"second": ["second", "after"]}


def forked() -> Topology:
    """A fork and a join; ``other`` takes from elsewhere, too."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source)
    builder.set_bolt("a", Step, 2).shuffle_grouping("source")
    builder.set_bolt("b", Step, 2).local_or_shuffle_grouping("a")
    builder.set_bolt("c", Step, 2).local_or_shuffle_grouping("a", stream="named")
    builder.set_bolt("d", Step, 2).local_or_shuffle_grouping("b").local_or_shuffle_grouping("c")
    other = builder.set_bolt("other", Step, 2).local_or_shuffle_grouping("d").fields_grouping("a", "n")
    other.direct_grouping("d", stream="direct")
    return builder.build("forked", conf={"multilang.chaining": "local"})


def test_forks_and_joins_are_one_chain() -> None:
    topology = forked()
    found = chains(topology)
    assert found.members == {"a": ["a", "b", "c", "d"]}
    assert found.against["d", "default", "other"] == "'other' takes 'a' from elsewhere, too"
    changed = by_chains(topology)
    assert list(changed.components) == ["source", "a+b+c+d", "other"]
    chain = changed["a+b+c+d"]
    assert sorted(chain.streams) == ["a:default", "d:default", "d:direct"]
    assert chain.streams["d:direct"].direct
    assert (chain.tasks, chain.parallelism) == (2, 2)
    assert [(each.component, each.stream) for each in chain.inputs] == [("source", "default")]
    assert [(each.component, each.stream) for each in changed["other"].inputs] == [
        ("a+b+c+d", "d:default"),
        ("a+b+c+d", "a:default"),
        ("a+b+c+d", "d:direct"),
    ]
    assert list(chain.conf[VIEW]["components"]) == ["a", "b", "c", "d"]
    assert topology.components.keys() == {"source", "a", "b", "c", "d", "other"}  # it is another topology


def test_a_chain_whose_name_is_taken_has_another() -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", Source)
    builder.set_bolt("a", Step).shuffle_grouping("source")
    builder.set_bolt("b", Step).local_or_shuffle_grouping("a")
    builder.set_bolt("a+b", Step).fields_grouping("b", "n")
    changed = by_chains(builder.build("taken", conf={"multilang.chaining": "local"}))
    assert list(changed.components) == ["source", "a+b+", "a+b"]


def test_members_have_tasks_of_their_own() -> None:
    assignment = {1: "a+b", 2: "a+b", 3: "s", 4: "x+y+z", 5: "__acker"}
    parts = {"x+y+z": ["x", "y", "z"], "a+b": ["a", "b"]}
    assert member_tasks(parts, assignment) == {"a": [1, 2], "b": [6, 7], "x": [4], "y": [8], "z": [9]}
    assert declared_tasks(parts, assignment) == {
        1: "a", 2: "a", 3: "s", 4: "x", 5: "__acker", 6: "b", 7: "b", 8: "y", 9: "z",
    }  # fmt: skip


def test_a_wrong_setting_is_refused() -> None:
    topology = line()
    topology["second"].conf["multilang.chaining"] = "on"
    with pytest.raises(
        TopologyError, match=r"bolt 'second': conf 'multilang.chaining' is 'on'; write 'off', 'local' or 'shuffle'"
    ):
        chains(topology)
