"""Tick tuples: tuples of the system that a bolt has to ack or fail like any other."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from multilang.conformance.case import Section
from multilang.conformance.cases.bolt_ordinary import ACKS, SURVIVES, TICK, TOGETHER
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section(
    "bolt/tick",
    "Ticks",
    "Storm's TOPOLOGY_TICK_TUPLE_FREQ_SECS; ShellBolt keeps every tuple until it is acked or failed",
)


@section.must(
    "a tick is acked or failed",
    "A tick is a tuple from __system: it is finished as any other, or the worker's memory fills.",
    after=(SURVIVES, ACKS, TICK, TOGETHER),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.tuple([5], comp="__system", stream="__tick", task=-1)
    if not t.world.contract:  # it may finish a tick with what it has collected, at the next tick for instance
        for values in [*t.world.tuples, *t.world.tuples]:
            t.tuple(values)
            t.tuple([5], comp="__system", stream="__tick", task=-1)
        t.beat()
    t.wait(lambda: t.monitor.finished.get(id), "the ack (or fail) of the tick, a tuple of the stream __tick")


@section.must(
    "a tick is no heartbeat",
    "Its task is -1, too: what makes a heartbeat is the stream, so a tick is not answered by a sync alone.",
    after=(SURVIVES, TICK, TOGETHER),
)
def _(t: Conversation) -> None:
    t.handshake()
    before, start = t.syncs, monotonic()
    ids = [t.tuple([1], comp="__system", stream="__tick", task=-1) for _ in range(30)]
    if t.world.contract:
        for id in ids:
            t.finished(id)
    t.barrier()
    # A bolt may send syncs of its own, with a timer, or behind whatever it has worked on as before Storm 0.7.1.
    syncs = t.syncs - before
    if syncs <= 3 + 5 * (monotonic() - start):
        return
    before = t.syncs
    for _ in range(3):
        t.tuple(t.world.tuples[0])
    t.beat()
    if t.syncs - before < 4:
        raise CaseFailed(
            "ticks were answered as heartbeats: recognize a heartbeat by its stream, __heartbeat, not by its task",
            f"{len(ids)} acks",
            f"{syncs} syncs",
        )


@section.must(
    "ticks between tuples",
    "Tuples before and behind a tick are worked on as without it.",
    steps="emit",
    after=(TICK, "bolt/anchors/1"),
)
def _(t: Conversation) -> None:
    t.handshake()
    first = t.steps(["emit", [1]])
    t.tuple([1], comp="__system", stream="__tick", task=-1)
    second = t.steps(["emit", [2]])
    t.finished(first)
    t.finished(second)
    came = [message.values for message in t.received.emits if message.anchors in ([first], [second])]
    t.same(came, [[1], [2]], "the tuples were not worked on")
