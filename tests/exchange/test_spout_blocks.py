"""A spout's blocks: its own message ids come back one by one, each once, when all messages that carry it are done."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, ReliableSpout, Spout, TopologyBuilder
from multilang.child.exchange import Exchange
from multilang.child.output import Output
from multilang.child.wire import Wire
from multilang.child.wire_collectors import WireSpoutCollector
from multilang.child.work import Work
from multilang.component.context import Context
from multilang.component.runner import start_spout
from multilang.component.timers import TaskTimers
from multilang.exchange import spout as blocks
from multilang.exchange.transform import by_blocks
from multilang.protocol import ChildConnection, ParentConnection
from multilang.protocol.messages import Ack, Emit, Fail
from tests.exchange.harness import tuples_of


class Source(Spout):
    """Emits what the test wishes, and notes what it is told."""

    output_fields = ("n",)
    output_streams = {"alone": ["n"]}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.wishes: list[tuple[int, Any, str | None]] = []
        self.told: Counter[tuple[Any, bool]] = Counter()
        self.calls = 0
        self.waits = False
        self.pauses: set[int] = set()
        self.burst = 1

    def next_tuple(self) -> None:
        self.calls += 1
        if self.calls in self.pauses or (not self.wishes and self.waits):
            time.sleep(0.03)  # as a client of a queue waits for the next item
        for n, id, stream in self.wishes[: self.burst]:
            self.emit([n], id, stream)
        del self.wishes[: self.burst]

    def ack(self, tup_id: Any) -> None:
        self.told[tup_id, True] += 1

    def fail(self, tup_id: Any) -> None:
        self.told[tup_id, False] += 1


class Telling(Source):
    emits_again = True


class Again(ReliableSpout):
    """Emits what the test wishes, and gives up what fails twice."""

    output_fields = ("n",)
    output_streams = Source.output_streams
    max_replays = 1

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.left = list(range(4))
        self.given_up: list[tuple[Any, int]] = []

    def next_tuple(self) -> None:
        while self.left:
            n = self.left.pop(0)
            self.emit([n], n)

    def gave_up(self, tup_id: Any, values: Any, failures: int) -> None:
        self.given_up.append((tup_id, failures))


class Sink(BasicBolt):
    pass


class Driven:
    """The runner of ``s`` and a strict parent; ``most`` is topology.max.spout.pending, ``tuples`` the largest block."""

    def __init__(
        self,
        tuples: int = 1000,
        most: int | None = None,
        ackers: int = 1,
        spout: type[Spout] = Source,
        how: str = "block",
    ) -> None:
        builder = TopologyBuilder()
        builder.set_spout("s", spout)
        builder.set_bolt("one", Sink, 2).shuffle_grouping("s")
        builder.set_bolt("every", Sink, 2).all_grouping("s")
        builder.set_bolt("apart", Sink, conf={"multilang.exchange": "tuple"}).shuffle_grouping("s", stream="alone")
        conf = {"multilang.exchange": how, "multilang.exchange.tuples": tuples, "topology.max.spout.pending": most}
        topology = by_blocks(builder.build("t", conf={key: value for key, value in conf.items() if value}))
        tasks = topology.task_ids(ackers)
        task = next(task for task, component in tasks.items() if component == "s")
        self.own = own = {**topology.conf, **topology["s"].conf}
        self.parent = ParentConnection("spout")
        self.parent.setup(own, "", topology.context_for(task, tasks))
        self.connection = ChildConnection()
        self.connection.receive_data(self.parent.data_to_send())
        self.connection.send_pid(1)
        self.null = os.open(os.devnull, os.O_RDWR)
        wire = Wire(self.connection, self.null, Output(self.connection, self.null), Work())
        inner = WireSpoutCollector(wire)
        TaskTimers(inner.scope)
        exchange = Exchange(wire, own, Context(topology.context_for(task, tasks)))
        self.collector = exchange.spout(inner)
        self.spout: Any = spout()
        self.runner = exchange.runner(
            start_spout(self.spout, self.collector, exchange.conf, exchange.context), self.collector
        )
        self.read()

    def close(self) -> None:
        os.close(self.null)

    def command(self, name: str, id: Any = None) -> list[Emit]:
        """Run one command, and return what the spout emitted."""
        getattr(self.parent, name)(*([] if id is None else [id]))
        for event in self.connection.receive_data(self.parent.data_to_send()):
            if isinstance(event, Ack | Fail):
                (self.runner.ack if isinstance(event, Ack) else self.runner.fail)(event.id)
            else:
                self.runner.next()
            self.connection.sync()
        return self.read()

    def read(self) -> list[Emit]:
        sent = self.parent.receive_data(self.connection.data_to_send())
        return [each for each in sent if isinstance(each, Emit)]


IDS = st.one_of(st.none(), st.integers(0, 5), st.sampled_from(["a", "é", "it's"]))


@settings(max_examples=150, deadline=None, database=None)
@given(
    st.lists(st.tuples(IDS, st.sampled_from([None, "alone"])), max_size=40),
    st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=60),
    st.sampled_from([1, 3, 1000]),
)
def test_each_message_id_is_told_once_for_each_emit(
    wishes: list[tuple[Any, str | None]], settles: list[tuple[int, bool]], tuples: int
) -> None:
    driven = Driven(tuples)
    spout = driven.spout
    spout.wishes = [(n, id, stream) for n, (id, stream) in enumerate(wishes)]
    open_: list[Emit] = []
    got: Counter[int] = Counter()
    failed: set[int] = set()
    while spout.wishes or open_:
        for emit in driven.command("next"):
            carried = [values[0] for _, values in tuples_of(emit)]
            got.update(carried)
            assert len(carried) <= tuples
            reliable = {wishes[n][0] is not None for n in carried}
            assert reliable == {emit.id is not None}
            if emit.id is not None:
                open_.append(emit)
        if open_:
            pick, ok = settles.pop() if settles else (0, True)
            emit = open_.pop(pick % len(open_))
            if not ok:
                failed.update(values[0] for _, values in tuples_of(emit))
            driven.command("ack" if ok else "fail", emit.id)
    driven.close()
    # one task of the shuffled subscriber, two of the all grouping; the other stream has one subscriber
    assert got == Counter({n: 1 if stream else 3 for n, (_, stream) in enumerate(wishes)})
    assert spout.told == Counter((id, n not in failed) for n, (id, _) in enumerate(wishes) if id is not None)
    assert driven.collector.pending == 0


def test_the_spouts_tuples_in_flight_are_bounded_not_its_blocks() -> None:
    driven = Driven(most=8)
    driven.spout.wishes = [(n, n, None) for n in range(100)]
    sent: list[Emit] = []
    for _ in range(20):
        sent += driven.command("next")
    assert driven.collector.pending == 8
    assert driven.runner.full
    for emit in sent:
        driven.command("ack", emit.id)
    assert driven.collector.pending == 0
    assert sorted(driven.spout.told) == [(n, True) for n in range(8)]
    assert driven.command("next")
    driven.close()


def test_a_spout_with_tuples_at_hand_is_asked_for_more_and_more_at_once() -> None:
    driven = Driven()
    driven.spout.wishes = [(n, n, None) for n in range(3)]
    calls = []
    for _ in range(3):
        before = driven.spout.calls
        driven.command("next")
        calls.append(driven.spout.calls - before)
    assert calls[0] == 1
    assert sum(calls) <= 1 + 2 + 4
    assert not driven.spout.wishes
    before = driven.spout.calls
    driven.command("next")
    assert driven.spout.calls == before + 1  # it had nothing the last time
    driven.close()


def test_a_spout_that_waits_in_next_tuple_is_asked_once_at_a_time() -> None:
    """Otherwise the tuples that it gave before would wait with it."""
    driven = Driven()
    driven.spout.waits = True
    for round_ in range(4):
        driven.spout.wishes = [(n, None, None) for n in range(5)]
        before = driven.spout.calls
        commands = 0
        while driven.spout.wishes or driven.spout.calls == before:
            driven.command("next")
            commands += 1
        driven.command("next")  # and waits
        if round_:
            assert commands == 5
            assert driven.spout.calls == before + 6
    driven.close()


def apart(emit: Emit) -> tuple[bool, list[int]]:
    """True for a block that is marked as apart, and its numbers."""
    return emit.values[1].startswith(" "), [values[0] for _, values in tuples_of(emit)]


@pytest.mark.parametrize("same_ids", [True, False])
def test_what_failed_together_travels_apart_the_next_time(same_ids: bool) -> None:
    """Otherwise a tuple that always fails would fail the same companions, until they are given up."""
    driven = Driven()
    driven.spout.burst = 4
    driven.spout.wishes = [(n, n, None) for n in range(3, 7)]
    sent = driven.command("next")
    together = next(emit for emit in sent if apart(emit)[1] == [3, 4, 5, 6])
    assert not any(apart(emit)[0] for emit in sent)
    driven.command("fail", together.id)
    driven.spout.wishes = [(n, n if same_ids else n + 100, None) for n in range(3, 7)]
    again = [apart(emit) for emit in driven.command("next")]
    assert sorted(again) == sorted((True, [n]) for n in range(3, 7) for _ in range(3))  # for each of three tasks
    driven.spout.wishes = [(n, n, None) for n in range(20, 24)]
    assert {apart(emit)[0] for emit in driven.command("next")} == {False}
    driven.close()


def test_a_failure_together_with_others_is_not_counted_as_a_tuples_own() -> None:
    """Otherwise a tuple would be given up earlier than without blocks, for what another one did."""
    driven = Driven(spout=Again)
    (sent,) = [each for each in driven.command("next") if len(apart(each)[1]) == 4][:1]
    driven.command("fail", sent.id)
    failed: list[Any] = []
    while driven.spout.waiting_for_replay:
        for each in driven.command("next"):
            marked, (n,) = apart(each)
            assert marked
            if n == 2 and n not in failed:
                failed.append(n)
                driven.command("fail", each.id)
    assert not driven.spout.given_up  # it has failed together, and once alone, and was replayed twice
    for each in driven.command("next"):
        if apart(each)[1] == [2]:
            driven.command("fail", each.id)
    driven.close()


def test_a_spout_without_a_limit_is_asked_for_single_tuples_when_many_are_under_way() -> None:
    driven = Driven()
    driven.spout.burst = 1
    driven.spout.wishes = [(n, n, None) for n in range(30_000)]
    most = 0
    while driven.collector.pending < 10_000:
        before = driven.spout.calls
        driven.command("next")
        most = max(most, driven.spout.calls - before)
    assert most > 1
    for _ in range(3):
        before = driven.spout.calls
        driven.command("next")
        assert driven.spout.calls == before + 1
    driven.close()


def test_where_the_library_chose_a_spout_without_a_limit_is_asked_for_none_when_many_are_under_way() -> None:
    """Storm's queues would hold as many blocks as tuples, which bolts can't work on before the message timeout."""
    driven = Driven(spout=Telling, how="auto")
    driven.spout.burst = 50
    driven.spout.wishes = [(n, n, None) for n in range(12_000)]
    sent: list[Emit] = []
    for _ in range(300):
        sent += driven.command("next")
        if driven.runner.full:
            break
    assert driven.collector.pending == 10_000
    assert "topology.max.spout.pending" not in driven.spout.conf
    assert any(len(apart(emit)[1]) > 1 for emit in sent)
    for emit in sent:
        driven.command("ack", emit.id)
    assert driven.command("next")
    driven.close()


def test_where_the_library_chose_tuples_without_an_id_go_alone() -> None:
    """No limit would keep their blocks few."""
    driven = Driven(spout=Telling, how="auto")
    driven.spout.burst = 6
    driven.spout.wishes = [(n, None, None) for n in range(6)]
    sent = driven.command("next")
    driven.close()
    assert [apart(emit)[1] for emit in sent] == [[n] for n in range(6) for _ in range(3)]


def test_where_the_library_chose_many_travel_apart_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hundredth tuple fails, so that each block would."""
    monkeypatch.setattr(blocks, "PENALTY", 20)
    driven = Driven(spout=Telling, how="auto")
    driven.spout.burst = 10

    def emit(number: int) -> set[bool]:
        """Emit ten tuples, all of which are acked, and return whether their blocks are apart."""
        driven.spout.wishes = [(n, n, None) for n in range(10 * number, 10 * number + 10)]
        sent = driven.command("next")
        for each in sent:
            driven.command("ack", each.id)
        return {apart(each)[0] for each in sent}

    def fail(number: int) -> None:
        driven.spout.wishes = [(n, n, None) for n in range(10 * number, 10 * number + 10)]
        together = driven.command("next")
        for each in together:  # all of which were sent before the first failure came back
            driven.command("fail", each.id)

    fail(0)
    assert [emit(number) for number in range(1, 4)] == [{True}, {True}, {False}]
    fail(10)  # too soon
    assert [emit(number) for number in range(11, 21)] == [{True}] * 4 + [{False}] * 6
    fail(30)  # not so soon
    assert [emit(number) for number in range(31, 34)] == [{True}, {True}, {False}]
    driven.close()


