"""Tick tuples: tuples of the system that a bolt has to ack or fail like any other."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from multilang.conformance.case import Section
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.talk import Talk

section = Section(
    "bolt/tick",
    "Ticks",
    "Storm's TOPOLOGY_TICK_TUPLE_FREQ_SECS; ShellBolt keeps every tuple until it is acked or failed",
)


@section.must(
    "a tick is acked or failed",
    "A tick is a tuple from __system: it is finished as any other, or the worker's memory fills.",
    steps="emit",
)
def _(t: Talk) -> None:
    t.handshake()
    id = t.tuple([5], comp="__system", stream="__tick", task=-1)
    t.finished(id)


@section.must(
    "a tick is no heartbeat",
    "Its task is -1, too: what makes a heartbeat is the stream, so a tick is not answered by a sync alone.",
    steps="emit",
)
def _(t: Talk) -> None:
    t.handshake()
    before, start = t.syncs, monotonic()
    ids = [t.tuple([1], comp="__system", stream="__tick", task=-1) for _ in range(30)]
    for id in ids:
        t.finished(id)
    t.barrier()
    # A bolt may send syncs of its own.
    if t.syncs - before > 3 + 5 * (monotonic() - start):
        raise CaseFailed("ticks were answered as heartbeats", f"{len(ids)} acks", f"{t.syncs - before} syncs, too")


@section.must("ticks between tuples", "Tuples before and behind a tick are worked on as without it.", steps="emit")
def _(t: Talk) -> None:
    t.handshake()
    first = t.steps(["emit", [1]])
    t.tuple([1], comp="__system", stream="__tick", task=-1)
    second = t.steps(["emit", [2]])
    t.finished(first)
    t.finished(second)
    came = [message.values for message in t.received.emits if message.anchors in ([first], [second])]
    t.same(came, [[1], [2]], "the tuples were not worked on")
