"""The input of a bolt: tuples, with id, component, stream, task and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import PAGE, Section
from multilang.conformance.world import framed, storm_text, tuple_message

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/tuple", "Tuples to a bolt", f"{PAGE}, Bolts: a tuple")
OTHER_IDS = f"{PAGE}, Bolts: the id is a string; Storm's ShellBolt: it is a number of 64 bits, in decimal"


def described(t: Conversation, id: str, expected: list[object]) -> None:
    """Check the description of the tuple that the bolt emits."""
    t.finished(id)
    came = [message.values for message in t.received.emits if message.anchors == [id]]
    t.same(came, [[expected]], "the tuple reached user code otherwise than it was sent")


@section.must(
    "id, component, stream, task and values", "All five reach user code.", steps="tuple emit", after=("bolt/anchors/1",)
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["tuple"], rest=["snow white", 3], stream="three")
    described(t, id, [id, "source", "three", 2, ["snow white", 3]])


@section.must(
    "a tuple of another stream and task",
    "A bolt may have many sources, each with streams and tasks.",
    steps="tuple emit",
    after=("bolt/anchors/1",),
)
def _(t: Conversation) -> None:
    t.handshake()
    for stream, task, rest in (("other", 3, []), ("three", 2, ["a", 1]), ("two", 3, [2]), ("default", 2, [])):
        id = t.steps(["tuple"], rest=rest, stream=stream, task=task)
        described(t, id, [id, "source", stream, task, rest])


@section.should(
    "a component and a stream that the context does not list",
    "What comes is worked on, known or not.",
    steps="tuple emit",
    after=("bolt/anchors/1",),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["tuple"], comp="café/✓", stream="strom ü", task=99)
    described(t, id, [id, "café/✓", "strom ü", 99, []])


@section.must(
    "an id beyond 53 bits",
    "The id is a string, so that languages without 64 bits keep it: it returns digit by digit.",
    steps="emit",
    watch=("tuple.id",),
)
def _(t: Conversation) -> None:
    t.handshake()
    for id in ("-6955786537413359385", "9223372036854775807", "-9223372036854775808"):
        t.steps(["emit", ["x"]], id=id)
        t.finished(id)


@section.should(
    "an id that looks like another",
    "An id is a string: 007 is not 7, and 1e3 is not 1000.",
    steps="emit",
    source=OTHER_IDS,
)
def _(t: Conversation) -> None:
    t.handshake()
    for id in ("007", "7", "+7", "1e3", "1000", "1.0", "null"):
        t.steps(["emit", ["x"]], id=id)
        t.finished(id)


@section.should(
    "an id of any characters",
    "Nothing is promised of an id but that it is a string.",
    steps="emit",
    source=OTHER_IDS,
)
def _(t: Conversation) -> None:
    t.handshake()
    for id in ("", "a b", 'é "q" \\ 🐍', "end", "[1]"):
        t.steps(["emit", ["x"]], id=id)
        t.finished(id)


@section.must(
    "the page's key order, and the reverse",
    "The keys of a tuple have no order.",
    steps="emit",
    after=("common/json/4",),
)
def _(t: Conversation) -> None:
    t.handshake()
    for reverse in (False, True):
        id = t.new_id()
        pairs = [("id", id), ("comp", "source"), ("stream", "default"), ("task", 2), ("tuple", [[["emit", ["x"]]]])]
        t.will_finish(id)
        t.send(framed(storm_text(dict(reversed(pairs) if reverse else pairs))))
        t.finished(id)
    t.emitted(t.received, [["x"], ["x"]], "the tuples were not worked on")


@section.must("a tuple without values", "An empty tuple is one.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    t.finished(t.tuple([], stream="empty"))


@section.should(
    "a tuple with more values than fields",
    "More values come than the context has fields for: all reach user code.",
    steps="tuple emit",
    after=("bolt/anchors/1",),
)
def _(t: Conversation) -> None:
    t.handshake()
    rest = list(range(100))
    id = t.steps(["tuple"], rest=rest)
    described(t, id, [id, "source", "default", 2, rest])


@section.must(
    "200 tuples in one write",
    "Tuples come as fast as the pipe takes them; each is finished once.",
    steps="emit",
    after=("common/io/8", "bolt/order/5"),
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = [t.new_id() for _ in range(200)]
    text = b""
    for number, id in enumerate(ids):
        t.will_finish(id)
        text += framed(storm_text(tuple_message(id, [[["emit", [number]]]])))
    t.send(text)
    for id in ids:
        t.finished(id)
    t.emitted(t.received, [[n] for n in range(200)], "emits are missing, or out of order")


@section.should(
    "in the order of arrival", "A bolt that works on one tuple after the other acks them in that order.", steps="emit"
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = [t.steps() for _ in range(50)]
    for id in ids:
        t.finished(id)
    t.same([id for id in t.monitor.finished if id in ids], ids, "tuples were finished in another order")


@section.must(
    "tuples of the same values",
    "Two tuples may have the same values: each is worked on, by itself.",
    steps="emit",
    after=("bolt/anchors/1", "bolt/order/5"),
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = [t.steps(["emit", ["the same"]]) for _ in range(3)]
    for id in ids:
        t.finished(id)
    came = [[message.anchors, message.values] for message in t.received.emits]
    t.same(came, [[[id], ["the same"]] for id in ids], "not each of three equal tuples was worked on")


@section.must(
    "an id of few digits",
    "An id is a string, however small the number in it: it goes back as a string, in anchors and acks.",
    steps="emit",
    source=f"{PAGE}, Bolts: the id is a string",
)
def _(t: Conversation) -> None:
    t.handshake()
    for id in ("123123", "-234234234", "5", "-1", "0"):
        t.steps(["emit", ["x"]], id=id)
        t.finished(id)
