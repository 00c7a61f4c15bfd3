"""Acks and fails: each tuple has one of them, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/ack", "Ack", f"{PAGE}, Bolts: ack")


@section.must("an ack", 'An ack is {"command": "ack", "id": …} with the tuple\'s id.', steps="ack")
def _(t: Conversation) -> None:
    t.handshake()
    for id in (t.steps(["ack"]), t.steps()):
        t.same(t.finished(id), "ack", "the tuple was not acked")


@section.must("an ack later", "A tuple that user code holds is acked when user code acks it.", steps="keep ack")
def _(t: Conversation) -> None:
    t.handshake()
    first = t.steps(["keep", "a"])
    t.barrier()
    if first in t.monitor.finished:
        raise CaseFailed(
            "user code held the tuple, and it was finished all the same",
            "no ack and no fail yet",
            t.monitor.finished[first],
        )
    second = t.steps(["ack", "a"])
    t.same([t.finished(first), t.finished(second)], ["ack", "ack"], "the tuples were not acked")


@section.must("acks in another order", "Tuples may be acked in any order.", steps="keep ack", after=("bolt/order/5",))
def _(t: Conversation) -> None:
    t.handshake()
    a, b, c = (t.steps(["keep", name]) for name in "abc")
    t.finished(t.steps(["ack", "c"], ["ack", "a"], ["ack", "b"]))
    order = [id for id in t.monitor.finished if id in (a, b, c)]
    t.same(order, [c, a, b], "the acks came otherwise")


@section.must(
    "an ack of one among many",
    "Acking one tuple leaves the others as they are.",
    steps="keep ack",
    after=("bolt/order/5",),
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = {name: t.steps(["keep", name]) for name in "abcde"}
    t.finished(t.steps(["ack", "c"]))
    t.barrier()
    t.same(sorted(name for name, id in ids.items() if id in t.monitor.finished), ["c"], "other tuples were finished")


@section.must("500 tuples, each acked once", "No tuple is forgotten in a crowd.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    for id in [t.steps() for _ in range(500)]:
        t.finished(id)
    t.barrier()


section.watch(
    "MUST",
    "ack.again",
    "no tuple is acked after its ack or fail",
    "A second ack halts the worker.",
    f"{MEASURED} (ack_twice)",
)
section.watch(
    "MUST",
    "ack.unknown",
    "no tuple is acked that never came",
    "An ack of an unknown id halts the worker.",
    f"{MEASURED} (ack_int)",
)
section.watch(
    "MUST",
    "ack.id-type",
    "the id of an ack is a string",
    "The number is another id than the string, one that Storm does not know.",
    f"{MEASURED} (ack_int)",
)


@section.must(
    "an exception behind an ack",
    "A tuple that was acked is finished: an exception of user code after it does not fail it, too.",
    steps="ack throw",
    source=f"{MEASURED} (ack_then_fail)",
    watch=("fail.again",),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["ack"], ["throw", "behind the ack"])
    t.same(t.finished(id), "ack", "the tuple was not acked")
    t.heartbeat()
    try:
        t.wait(lambda: t.syncs or None, "the answer to a heartbeat, or the end of the process")
    except CaseFailed:
        if not t.child.output_ended:
            raise
    t.monitor.leaving = True


@section.must(
    "1,000 tuples in hand",
    "A bolt may keep as many tuples as are under way, a window for instance, and ack them whenever it likes.",
    steps="keep ack",
    after=("bolt/ack/2", "bolt/ack/3"),
)
def _(t: Conversation) -> None:
    t.handshake()
    names = [f"k{number}" for number in range(1000)]
    kept = [t.steps(["keep", name]) for name in names]
    t.finished(t.steps(*(["ack", name] for name in reversed(names))))
    t.barrier()
    lost = sum(id not in t.monitor.finished for id in kept)
    t.check(not lost, "tuples that user code held are lost", "1,000 acks", f"{1000 - lost} acks")


@section.must(
    "an exception while tuples are held",
    "What user code holds has one end, the one that user code gives it: an exception, in the work on it or on another tuple, "
    "does not finish it a second time.",
    steps="keep ack throw",
    source=f"{MEASURED} (ack_twice, ack_then_fail)",
    after=("bolt/ack/2", "bolt/ack/9"),
    watch=("ack.again", "fail.again"),
)
def _(t: Conversation) -> None:
    t.handshake()
    names = "abc"
    kept = {name: t.steps(["keep", name]) for name in names}
    t.steps(["ack", "a"], ["throw", "behind the ack of what was held"])
    kept["d"] = t.steps(["keep", "d"], ["throw", "behind the keep"])
    try:
        for name in "bcd":
            t.barrier()
            if kept[name] not in t.monitor.finished:  # a library may fail what is held when user code fails
                t.finished(t.steps(["ack", name]))
        t.settle()
    except CaseFailed:
        if not t.child.output_ended:
            raise
    t.monitor.leaving = True
