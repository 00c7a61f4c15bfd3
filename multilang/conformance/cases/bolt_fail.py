"""Fails: the other way in which a bolt finishes a tuple."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/fail", "Fail", f"{PAGE}, Bolts: fail")


@section.must("a fail", 'A fail is {"command": "fail", "id": …} with the tuple\'s id, and no ack.', steps="fail")
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["fail"])
    t.same(t.finished(id), "fail", "the tuple was not failed")
    t.barrier()


@section.must(
    "a fail later",
    "A tuple that user code holds is failed when user code fails it.",
    steps="keep fail",
    after=("bolt/ack/2",),
)
def _(t: Conversation) -> None:
    t.handshake()
    first = t.steps(["keep", "a"])
    second = t.steps(["fail", "a"])
    t.same([t.finished(first), t.finished(second)], ["fail", "ack"], "the tuples had other ends")


@section.must("a fail behind emits", "Emits before the fail stand; they are written before it.", steps="emit fail")
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", [1]], ["fail"])
    t.same(t.finished(id), "fail", "the tuple was not failed")
    t.emitted(t.received, [[1]], "the emit did not come")


@section.must(
    "the component continues",
    "A failed tuple is no fault of the component: the next one is worked on.",
    steps="emit fail",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.finished(t.steps(["fail"]))
    [out] = t.perform([["emit", ["next"]]])
    t.emitted(out, [["next"]], "the next tuple was not worked on")


section.watch(
    "MUST",
    "fail.again",
    "no tuple is failed after its ack or fail",
    "A second end of a tuple halts the worker.",
    f"{MEASURED} (ack_then_fail)",
    after=("bolt/ack/2",),
)
section.watch(
    "MUST",
    "fail.unknown",
    "no tuple is failed that never came",
    "A fail of an unknown id halts the worker.",
    f"{MEASURED} (ack_int)",
)
section.watch(
    "MUST",
    "fail.id-type",
    "the id of a fail is a string",
    "The number is another id than the string.",
    f"{MEASURED} (ack_int)",
)


@section.must(
    "an exception is no success",
    "A tuple whose work ended in an exception is not acked: Storm would forget it, and nothing would replay it.",
    steps="throw",
    source="Guaranteeing Message Processing: an ack means that a tuple is processed",
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["throw", "the exception"])
    behind = t.steps()
    try:
        t.finished(behind)
        t.settle()
    except CaseFailed:
        if not t.child.output_ended:
            raise
    t.monitor.leaving = True
    t.check(t.monitor.finished.get(id) != "ack", "the tuple was acked", "a fail, or the end of the process", "an ack")


@section.must(
    "acks and fails of tuples that came together",
    "Each tuple has its own end, also while others wait: what was failed is failed, and what was not is acked.",
    steps="fail",
    after=("bolt/fail/1", "common/io/8"),
)
def _(t: Conversation) -> None:
    t.handshake()
    with t.at_once():
        ids = [t.steps(*([["fail"]] if number % 3 == 1 else [])) for number in range(30)]
    t.same(
        [t.finished(id) for id in ids],
        ["fail" if number % 3 == 1 else "ack" for number in range(30)],
        "tuples had the ends of others",
    )


@section.must(
    "the tuples behind one that failed",
    "A fault of one tuple is none of the next ones: each of them is worked on, whether user code failed the tuple before, or raised an exception.",
    steps="emit throw fail",
    after=("bolt/fail/4", "bolt/fail/8", "bolt/order/5"),
)
def _(t: Conversation) -> None:
    t.handshake()
    came = []
    for trouble in (["fail"], ["throw", "the exception"]):
        bad, *ids = t.steps(trouble), *(t.steps(["emit", [n]]) for n in range(3))
        try:
            t.finished(bad)
            for id in ids:
                t.finished(id)
        except CaseFailed:
            if not t.child.output_ended:
                raise
            t.monitor.leaving = True  # an exception may end the process, and Storm restarts it
            return
        came += [[message.values for message in t.received.emits if message.anchors == [id]] for id in ids]
    t.same(came, [[[0]], [[1]], [[2]]] * 2, "tuples after it were not worked on")
