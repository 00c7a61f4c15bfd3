"""Emits of a spout: values, streams and message ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.spout_commands import under_way
from multilang.conformance.cases.spout_ordinary import ACK, FAIL
from multilang.conformance.errors import CaseFailed
from multilang.conformance.values import cut_texts

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("spout/emit", "Spout emits", f"{PAGE}, Spouts: an emit")


@section.must(
    "an unreliable emit", "id is left out, or null, when nobody waits for the tuple's ack or fail.", steps="emit"
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"]]])
    t.emitted(out, [["x"]], "the values are others")
    t.same([message.value.get("id") for message in out.emits], [None], "there is an id")


@section.must("a reliable emit", "id is the message id that user code gave.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"id": "1231231"}]])
    t.same([message.value.get("id") for message in out.emits], ["1231231"], "the id is another")


@section.must(
    "an id that is a number",
    "The id can be a string or a number, and is sent as what it is.",
    steps="emit",
    after=("common/unicode/1",),
)
def _(t: Conversation) -> None:
    ids = [7, "7", 0, 2147483648, "é 🐍", *cut_texts(100)]
    [out] = t.perform([["emit", ["x"], {"id": id}] for id in ids])
    t.same([message.value.get("id") for message in out.emits], ids, "ids are others")


@section.must("the default stream", "An emit without a stream goes to the default stream.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"id": "1"}]])
    t.same([message.stream for message in out.emits], ["default"], "the stream is another")


@section.must("another stream", "stream names the stream.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"stream": "other"}], ["emit", ["y"]], ["emit", [1, 2], {"stream": "pair"}]])
    came = [[message.stream, message.values] for message in out.emits]
    t.same(came, [["other", ["x"]], ["default", ["y"]], ["pair", [1, 2]]], "streams or values are others")


@section.must("several emits of one next", "A next may emit any number of tuples, in order.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", [n], {"id": str(n)}] for n in range(50)])
    t.emitted(out, [[n] for n in range(50)], "emits are missing, or out of order")


@section.must("an emit in an ack", "A spout may emit in answer to an ack.", steps="emit", after=(ACK, FAIL))
def _(t: Conversation) -> None:
    under_way(t, "1", ack=[["emit", ["again"], {"id": "2"}], ["emit", ["more"]]])
    out = t.command("ack", "1")
    t.emitted(out, [["again"], ["more"]], "the emits did not come before the sync")


@section.must("an emit in a fail", "A failed tuple may be sent again at once.", steps="emit", after=(ACK, FAIL))
def _(t: Conversation) -> None:
    under_way(t, "1", fail=[["emit", ["again"], {"id": "1"}], ["emit", ["more"]]])
    out = t.command("fail", "1")
    t.emitted(out, [["again"], ["more"]], "the emits did not come before the sync")


section.watch(
    "MUST", "emit.tuple", "an emit's tuple is a list", "Anything else halts the worker.", f"{MEASURED} (tuple_not_list)"
)
section.watch(
    "MUST",
    "emit.stream emit.stream-empty emit.stream-type",
    "a stream is declared",
    "An emit to a stream that the topology does not declare halts the worker; so does the empty name.",
    f"{MEASURED} (spout_stream)",
)
section.watch(
    "MUST", "emit.need", "need_task_ids is true or false", "Storm casts it to a Boolean.", "Storm's JsonSerializer"
)
section.watch(
    "MUST",
    "emit.arity",
    "as many values as fields",
    "Storm does not count: a bolt that asks for the missing field by name fails, far from here.",
    f"{MEASURED} (spout_arity)",
)


@section.should("an id of 64 bits", "A number as id is returned exactly, if it is sent exactly.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"id": 9007199254740993}]])
    t.same([message.value.get("id") for message in out.emits], [9007199254740993], "the id is another")


@section.must(
    "ids that many languages take for nothing",
    'An id is any string or number: 0, "", -1 and 1.5 are ids, and come back with the ack.',
    steps="heard emit",
    after=(ACK, FAIL, "spout/commands/7", "spout/commands/9"),
)
def _(t: Conversation) -> None:
    ids = [0, "", -1, 1.5]
    under_way(t, *ids, ack=[["heard"]])
    t.same([message.value.get("id") for message in t.received.emits], ids, "ids are others")
    for id in ids:
        t.emitted(t.command("ack", id), [[["ack", id]]], "another id was returned")


section.watch(
    "SHOULD",
    "emit.id-type",
    "an id is a string or a number",
    "Storm keeps any JSON value and sends it back; the page promises that for strings and numbers alone.",
    f"{PAGE}, Spouts: id",
)


@section.must(
    "emits of the same values",
    "Two emits may have the same values: both are sent.",
    steps="emit",
)
def _(t: Conversation) -> None:
    outs = t.perform([["emit", ["x"]], ["emit", ["x"]]], [["emit", ["x"]]])
    t.same([out.values for out in outs], [[["x"], ["x"]], [["x"]]], "emits are missing, or there are more of them")


@section.must(
    "a reliable emit to another stream",
    "A message id goes with an emit to any stream.",
    steps="emit",
    after=("spout/emit/2", "spout/emit/5"),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"id": "m1", "stream": "other"}], ["emit", ["y"], {"id": "m2"}]])
    came = [[message.stream, message.value.get("id")] for message in out.emits]
    t.same(came, [["other", "m1"], ["default", "m2"]], "streams or ids are others")


@section.must(
    "an unreliable emit behind a reliable one",
    "An id is of one emit: the next emit without one is unreliable, in this next and in the next one.",
    steps="emit",
    after=("spout/emit/1", "spout/emit/2"),
)
def _(t: Conversation) -> None:
    outs = t.perform([["emit", [1], {"id": "m1"}], ["emit", [2]]], [["emit", [3]]])
    ids = [message.value.get("id") for out in outs for message in out.emits]
    t.same(ids, ["m1", None, None], "an id of another emit")


@section.must(
    "an emit without values is sent or refused",
    "An emit whose list is empty is sent as it is, or refused, and then user code is told so: an exception is reported, in an error, "
    "a log or on standard error. It is not left out in silence.",
    steps="emit",
    source="the conformance contract: every value is emitted as it came",
    provokes=("emit.arity",),
    after=("spout/emit/6",),
)
def _(t: Conversation) -> None:
    t.handshake('[[["emit",[],{"id":"empty"}]],[["emit",["behind it"]]]]')
    t.command("activate")
    try:
        out = t.next()
        behind = t.next()
    except CaseFailed:
        if not t.child.output_ended:
            raise
        t.monitor.leaving = True  # it ended, and Storm restarts it
        return
    t.emitted(behind, [["behind it"]], "the next after it was not worked on")
    if not out.of("error", "log") and not t.child.error_text.strip():
        t.emitted(out, [[]], "the emit was left out, and nothing reports it")


section.watch(
    "MUST",
    "emit.id-again",
    "tuples under way have different ids",
    "Storm names a tuple by its id when it acks or fails it. Of two different ones of a stream with one id, neither acked nor failed, "
    "nobody knows which failed.",
)
