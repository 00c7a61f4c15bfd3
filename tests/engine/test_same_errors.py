"""The same mistake in an emit, an ack or a fail has the same message with every collector."""

from __future__ import annotations

import json
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.child.wire import Wire
from multilang.child.wire_collectors import WireBoltCollector, WireSpoutCollector
from multilang.child.work import Work
from multilang.component import Bolt, Spout, Stream
from multilang.component.collector import BoltCollector, SpoutCollector
from multilang.engine.bolt_collector import LocalBoltCollector
from multilang.engine.counters import TaskStats
from multilang.engine.links import Links
from multilang.engine.plan import Plan, TaskPlan
from multilang.engine.rotating import RotatingMap
from multilang.engine.spout_collector import LocalSpoutCollector
from multilang.engine.tuples import LocalTuple, Origin
from multilang.protocol import ChildConnection
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.topology import TopologyBuilder

STREAMS: dict[str, Any] = {
    "default": ["word", "n"],
    "one": ["word"],
    "unread": ["word", "n"],
    "routed": Stream(["word", "n"], direct=True),
}


class Source(Spout):
    output_streams = STREAMS


class Part(Bolt):
    output_streams = STREAMS


class Sink(Bolt):
    pass


def built() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("source", Source)
    builder.set_bolt("part", Part).shuffle_grouping("source")
    sink = builder.set_bolt("sink", Sink, 2)
    for component in ("source", "part"):
        sink.shuffle_grouping(component).fields_grouping(component, "word", stream="one")
        sink.direct_grouping(component, stream="routed")
    return builder.build("mistakes")


TOPOLOGY = built()
PLAN = Plan(TOPOLOGY, "mistakes", {}, Random(0))
SINKS = [task.id for task in PLAN.tasks_of("sink")]
NAMES = {1: "11", 2: "12"}  # the ids of the inputs by their root


def links(named: dict[str, Any]) -> Links:
    return Links(
        out=[],
        receivers={task: task for task in PLAN.assignment},
        init=lambda *_: None,
        ack=lambda *_: None,
        fail=lambda *_: None,
        later=lambda _, call: call,
        named=named,
        getrandbits=Random(1).getrandbits,
        now=lambda: 0.0,
        log=lambda *_: None,
        report=lambda *_: None,
        metric=lambda *_: None,
    )


def connected(plan: TaskPlan) -> ChildConnection:
    connection = ChildConnection()
    setup = {"pidDir": "", "conf": {"multilang.parent": "local"}, "context": dict(plan.context)}
    connection.receive_data(json.dumps(setup).encode() + b"\nend\n")
    connection.send_pid(1)
    return connection


class Output:
    closed = False

    def flush_some(self) -> bool:
        return True


class Task:
    """A bolt's collector, with an input that is neither acked nor failed, and one that was acked."""

    def __init__(self, collector: BoltCollector, open_: Any, done: Any) -> None:
        self.collector = collector
        self.open = open_
        self.done = done
        collector.ack(done)
        collector.scope.anchors = [open_]


def wire_bolt() -> Task:
    connection = connected(PLAN.tasks_of("part")[0])
    lines = [{"id": id, "comp": "source", "stream": "one", "task": 1, "tuple": ["a"]} for id in NAMES.values()]
    data = b"".join(json.dumps(line).encode() + b"\nend\n" for line in lines)
    first, second = connection.receive_data(data)
    return Task(WireBoltCollector(Wire(connection, 0, Output(), Work())), first, second)  # type: ignore[arg-type]


def local_bolt() -> Task:
    origin = Origin("source", "one", 1, ("word",), lambda tup: NAMES[tup.root])  # type: ignore[index]
    first, second = (LocalTuple(["a"], "one", origin, root) for root in NAMES)
    named = {first.id: first, second.id: second}
    return Task(LocalBoltCollector(PLAN.tasks_of("part")[0], links(named), TaskStats()), first, second)


def spark_bolt() -> Task:
    from spark_bridge.job.collector import SparkBoltCollector
    from spark_bridge.job.routes import FailedRoots, Routing, SparkTuple

    task = PLAN.tasks_of("part")[0]
    layout: Any = SimpleNamespace(hosts={}, places=dict.fromkeys(PLAN.assignment, (1, 0)))
    routing = Routing(TOPOLOGY, PLAN.assignment, layout, (0, 0), (), "seed")
    routes = routing.of(task.id, task.spec, {}, [], str)
    plan = TaskPlan(task.id, task.spec, task.conf, task.context, routes)
    origin = Origin("source", "one", 1, ("word",), lambda tup: NAMES[tup.root])  # type: ignore[index]
    first, second = (SparkTuple(["a"], "one", origin, root) for root in NAMES)
    named: dict[str, Any] = {first.id: first, second.id: second}
    return Task(SparkBoltCollector(plan, links(named), TaskStats(), FailedRoots()), first, second)


def wire_spout() -> SpoutCollector:
    connection = connected(PLAN.tasks_of("source")[0])
    connection.receive_data(b'{"command":"next"}\nend\n')
    return WireSpoutCollector(Wire(connection, 0, Output(), Work()))  # type: ignore[arg-type]


def local_spout() -> SpoutCollector:
    pending: RotatingMap[Any] = RotatingMap()
    return LocalSpoutCollector(PLAN.tasks_of("source")[0], links({}), TaskStats(), pending, lambda _: None)


