"""Sync: the end of a spout's answer."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.spout_ordinary import ACK, FAIL, STATES, begin, own
from multilang.conformance.errors import NotApplicable

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("spout/sync", "Sync", f"{PAGE}, Spouts: sync")
_UNTIL_IDLE = 200  # nexts at most that a spout may have something for, before one of them is idle


@section.must(
    "the sync comes last",
    "Emits and logs of a command come before its sync.",
    steps="emit log",
    after=("common/log/1",),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", [1]], ["log", "in its order"], ["emit", [2]], ["log", "in its order"]])
    # A library may log more than user code does.
    order = [
        message.command
        for message in out
        if message.command in ("emit", "sync") or "in its order" in str(message.value.get("msg"))
    ]
    t.same(order, ["emit", "log", "emit", "log", "sync"], "the order is another")


@section.must(
    "one sync for each command",
    "A second sync is read as the answer to the next command: from there on every answer is one too early.",
    source=f"{PAGE}, Spouts: sync; {MEASURED} (spout_two_syncs)",
    watch=("sync.twice",),
    after=(ACK, FAIL, STATES),
)
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    for command in ("ack", "fail"):
        try:
            t.command(command, own(t, used))
        except NotApplicable:
            break  # what it emits has no ids
    for command in ("next", "deactivate", "activate", "next"):
        t.command(command)
    t.leave()
    t.same(t.syncs, t.commands, "there are more syncs than commands: write one sync for each command, and none besides")


@section.must("each command its answer", "What belongs to one command is not in the answer to another.", steps="emit")
def _(t: Conversation) -> None:
    outs = t.perform(*([["emit", [n]], ["emit", [n + 100]]] for n in range(10)))
    t.same([out.values for out in outs], [[[n], [n + 100]] for n in range(10)], "answers are shifted")


@section.must("a next without a tuple", "With nothing to emit the answer is the sync alone.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    t.command("activate")
    out = t.next()
    t.same(out.values, [], "there are emits")


@section.must(
    "an error does not end the answer",
    "Only sync does: an emit behind an error is part of the same answer.",
    steps="emit error",
    after=("common/error/1",),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["error", "e"], ["emit", [1]]])
    t.emitted(out, [[1]], "the emit did not come before the sync")


section.watch(
    "MUST",
    "emit.late",
    "no emit after the sync",
    "After the sync Storm does not read until its next command: what is emitted then waits, with its acks.",
    f"{PAGE}, Spouts: sync; {MEASURED} (spout_late_emit)",
)


@section.should(
    "an idle next takes a moment",
    "With no tuple to emit a spout sleeps for a small amount of time before its sync: ShellSpout does not sleep for it.",
    source=f"{PAGE}, Spouts: sleep",
    after=("spout/commands/5", "spout/ordinary/6"),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.command("activate")
    for _ in range(_UNTIL_IDLE):
        if not t.next().emits:
            break
    quickest = float("inf")
    for _ in range(50):
        start = monotonic()
        out = t.next()
        if not out.emits:
            quickest = min(quickest, (monotonic() - start) * 1000)
    if quickest == float("inf"):
        raise NotApplicable(f"it had something to emit in each of {_UNTIL_IDLE} nexts and more")
    # The quickest counts, since a busy machine makes many of them slower, but hardly all.
    t.check(
        quickest >= 0.75, "an idle spout keeps a core busy", "1 ms for each idle next, or more", f"{quickest:.2f} ms"
    )