def test_a_spout_that_waits_for_its_next_tuple_lets_others_wait_only_once() -> None:
    """It blocks in next_tuple until there is an item, as no spout should, and gives it."""
    driven = Driven()
    spout = driven.spout
    spout.wishes = [(n, None, None) for n in range(10_000)]
    spout.pauses = pauses = {3, 6, 9, 12}
    together = 0
    while spout.calls < 20:
        before = spout.calls
        driven.command("next")
        together += any(before + 1 < call <= spout.calls for call in pauses)
    assert together <= 1
    driven.close()


@pytest.mark.parametrize("id", [None, 5])
def test_by_root_each_tuple_goes_at_once_and_alone(id: int | None) -> None:
    """Nothing would be gained by keeping it while ``next_tuple`` goes on, which may wait."""
    driven = Driven(how="root")
    driven.spout.burst = 6
    driven.spout.wishes = [(n, id, None) for n in range(6)]
    sent = driven.command("next")
    driven.close()
    assert [apart(emit)[1] for emit in sent] == [[n] for n in range(6) for _ in range(3)]


def test_the_engine_lets_as_many_messages_pend_as_the_allowed_tuples_are() -> None:
    """A tuple is a message for each of its tasks: one of ``one``, and both of ``every``."""
    driven = Driven(most=8, how="root")
    assert driven.own["topology.max.spout.pending"] == 24
    assert driven.spout.conf["topology.max.spout.pending"] == 8
    driven.close()