def spark_spout() -> SpoutCollector:
    from spark_bridge.job.spouts import RoundCollector

    return RoundCollector(PLAN.tasks_of("source")[0], links({}), [], 0)


class Odd:
    def __repr__(self) -> str:
        return "Odd()"


VALUES: list[Any] = [
    ["a", 1],
    ("a", 1),
    ["a"],
    ["a", 1, 2],
    [],
    "ab",
    "a",
    b"ab",
    None,
    5,
    {"a": 1, "b": 2},
    iter("ab"),
    ["a", float("nan")],
    [float("inf"), 1],
    ["a", 2**63],
    ["a", -(2**63)],
    ["a", b"x"],
    ["a", Odd()],
    ["\ud800", 1],
    ["a", [1, {2: 3}]],
    [["a"]],
    [float("nan")],
    ["é", None],
    [True, 0.5],
]
PLACES: list[Any] = [None, "default", "one", "unread", "routed", "nosuch", "", 5, ["one"]]
TASKS: list[Any] = [None, SINKS[0], 1, 999, -1, True, "3", 2.0]
ANCHORS: list[Any] = [
    None,
    [],
    (),
    lambda task: [task.open],
    lambda task: (task.open,),
    lambda task: [task.open, task.open],
    lambda task: [task.done],
    lambda task: [task.open, task.done],
    lambda task: task.open,
    lambda task: {0: task.open},
    lambda task: {task.open.id},
    ["11"],
    ["12"],
    ["99"],
    [None],
    [5],
    "11",
    "",
    {},
    0,
    5,
]
CALLS = ["emit", "emit_anchored", "emit_many", "emit_many_anchored"]
IDS: list[Any] = [None, 7, "seven", 1.5, float("nan"), 2**63, "\ud800", Odd(), b"7", [1], {"a": 1}, {1: 2}, True]


def said(call: Any, *args: Any, **named: Any) -> str:
    """Return the exception that a call raises, as text; empty if it raises none."""
    try:
        call(*args, **named)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return f"{type(error).__name__}: {error}"
    return ""


def of_bolt(task: Task, call: str, values: Any, stream: Any, anchors: Any, direct: Any) -> str:
    given_ = anchors(task) if callable(anchors) else anchors
    emit = getattr(task.collector, call)
    if "many" in call:
        return said(emit, [values], stream, given_)
    return said(emit, values, stream, given_, direct)


@given(
    st.sampled_from(["emit", "emit_anchored"]),
    st.sampled_from(VALUES),
    st.sampled_from(PLACES),
    st.sampled_from(ANCHORS),
    st.sampled_from(TASKS),
)
def test_a_bolts_emit_is_refused_by_all_in_the_same_words(
    call: str, values: Any, stream: Any, anchors: Any, direct: Any
) -> None:
    pytest.importorskip("pyspark")
    tasks = {"wire": wire_bolt(), "local": local_bolt(), "spark": spark_bolt()}
    found = {name: of_bolt(task, call, values, stream, anchors, direct) for name, task in tasks.items()}
    assert set(found.values()) == {found["wire"]}, found


@pytest.mark.parametrize("call", CALLS)
def test_each_single_mistake_of_a_bolts_emit_is_told_in_the_same_words(call: str) -> None:
    pytest.importorskip("pyspark")
    mistakes = [
        *((values, None, [], None) for values in VALUES),
        *((["a", 1], stream, [], None) for stream in PLACES),
        *((["a", 1], None, anchors, None) for anchors in ANCHORS),
        *((["a", 1], stream, [], direct) for direct in TASKS for stream in ("routed", "default", "unread")),
    ]
    drifted = {}
    for mistake in mistakes:
        found = {made.__name__: of_bolt(made(), call, *mistake) for made in (wire_bolt, local_bolt, spark_bolt)}
        if len(set(found.values())) != 1:
            drifted[repr(mistake)] = found
    assert not drifted


@given(st.sampled_from(VALUES), st.sampled_from(PLACES), st.sampled_from(TASKS), st.sampled_from(IDS))
def test_a_spouts_emit_is_refused_by_all_in_the_same_words(values: Any, stream: Any, direct: Any, id: Any) -> None:
    pytest.importorskip("pyspark")
    made = {"wire": wire_spout(), "local": local_spout(), "spark": spark_spout()}
    found = {name: said(collector.emit, values, id, stream, direct) for name, collector in made.items()}
    assert set(found.values()) == {found["wire"]}, found


@pytest.mark.parametrize("what", ["ack", "fail"])
def test_an_ack_that_is_none_is_refused_by_all_in_the_same_words(what: str) -> None:
    pytest.importorskip("pyspark")
    for tup in ("11", "12", "99", None, 5, ["11"], "open", "done"):
        found = set()
        for made in (wire_bolt, local_bolt, spark_bolt):
            task = made()
            given_ = getattr(task, tup) if tup in ("open", "done") else tup  # type: ignore[arg-type]
            found.add((said(getattr(task.collector, what), given_), said(getattr(task.collector, what), given_)))
        assert len(found) == 1, (tup, found)


def test_what_is_wrong_is_told_with_the_component_the_stream_and_the_field() -> None:
    for task in (wire_bolt(), local_bolt()):
        with pytest.raises(UnserializableValue, match=r"component 'part', stream 'default', value 1 \(field 'n'\)"):
            task.collector.emit(["a", b"x"])
        with pytest.raises(LocalProtocolError, match="anchors is a list of tuples"):
            task.collector.emit(["a", 1], None, 5)  # type: ignore[arg-type]
