"""Emits of a bolt: values, streams, and Storm's reaction to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/emit", "Emits", f"{PAGE}, Bolts: emits")


@section.must(
    "the values of an emit",
    "An emit's tuple is the list of its values, as user code gave them.",
    steps="emit",
    after=("common/json/11",),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", [{"a": [1, "x", None]}]]])
    t.emitted(out, [[{"a": [1, "x", None]}]], "the values are others")


@section.must(
    "the default stream",
    "An emit without a stream goes to the default stream: stream is left out, null, or is default.",
    steps="emit",
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"]]])
    t.same([message.stream for message in out.emits], ["default"], "the stream is another")


@section.must("another stream", "stream names the stream.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"stream": "other"}], ["emit", ["y"]], ["emit", [1, 2], {"stream": "pair"}]])
    t.same(
        [[message.stream, message.values] for message in out.emits],
        [["other", ["x"]], ["default", ["y"]], ["pair", [1, 2]]],
        "streams or values are others",
    )


@section.must("emits in order", "Emits of one input come in the order in which they were made.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", [f"emit {n}"], {"stream": ["default", "other"][n % 2]}] for n in range(40)])
    t.emitted(out, [[f"emit {n}"] for n in range(40)], "emits are missing, or out of order")


@section.must(
    "a tuple without emits", "A bolt need not emit: the tuple is acked, and nothing else comes.", steps="emit"
)
def _(t: Conversation) -> None:
    [out] = t.perform([])
    t.same(out.emits.values, [], "there are emits")


section.watch(
    "MUST",
    "emit.tuple",
    "an emit's tuple is a list",
    "A text, an object or nothing in its place halts the worker, or the next one.",
    f"{MEASURED} (tuple_not_list, null_tuple)",
)
section.watch("MUST", "emit.stream-type", "a stream is a string", "Storm casts it to one.", "Storm's JsonSerializer")
section.watch(
    "MUST",
    "emit.stream emit.stream-empty",
    "a stream is declared",
    "An emit to a stream that the topology does not declare halts the worker; so does the empty name.",
    f"{MEASURED} (stream)",
)
section.watch(
    "MUST",
    "emit.need",
    "need_task_ids is true or false",
    'Storm casts it to a Boolean: 0 or "false" halts the worker.',
    "Storm's JsonSerializer",
)
section.watch(
    "MUST",
    "emit.arity",
    "as many values as fields",
    "Storm does not count: a bolt that asks for the missing field by name fails, far from here.",
    f"{MEASURED} (arity, arity_more)",
)
section.watch(
    "MUST",
    "command.unknown",
    "no unknown commands",
    "Storm ignores commands that it does not know: a misspelt ack is a tuple that times out.",
    f"{PAGE}, Bolts; {MEASURED} (unknown_command)",
)


@section.must(
    "emits of the same values",
    "Two emits may have the same values: both are sent.",
    steps="emit",
    after=("bolt/emit/4",),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"]], ["emit", ["x"]], ["emit", ["x"], {"stream": "other"}]])
    came = [[message.stream, message.values] for message in out.emits]
    t.same(
        came, [["default", ["x"]], ["default", ["x"]], ["other", ["x"]]], "emits are missing, or there are more of them"
    )


@section.must(
    "an emit without values is sent or refused",
    "An emit whose list is empty is sent as it is, or refused, and then its tuple is failed, or the process ends. It is not left out, "
    "and its tuple acked.",
    steps="emit",
    source="the conformance contract: every value is emitted as it came",
    provokes=("emit.arity",),
    after=("bolt/emit/5",),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", []])
    try:
        t.wait(lambda: t.monitor.finished.get(id), "the ack or fail of the tuple, or the end of the process")
    except CaseFailed:
        if not t.child.output_ended:
            raise
    t.monitor.leaving = True
    if t.monitor.finished.get(id) == "ack":
        t.emitted(t.received, [[]], "the emit was left out, and its tuple acked")
