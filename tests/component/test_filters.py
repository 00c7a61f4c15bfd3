"""A collector around a collector: what is given is used everywhere, what isn't is the inner one's."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component import Bolt
from multilang.component.bolt import AnchoredBolt
from multilang.component.collector import BoltCollector
from multilang.component.filters import BoltFilter
from multilang.component.runner import start_bolt
from multilang.engine.bolt_collector import LocalBoltCollector
from multilang.engine.counters import TaskStats
from multilang.engine.tuples import LocalTuple, Origin
from multilang.protocol import LocalProtocolError
from multilang.testing.harness import Harness


class Echo(AnchoredBolt):
    """Emits what it gets by each of the four calls."""

    output_fields = ["how", "n"]

    def process(self, tup: Any) -> None:
        n = tup["n"]
        self.emit(["emit", n])
        self.emit_many([["many", n]])
        Bolt.emit(self, ["plain", n], anchors=[tup])
        Bolt.emit_many(self, [["plain many", n]], anchors=[tup])
        self.ack(tup)


class Task:
    def __init__(self) -> None:
        self.harness = Harness(Echo, {"source": {"default": ["n"]}}, {}, "echo", 1, 0)
        self.acked: list[int] = []
        self.failed: list[int] = []
        links = self.harness.links(None, lambda root, _: self.acked.append(root), self.failed.append, monotonic)
        self.collector: BoltCollector = LocalBoltCollector(self.harness.plan, links, TaskStats())

    def start(self, collector: BoltCollector) -> Any:
        plan = self.harness.plan
        return start_bolt(plan.spec.component, collector, plan.conf, plan.context)  # type: ignore[arg-type]

    def give(self, execute: Any, n: int) -> list[tuple[list[Any], Any]]:
        execute(LocalTuple([n], "default", Origin("source", "default", 9, ("n",)), root=n + 1))
        return [(tup.values, tup.root) for tup, _ in self.harness.taken()]


def marking(inner: BoltCollector, mark: str, seen: list[str]) -> BoltCollector:
    """A filter that marks each emit and each ack."""

    def emit(values: Any, *more: Any) -> list[int] | None:
        seen.append(f"{mark} {values[0]}")
        return inner.emit([values[0], values[1] * 10], *more)

    def ack(tup: Any) -> None:
        seen.append(f"{mark} ack")
        inner.ack(tup)

    return BoltFilter(inner, emit=emit, ack=ack)


def test_each_way_of_emitting_goes_through_a_filter_that_gives_emit_alone() -> None:
    task, seen = Task(), []
    collector = task.collector
    collector.scope.anchors = ()
    emitted = task.give(task.start(marking(collector, "a", seen)), 1)
    assert [values for values, _ in emitted] == [["emit", 10], ["many", 10], ["plain", 10], ["plain many", 10]]
    assert seen == ["a emit", "a many", "a plain", "a plain many", "a ack"]
    assert task.acked == [2]


@given(st.lists(st.sampled_from("abcde"), max_size=5))
def test_filters_compose_from_the_outermost_to_the_collector(marks: list[str]) -> None:
    task, seen = Task(), []
    collector = task.collector
    for mark in marks:
        collector = marking(collector, mark, seen)
    emitted = task.give(task.start(collector), 1)
    assert [values[1] for values, _ in emitted] == [10 ** len(marks)] * 4
    wanted = [f"{mark} {what}" for what in ("emit", "many", "plain", "plain many", "ack") for mark in marks[::-1]]
    assert seen == wanted


def test_a_filter_has_the_anchors_and_the_tuple_of_the_moment() -> None:
    task = Task()
    outer = BoltFilter(BoltFilter(task.collector))
    assert outer.scope is task.collector.scope
    execute = task.start(marking(outer, "a", []))
    tup = LocalTuple([1], "default", Origin("source", "default", 9, ("n",)), root=5)
    outer.scope.anchors = [tup]
    task.collector.emit_anchored(["emit", 1])
    outer.emit_anchored(["emit", 2])
    outer.emit_many_anchored([["emit", 3]])
    assert [each.root for each, _ in task.harness.taken()] == [5, 5, 5]
    task.give(execute, 1)
    assert outer.scope.current is None


def test_what_a_filter_does_not_give_is_the_inner_collectors() -> None:
    collector = Task().collector
    outer = BoltFilter(collector)
    for name in ("emit", "emit_anchored", "emit_many", "emit_many_anchored", "ack", "fail", "fail_acked", "reported"):
        assert getattr(outer, name) is getattr(collector, name), name
    assert (outer.takes_threads, outer.knows_tasks) == (collector.takes_threads, collector.knows_tasks)


def test_an_error_of_the_inner_collector_comes_out_of_a_filter() -> None:
    collector = BoltFilter(Task().collector)
    with pytest.raises(LocalProtocolError, match="never received here"):
        collector.received("77")


def each(collector: BoltCollector, tups: list[LocalTuple], ok: bool) -> None:
    for tup in tups:
        (collector.ack if ok else collector.fail)(tup)


def together(collector: BoltCollector, tups: list[LocalTuple], ok: bool) -> None:
    collector.settle_many(tups, ok)


def later(collector: BoltCollector, tups: list[LocalTuple], ok: bool) -> None:
    kept: list[Any] = []
    ack = collector.deferred_ack(kept)
    for tup in tups:
        ack(tup)
        assert not tup.unfinished
    collector.finish(kept, ok)
    assert kept == []


@pytest.mark.parametrize("settle", [each, together, later])
@pytest.mark.parametrize("ok", [True, False], ids=["ack", "fail"])
@pytest.mark.parametrize("own", [(), ("ack",), ("fail",), ("ack", "fail")], ids=str)
@pytest.mark.parametrize("around", [0, 1])
def test_every_way_to_settle_goes_through_the_given_calls(settle: Any, ok: bool, own: Any, around: int) -> None:
    task = Task()
    seen: list[int] = []

    def noting(call: Any) -> Any:
        def noted(tup: Any) -> None:
            seen.append(tup.root)
            call(tup)

        return noted

    collector: BoltCollector = BoltFilter(
        task.collector, **{name: noting(getattr(task.collector, name)) for name in own}
    )
    for _ in range(around):
        collector = BoltFilter(collector)
    origin = Origin("source", "default", 9, ("n",))
    roots = [1, 2, 3, 4, 5]
    settle(collector, [LocalTuple([root], "default", origin, root, 10 * root) for root in roots], ok)
    assert (task.acked, task.failed) == ((roots, []) if ok else ([], roots))
    assert seen == (roots if ("ack" if ok else "fail") in own else [])
