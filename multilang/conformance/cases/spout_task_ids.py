"""The task ids of a spout's emits, and the acks that may come before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.bolt_task_ids import (
    BEHIND_REFUSED,
    ESCAPES,
    HALF,
    PROVOKED,
    REFUSED,
    answered,
    behind_refused,
    none_declined_is_awaited,
    not_those_of_others,
    reported,
    wants_none,
)
from multilang.conformance.cases.spout_ordinary import ACK
from multilang.conformance.errors import DiedAtStart, NotApplicable
from multilang.conformance.world import framed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("spout/task_ids", "Task ids", f"{PAGE}, Spouts: task ids")


@section.must(
    "task ids are no command", "An array is the task ids of an emit: it is taken, and the sync comes.", steps="emit"
)
def _(t: Conversation) -> None:
    outs = t.perform([["emit", [1]]], [["emit", [2]]])
    t.same([out.values for out in outs], [[[1]], [[2]]], "the emits are others")


@section.must("task ids reach the emit", "An emit that asks for task ids gets its own.", steps="emit ids")
def _(t: Conversation) -> None:
    t.perform([["emit", [n], {"ids": True}] for n in range(5)])
    t.same(reported(t), answered(t), "emits were given each other's task ids")


@section.must(
    "no task",
    "A stream that nobody subscribes to answers with an empty array.",
    steps="emit ids",
    after=("spout/emit/5",),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"stream": "quiet", "ids": True}]])
    t.emitted(out, [["x"], [["ids", []]]], "the empty array is no answer to the emit")


@section.must("several tasks", "A tuple may go to many tasks: all are in the array.", steps="emit ids")
def _(t: Conversation) -> None:
    t.handshake('[[["emit",["x"],{"ids":true}]]]')
    t.holds_ids = True
    t.begin("next")
    t.wait(lambda: t.owed or None, "an emit that wants task ids")
    t.send(framed("[7,5]"))
    t.owed.clear()
    t.holds_ids = False
    t.wait(lambda: t.syncs or None, "the sync")
    t.same(reported(t), [[7, 5]], "user code got other task ids")


@section.must(
    "an ack before the task ids",
    "Without ackers Storm acks a reliable tuple inside of its emit: the ack comes before the task ids, and waits for its sync.",
    steps="emit ids",
    source=MEASURED,
    after=(ACK,),
)
def _(t: Conversation) -> None:
    t.world.conf |= {"topology.acker.executors": 0}
    t.handshake('[[["emit",["x"],{"id":"1","ids":true}]]]')
    t.command("activate")
    t.holds_ids = True
    t.begin("next")
    t.wait(lambda: t.owed or None, "an emit that wants task ids")
    t.command("ack", "1")
    t.holds_ids = False
    t.answer()
    t.wait(lambda: t.syncs >= 3 or None, "the sync that ends the next")
    t.same(reported(t), list(t.answers.values())[:1], "user code got other task ids")


@section.must(
    "acks before the task ids that nobody asked for",
    "The same for emits whose task ids the spout does not use: ack, then perhaps task ids, then on.",
    steps="emit",
    source=MEASURED,
    after=(ACK,),
)
def _(t: Conversation) -> None:
    t.world.conf |= {"topology.acker.executors": 0}
    t.handshake('[[["emit",["x"],{"id":"1"}],["emit",["y"],{"id":"2"}]]]')
    t.command("activate")
    t.holds_ids = True
    t.begin("next")
    for number in (1, 2):
        t.wait(lambda count=number: len(t.received.emits) >= count or None, "the next emit")  # type: ignore[misc]
        t.command("ack", t.received.emits[number - 1].value.get("id"))
        t.answer()
    t.holds_ids = False
    t.wait(lambda: t.syncs >= 4 or None, "the sync that ends the next")
    t.emitted(t.received, [["x"], ["y"]], "the emits are others")


@section.must(
    "late task ids", "Task ids that nobody waits for may come after the sync, when the parent is slow.", steps="emit"
)
def _(t: Conversation) -> None:
    t.handshake('[[["emit",[1]]],[["emit",[2]]]]')
    t.command("activate")
    for number in (1, 2):
        t.holds_ids = True
        before = t.syncs
        t.begin("next")
        t.wait(lambda count=number: len(t.received.emits) == count or None, "the emit")  # type: ignore[misc]
        t.holds_ids = False
        t.answer()
        t.wait(lambda count=before: t.syncs > count or None, "the sync that ends the next")  # type: ignore[misc]
    t.emitted(t.received, [[1], [2]], "the emits are others")


section.should(
    "it declines those that it does not want",
    "need_task_ids: false saves Storm and the spout a message for each emit whose task ids nobody reads.",
    steps="emit",
    source="Storm's ShellSpout since 0.9.3",
)(wants_none)


def refusing(t: Conversation, emits: Sequence[str]) -> None:
    """Have the spout do emits that it may refuse, each before one that asks for its task ids, and check these."""
    steps = [[text, f'["emit",["behind {number}"],{{"ids":true}}]'] for number, text in enumerate(emits)]
    t.handshake(f"[{','.join(f'[{step}]' for pair in steps for step in pair)}]")
    t.command("activate")
    behind_refused(t, emits)


@section.must("behind an emit that was refused", BEHIND_REFUSED, steps="emit ids", provokes=PROVOKED)
def _(t: Conversation) -> None:
    refusing(t, [emit for emit in REFUSED if emit != HALF])


@section.must(
    "behind half a letter that was refused", BEHIND_REFUSED, steps="emit ids", provokes=PROVOKED, after=ESCAPES
)
def _(t: Conversation) -> None:
    try:
        refusing(t, [HALF])
    except DiedAtStart as died:
        raise NotApplicable(f"it can't read half a surrogate pair, which another case judges: {died.why}") from None


@section.must(
    "emits that decline their task ids",
    "An emit with need_task_ids: false has no answer: nobody waits for one, not even now and then.",
    steps="emit",
    source="Storm's ShellSpout since 0.9.3",
)
def _(t: Conversation) -> None:
    none_declined_is_awaited(t)


@section.must(
    "what is done on an ack before the task ids",
    "An ack that comes while task ids are awaited is an ack as any other: user code is called for it.",
    steps="emit ids heard",
    source=MEASURED,
    after=(ACK, "spout/task_ids/5"),
)
def _(t: Conversation) -> None:
    t.world.conf |= {"topology.acker.executors": 0}
    t.handshake('[[["emit",["x"],{"id":"one","ids":true}]]]', on={"ack": [["heard"]]})
    t.command("activate")
    t.holds_ids = True
    t.begin("next")
    t.wait(lambda: t.owed or None, "an emit that wants task ids")
    t.command("ack", t.owed[0].value.get("id"))
    t.holds_ids = False
    t.answer()
    t.wait(lambda: t.syncs >= 3 or None, "the sync that ends the next")
    values = [message.values[0] for message in t.received.emits if isinstance(message.values[0], list)]
    calls = [command for command, _ in values if command != "ids"]  # spout/commands/7 checks their ids
    t.same(calls, ["ack"], "user code was not called for the ack")


@section.must(
    "task ids behind emits that do not ask",
    "An emit without need_task_ids: false is answered, though nobody asks: its task ids are not the next emit's.",
    steps="emit ids",
    after=("spout/task_ids/2",),
)
def _(t: Conversation) -> None:
    not_those_of_others(t)
