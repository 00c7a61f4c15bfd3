"""Anchors: the inputs with which an output is replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/anchors", "Anchors", f"{PAGE}, Bolts: anchors")


def anchored(t: Conversation, expected: list[Any]) -> None:
    """Check the anchors of all emits, in order."""
    t.same([message.anchors for message in t.received.emits], expected, "the anchors are others")


@section.must("an emit anchored to its input", "anchors holds the input's id, exactly as it came.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", ["x"]])
    t.finished(id)
    anchored(t, [[id]])


@section.must("an emit without anchors", "An unanchored emit has no anchors, or none in the list.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    t.finished(t.steps(["emit", ["x"], {"anchors": []}]))
    anchored(t, [[]])


@section.must(
    "an emit anchored to several tuples",
    "All their ids are in the list.",
    steps="emit keep",
    after=("bolt/ack/2", "bolt/order/5"),
)
def _(t: Conversation) -> None:
    t.handshake()
    first, second = t.steps(["keep", "a"]), t.steps(["keep", "b"])
    third = t.steps(["emit", ["x"], {"anchors": ["a", "b", "this"]}])
    t.finished(third)
    t.same(sorted(t.received.emits[0].anchors), sorted([first, second, third]), "the anchors are others")


@section.must(
    "an emit anchored to an earlier tuple",
    "A tuple that user code holds is an anchor as long as it is not finished.",
    steps="emit keep",
    after=("bolt/ack/2",),
)
def _(t: Conversation) -> None:
    t.handshake()
    first = t.steps(["keep", "a"])
    t.finished(t.steps(["emit", ["x"], {"anchors": ["a"]}]))
    anchored(t, [[first]])


@section.must(
    "each emit its own",
    "Anchored and unanchored emits of one input are not mixed up.",
    steps="emit keep",
    after=("bolt/ack/2",),
)
def _(t: Conversation) -> None:
    t.handshake()
    first = t.steps(["keep", "a"])
    second = t.steps(["emit", [1], {"anchors": []}], ["emit", [2]], ["emit", [3], {"anchors": ["a"]}], ["emit", [4]])
    t.finished(second)
    anchored(t, [[], [second], [first], [second]])


@section.must(
    "the next tuple's emits",
    "What one tuple was anchored to does not stick to the next.",
    steps="emit",
    after=("bolt/order/5",),
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = [t.steps(["emit", [n]]) for n in range(10)]
    for id in ids:
        t.finished(id)
    anchored(t, [[id] for id in ids])


@section.must(
    "emits come before the ack",
    "Anchored emits are written before the ack of their anchor, or the worker halts.",
    steps="emit ack",
    source=f"{PAGE}, Bolts; {MEASURED} (anchor_acked)",
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", [1]], ["emit", [2]], ["ack"])
    t.finished(id)
    t.barrier()
    order = [message.command for message in t.received if message.value.get("id") == id or message.anchors == [id]]
    t.same(order, ["emit", "emit", "ack"], "the order is another")


section.watch(
    "MUST",
    "anchors.finished",
    "no anchor that is finished",
    "An emit anchored to a tuple after its ack or fail halts the worker.",
    f"{MEASURED} (anchor_acked)",
    after=("bolt/ack/2", "bolt/ack/6"),
)
section.watch(
    "MUST",
    "anchors.unknown",
    "no anchor that never was",
    "An anchor is the id of a tuple that came.",
    f"{MEASURED} (anchor_acked)",
)
section.watch(
    "MUST", "anchors.type", "anchors are a list of strings", "Storm casts each to a string.", "Storm's JsonSerializer"
)
section.watch(
    "MUST",
    "anchors.single",
    "a single anchor is a list of one",
    "The page has a list; that Storm takes a bare id is written nowhere, and no other parent need do so.",
    f"{PAGE}, Bolts: anchors; {MEASURED} (anchor_string)",
)
section.watch(
    "SHOULD",
    "anchors.twice",
    "no anchor twice",
    "The same anchor twice makes two edges of the tuple tree where there is one.",
    "Storm's acker",
)


@section.must("emits to other streams", "An emit is anchored to its input, whichever stream it goes to.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", ["x"], {"stream": "other"}], ["emit", ["y"], {"stream": "other", "anchors": []}])
    t.finished(id)
    anchored(t, [[id], []])


@section.must(
    "an emit behind one with several anchors",
    "Anchors do not stick: an emit that names none is anchored to its own input alone, in this tuple and in the next.",
    steps="emit keep",
    after=("bolt/ack/2", "bolt/anchors/3", "bolt/order/5"),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.steps(["keep", "a"])
    second = t.steps(["emit", [1], {"anchors": ["a", "this"]}], ["emit", [2]])
    third = t.steps(["emit", [3]])
    t.finished(second)
    t.finished(third)
    came = [message.anchors for message in t.received.emits[1:]]
    t.same(came, [[second], [third]], "the anchors are others")
