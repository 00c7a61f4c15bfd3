"""Whatever a bolt emits, acks and fails, in any order: nothing is lost, nothing is acked too early, all stays in order."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.exchange import bolt
from multilang.exchange.receiving import BlockTuple
from multilang.protocol import LocalProtocolError
from multilang.protocol.messages import Ack, Emit, Log, Tuple
from tests.exchange.harness import Driven, tuples_of

STREAMS = ["default", "keyed", "named", "unread"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("block"), st.lists(st.tuples(st.sampled_from(["default", "alone"]), st.integers(1, 4)), min_size=1, max_size=3)),
        st.tuples(st.just("loose"), st.integers(1, 3)),
        st.tuples(st.just("single"), st.none()),
        st.tuples(st.just("emit"), st.tuples(st.sampled_from(STREAMS), st.lists(st.integers(0, 30), max_size=3), st.sampled_from(["a", "b", "it's", 'a "b"', "é\u2028", "\x7f", 7, 1.5]))),
        st.tuples(st.just("emit"), st.tuples(st.sampled_from(STREAMS[:2]), st.lists(st.integers(0, 30), min_size=1, max_size=3), st.sampled_from(["a", "b", "it's", 'a "b"', "é\u2028", "\x7f", 7, 1.5]))),
        st.tuples(st.just("many"), st.tuples(st.integers(0, 5), st.integers(0, 30))),
        st.tuples(st.just("ack"), st.integers(0, 30)),
        st.tuples(st.just("keep"), st.integers(0, 30)),
        st.tuples(st.just("finish"), st.booleans()),
        st.tuples(st.just("fail"), st.integers(0, 30)),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("read"), st.none()),
        st.tuples(st.just("meanwhile"), st.none()),
    ),
    min_size=10,
    max_size=60,
)  # fmt: skip


class Run:
    """The steps on a real collector, with an account of what must be true at the end."""

    def __init__(self, most: int, how: str) -> None:
        self.driven = Driven(most, how)
        self.how = how
        self.collector = self.driven.collector
        self.open: list[Tuple] = []
        self.inputs: dict[str, int] = {}  # id on the wire -> its tuples that were not acked yet
        self.failed: set[str] = set()
        self.loose: set[str] = set()  # ids on the wire of blocks that nothing is replayed for
        self.emitted: dict[int, tuple[str, Any, set[str]]] = {}  # number -> stream, key, ids on the wire
        self.order: dict[int, list[int]] = defaultdict(list)  # by task, where the task is known
        self.kept: list[Any] = []
        self.kept_tuples: list[Tuple] = []
        self.keep = self.collector.deferred_ack(self.kept)
        self.number = 0

    def wire_id(self, tup: Tuple) -> str:
        return tup.run.block.wire.id if isinstance(tup, BlockTuple) else tup.id

    def take(self) -> None:
        for tup in self.driven.got:
            self.inputs[self.wire_id(tup)] = self.inputs.get(self.wire_id(tup), 0) + 1
            self.open.append(tup)
        self.driven.got.clear()

    def step(self, kind: str, what: Any) -> None:
        if kind == "block":
            self.driven.give_block([(stream, [[n] for n in range(count)]) for stream, count in what])
            self.take()
        elif kind == "loose":
            rows = ",".join(f"[{n}]" for n in range(what))
            self.loose.add(self.driven.give("$blocks", [what, f'~[["default",[{rows}]]]']))
            self.take()
        elif kind == "single":
            self.driven.give("direct", [1])
            self.take()
        elif kind == "emit":
            stream, picks, key = what
            self.emit(stream, [self.open[pick % len(self.open)] for pick in picks] if self.open else [], key)
        elif kind == "many":
            count, pick = what
            anchors = [self.open[pick % len(self.open)]] if self.open else []
            rows = [[self.take_number("default", None, anchors)] for _ in range(count)]
            self.collector.emit_many(rows, anchors=anchors)
        elif kind in ("ack", "fail", "keep") and self.open:
            tup = self.open.pop(what % len(self.open))
            if kind == "keep":
                self.keep(tup)
                self.kept_tuples.append(tup)
                return
            (self.collector.ack if kind == "ack" else self.collector.fail)(tup if what % 3 else tup.id)
            self.settle(tup, kind == "ack")
        elif kind == "finish":
            self.collector.finish(self.kept, what)
            for tup in self.kept_tuples:
                self.settle(tup, what)
            self.kept_tuples.clear()
        elif kind == "flush":
            self.driven.flush()
        elif kind == "read":
            self.driven.read()
        elif kind == "meanwhile":
            self.collector.send_meanwhile()

    def settle(self, tup: Tuple, ok: bool) -> None:
        id = self.wire_id(tup)
        self.inputs[id] -= 1
        if not ok:
            self.failed.add(id)
        assert not tup.unfinished
        try:
            self.collector.ack(tup)
        except LocalProtocolError:
            return
        raise AssertionError("a second ack was taken")

    def take_number(self, stream: str, key: Any, anchors: list[Tuple]) -> int:
        self.number += 1
        living = {self.wire_id(tup) for tup in anchors} - self.failed
        if self.how == "block":  # with roots, each goes by itself in any case
            living = living - self.loose or living
        if stream != "unread":
            self.emitted[self.number] = stream, key, living
        return self.number

    def emit(self, stream: str, anchors: list[Tuple], key: Any) -> None:
        number = self.take_number(stream, key, anchors)
        values = [number, key] if stream == "keyed" else [number]
        task = self.driven.targets[number % 2] if stream == "named" else None
        name = None if stream == "default" else stream
        told = self.collector.emit(values, name, anchors, task, task is not None or stream != "unread")
        for each in told or ():
            self.order[each].append(number)

    def end(self) -> None:
        for pick in range(len(self.open)):
            self.step("ack", pick)
        self.step("finish", True)
        self.driven.flush()
        # the parent has refused whatever would halt a worker: anchors that were acked before, a second ack
        assert Counter(id for id, _ in self.driven.settled) == Counter(self.inputs.keys())
        assert {id for id, ok in self.driven.settled if not ok} == self.failed
        assert not any(self.inputs.values())
        found: dict[int, list[int]] = defaultdict(list)
        for emit in self.driven.emits:
            carried = tuples_of(emit)
            for stream, values in carried:
                number = values[0]
                was, key, ids = self.emitted.pop(number)
                assert stream == was
                assert values[1:] == ([key] if stream == "keyed" else [])
                assert ids == set(emit.anchors) if self.how == "root" else ids <= set(emit.anchors)
                if not self.loose.issuperset(emit.anchors):
                    assert ids  # what nothing is replayed for is with nothing that something is
                if self.how == "block" and emit.stream == "$blocks":
                    assert self.loose.issuperset(emit.anchors) or self.loose.isdisjoint(emit.anchors)
                    assert emit.values[1].startswith("~") == (not {*emit.anchors} - self.loose)
                assert emit.task in self.driven.targets
                found[emit.task].append(number)
            if emit.stream == "$blocks":
                assert len(carried) == emit.values[0] <= self.most
        assert not self.emitted, "lost"
        for task, numbers in self.order.items():
            many = set(found[task]) - set(numbers)  # those of emit_many, which tells no tasks
            assert [number for number in found[task] if number not in many] == numbers
            assert found[task] == sorted(found[task])
        self.driven.close()

    most = 1000


@settings(max_examples=200, deadline=None, database=None)
@given(STEPS, st.sampled_from([1, 2, 1000]), st.sampled_from(["root", "block"]))
def test_nothing_is_lost_nor_acked_too_early(steps: list[tuple[str, Any]], most: int, how: str) -> None:
    run = Run(most, how)
    run.most = most
    for kind, what in steps:
        run.step(kind, what)
    run.end()


def test_a_tuple_for_a_task_that_does_not_subscribe_goes_to_nobody_else() -> None:
    driven = Driven()
    driven.give_block([("default", [[1]])])
    (tup,) = driven.got
    assert driven.collector.emit([7], None, [tup], driven.source, True) == [driven.source]
    driven.collector.ack(tup)
    driven.flush()
    assert [(emit.task, tuples_of(emit)) for emit in driven.emits] == [(driven.source, [("default", [7])])]
    driven.close()


def test_what_comes_of_a_block_apart_is_with_nothing_else() -> None:
    driven = Driven()
    first = driven.give_block([("default", [[1], [2]])])
    lone = driven.give("$blocks", [1, ' [["default",[[3]]]]'])
    last = driven.give_block([("default", [[4]])])
    one, two, three, four = driven.got
    emit = driven.collector.emit
    for number, anchors in enumerate([[one], [three], [two], [one, three], [four], [one, four]]):
        emit([number, "key"], "keyed", anchors)
    driven.flush()
    assert [(e.values[1].startswith(" "), [*e.anchors], [values[0] for _, values in tuples_of(e)]) for e in driven.emits] == [
        (False, [first], [0]),
        (True, [lone], [1]),
        (False, [first], [2]),
        (True, [first, lone], [3]),
        (False, [last, first], [4, 5]),
    ]  # fmt: skip
    driven.close()


@pytest.mark.parametrize("how", ["root", "block"])
def test_what_another_thread_sends_meanwhile_comes_once_and_in_order(how: str) -> None:
    """So it goes while a component works for long: what it emitted is sent, while it emits more."""
    driven = Driven(how=how)
    driven.give_block([("default", [[0]])])
    (tup,) = driven.got
    started, ended = threading.Event(), threading.Event()

    def send() -> None:
        while not ended.is_set():
            driven.collector.send_meanwhile()
            driven.output.flush_some()
            started.set()

    thread = threading.Thread(target=send)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        started.wait()
        for number in range(20_000):
            stream = "keyed" if number % 3 else None
            driven.collector.emit([number, "key"] if stream else [number], stream, [tup] if number % 7 else [])
            if not number % 1000:
                driven.read()
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()
    driven.collector.ack(tup)
    driven.flush()
    found: dict[int, list[int]] = defaultdict(list)
    for emit in driven.emits:
        for _, values in tuples_of(emit):
            found[emit.task or 0].append(values[0])
            assert bool(values[0] % 7) == bool(emit.anchors)
    driven.close()
    assert sorted(each for numbers in found.values() for each in numbers) == [*range(20_000)]
    assert all(numbers == sorted(numbers) for numbers in found.values())
    assert len(driven.emits) > 2 * 20_000 // 7  # each change from or to anchors, at least, on one of two tasks


def test_acks_are_sent_while_the_component_works_on_later_tuples() -> None:
    """A slow bolt has hundreds of tuples at hand: without this, the first would time out before all of them are done."""
    driven = Driven(how="root")
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            driven.collector.send_meanwhile()
            driven.output.flush_some()

    def acked() -> None:
        while not driven.settled:
            driven.read()

    ids = [driven.give_block([("default", [[0]])])]
    driven.collector.emit([0], None, driven.got)
    driven.collector.ack(driven.got.pop())
    thread = threading.Thread(target=send)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        acked()  # nothing else sends it: the bolt is at work
        for number in range(1, 3000):
            stream, values = ("default", [[number], [number]]) if number % 3 else ("direct", [number])
            id = driven.give(stream, values) if stream == "direct" else driven.give_block([(stream, values)])
            ids.append(id)
            for tup in driven.got:
                driven.collector.emit([number], None, [tup])
                driven.collector.emit([number], "unread", [tup])
                driven.collector.ack(tup)
            driven.got.clear()
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()
    driven.flush()
    assert sorted(driven.settled) == sorted((id, True) for id in ids)
    sent = {id: place for place, each in enumerate(driven.sent) if isinstance(each, Emit) for id in each.anchors}
    acks = {each.id: place for place, each in enumerate(driven.sent) if isinstance(each, Ack)}
    assert sent.keys() == acks.keys() == set(ids)
    assert all(sent[id] < acks[id] for id in ids)
    driven.close()


@pytest.mark.parametrize("how", ["root", "block"])
def test_what_threads_do_is_sent_between_two_tuples_that_take_long(how: str) -> None:
    """Hundreds of tuples may have been read: their results must not wait until the last of them is under way."""
    driven = Driven(how=how)
    left: list[Tuple] = []

    def finish() -> None:
        for tup in left:
            driven.collector.emit([tup[0]], None, [tup])
            driven.collector.ack(tup)

    def act(tup: Tuple) -> None:
        left.append(tup)
        if tup[0] == 2:
            thread = threading.Thread(target=finish)
            thread.start()
            thread.join()
            began = time.monotonic()
            while time.monotonic() - began < 0.006:  # more than it may work without sending anything
                pass

    driven.receive = driven.collector.receiver(act, lambda: None)
    ids = [driven.give_block([("default", [[1]])]), driven.give_block([("default", [[2]])])]
    driven.read()
    assert driven.settled == [(id, True) for id in ids]
    assert [values for emit in driven.emits for _, values in tuples_of(emit)] == [[1], [2]]
    driven.close()


def test_a_call_into_the_component_that_holds_up_its_threads_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bolt, "_LONG_SECS", 0.0)
    driven = Driven()
    driven.give_block([("default", [[1]])])
    thread = threading.Thread(target=driven.collector.emit, args=([1], None, driven.got))
    thread.start()
    thread.join()
    for _ in range(3):
        driven.collector.send_meanwhile()
    driven.flush()
    driven.collector.send_meanwhile()
    driven.read()
    (told,) = [each for each in driven.sent if isinstance(each, Log)]
    assert "component 'part': what its threads emit, ack and fail has been waiting" in told.message
    assert len(driven.emits) == 1
    driven.close()


def test_a_block_by_root_holds_what_comes_of_one_input_alone() -> None:
    """Also without anchors: otherwise what waits in Storm's queues would be many times what waits there tuple by tuple."""
    driven = Driven(how="root")
    emit = driven.collector.emit

    def act(tup: Tuple) -> None:
        for n in range(4):
            emit([10 * tup[0] + n, "key"], "keyed", [tup] if tup[0] < 3 else [])

    driven.receive = driven.collector.receiver(act, lambda: None)
    driven.give_block([("default", [[1]])])
    driven.give("direct", [2])
    driven.give_block([("default", [[3]])])
    driven.give_block([("default", [[4]])])
    driven.flush()
    assert [[values[0] for _, values in tuples_of(each)] for each in driven.emits] == [
        [10, 11, 12, 13],
        [20, 21, 22, 23],
        [30, 31, 32, 33],
        [40, 41, 42, 43],
    ]
    driven.close()


@pytest.mark.parametrize(("careful", "together"), [(True, [[1, 1], [2, 2], [3, 3]]), (False, [[1, 1, 2, 2, 3, 3]])])
def test_where_the_library_chose_tuples_without_anchors_are_by_their_inputs(
    careful: bool, together: list[list[int]]
) -> None:
    """No limit of a spout keeps their blocks few, and Storm's queues would hold thousands of tuples in the place of one."""
    driven = Driven(careful=careful)
    scope = driven.collector.scope

    def work(tup: Tuple) -> None:
        scope.current = tup  # as a runner does
        for _ in range(2):
            driven.collector.emit([tup["n"], "key"], "keyed", [])

    driven.receive = driven.collector.receiver(work, lambda: None)
    driven.give_block([("default", [[1], [2], [3]])])
    driven.flush()
    assert [[values[0] for _, values in tuples_of(emit)] for emit in driven.emits] == together
    driven.close()
