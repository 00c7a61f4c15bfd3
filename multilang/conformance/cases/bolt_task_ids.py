"""Task ids: the answers to emits, in the order of the emits, with other messages between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.errors import CaseFailed, Halted, NotApplicable
from multilang.conformance.values import WAITING, shown
from multilang.conformance.world import framed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation
    from multilang.conformance.reading import ReadMessage

section = Section("bolt/task_ids", "Task ids and their order", f"{PAGE}, Bolts: task ids")
IDS: dict[str, Any] = {"ids": True}


def reported(t: Conversation) -> list[Any]:
    """Return the task ids that user code got, as the program reports them."""
    return [message.values[0][1] for message in t.received.emits if reports(message) and message.values[0][0] == "ids"]


def reports(message: ReadMessage) -> bool:
    """Return whether an emit reports task ids, rather than being one that a case asked for."""
    if message.values[0] == "ids":
        why = "a list was emitted as several values"
        raise CaseFailed(why, '["ids", […]] as one value', shown(message.values), culprit="common/json/12")
    return isinstance(message.values[0], list)


def answered(t: Conversation) -> list[list[int]]:
    """Return the task ids that were sent for the emits that a case asked for, in the order of these."""
    return [ids for place, ids in sorted(t.answers.items()) if not reports(t.received[place])]


def asked_for(t: Conversation) -> list[Any]:
    """Return the first value of each emit that a case asked for, in their order."""
    return [message.values[0] for message in t.received.emits if not reports(message)]


def asking(t: Conversation, count: int) -> list[ReadMessage]:
    """Wait for so many emits that want task ids and have none. An emit that declines them does not count."""
    return t.wait(lambda: t.owed if len(t.owed) >= count else None, f"{count} emits that want task ids")


def reach_the_emit(t: Conversation, answer: bytes, ids: list[int]) -> None:
    """Answer one emit that asks with these bytes, and check that user code is given these task ids."""
    t.handshake()
    t.holds_ids = True
    id = t.steps(["emit", ["x"], IDS])
    asking(t, 1)
    t.send(answer)
    del t.owed[:]
    t.holds_ids = False
    t.finished(id)
    t.same(reported(t), [ids], "user code got other task ids")


# Emits that a library may refuse: of half a letter, with more values than fields, to an undeclared stream.
# Storm halts at the last, if it is sent.
HALF = '["emit",["a\\ud800"],{"ids":true}]'
REFUSED = (
    HALF,
    '["emit",[1,2,3],{"ids":true}]',
    '["emit",["x"],{"ids":true,"stream":"undeclared"}]',
)
ESCAPES = ("common/json/8",)  # the first of these emits is written with one
NO_NUMBER = '["emit",[NaN],{"ids":true}]'  # as Storm writes what Java has in a double
PROVOKED = ("emit.stream", "emit.arity", "unicode.surrogate", "numbers.constant", "framing.utf8")
BEHIND_REFUSED = (
    "An emit that the library refuses, for its value or its stream, is not sent: it has no task ids, and the next emit's are "
    "not taken for them. Write the emit first, and expect its task ids then."
)


def behind_refused(t: Conversation, emits: Sequence[str]) -> None:
    """Have the program make emits that it may refuse, each before one that asks for its task ids, which must be its own."""
    for number, refused in enumerate(emits):
        behind = f'[["emit",["behind {number}"],{{"ids":true}}]]'
        try:
            goes_on = _spout_behind(t) if t.kind == "spout" else _bolt_behind(t, f"[{refused}]", behind)
        except Halted as halted:
            if halted.finding.code != "emit.stream":
                raise
            goes_on = False  # it refuses nothing
        if not goes_on:
            t.monitor.leaving = True
            return
        place = next(place for place in t.answers if t.received[place].values == [f"behind {number}"])
        t.same(
            reported(t)[-1:], [t.answers[place]], f"behind the refused emit {refused}, an emit was given other task ids"
        )


def _spout_behind(t: Conversation) -> bool:
    """Send the two nexts, and return False if the spout ended at the first: then it takes no task ids for others."""
    try:
        t.next()
    except CaseFailed:
        if not t.child.output_ended:
            raise
        return False
    t.next()
    return True


def _bolt_behind(t: Conversation, refused: str, behind: str) -> bool:
    """Send the two tuples, and return False if the bolt ended at the first: then it takes no task ids for others.

    It need not ack or fail the first one: it may not even be able to read it.
    """
    before = t.syncs
    first = t.tuple(text=f"[{refused}]")
    t.heartbeat()
    try:
        t.wait(lambda: t.monitor.finished.get(first) or t.syncs > before or None, "the answer to a heartbeat after it")
        t.finished(t.tuple(text=f"[{behind}]"))
    except CaseFailed as failure:
        if first in t.monitor.finished:
            raise
        if t.child.output_ended:
            return False
        raise NotApplicable(f"it does not get over {refused}, which another case judges: {failure.why}") from None
    return True


def not_those_of_others(t: Conversation) -> None:
    """Check that an emit that asks for its task ids gets its own behind emits that do not ask, in two rounds of work."""
    asks = [False, True, False, False, True]
    t.perform(*([["emit", [n], {"ids": True} if ask else {}] for n, ask in enumerate(asks)] for _ in range(2)))
    own = [ids for place, ids in sorted(t.answers.items()) if t.received[place].values in ([1], [4])]
    t.same(reported(t), own, "an emit was given the task ids of another one, which did not ask for them")


def none_declined_is_awaited(t: Conversation) -> None:
    """Check that 100 emits whose task ids nobody reads come one behind the other."""
    [out] = t.perform([["emit", [n]] for n in range(100)])
    t.emitted(out, [[n] for n in range(100)], "emits are missing, or out of order")


def wants_none(t: Conversation) -> None:
    """Check that an emit whose task ids nobody reads declines them."""
    [out] = t.perform([["emit", ["x"]]])
    t.same(
        [message.value.get("need_task_ids") for message in out.emits],
        [False],
        "task ids are asked for that nobody reads",
    )


@section.must(
    "task ids are no tuple",
    "An array is the task ids of an emit: it is taken, and the next tuple is worked on.",
    steps="emit",
)
def _(t: Conversation) -> None:
    first, second = t.perform([["emit", [1]]], [["emit", [2]]])
    t.emitted(first, [[1]], "the first emit is another")
    t.emitted(second, [[2]], "the tuple behind the task ids was not worked on")


@section.must("task ids reach the emit", "An emit that asks for task ids gets its own.", steps="emit ids")
def _(t: Conversation) -> None:
    reach_the_emit(t, framed("[7]"), [7])


@section.must("several tasks", "A tuple may go to many tasks: all are in the array.", steps="emit ids")
def _(t: Conversation) -> None:
    reach_the_emit(t, framed("[7,5,6]"), [7, 5, 6])


@section.must(
    "no task",
    "A stream that nobody subscribes to answers with an empty array.",
    steps="emit ids",
    after=("bolt/emit/3",),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"stream": "quiet", "ids": True}]])
    t.emitted(out, [["x"], [["ids", []]]], "the empty array is no answer to the emit")


@section.must(
    "the ids of the first emit come first",
    "Task ids come in the order of the emits: each emit gets its own.",
    steps="emit ids",
)
def _(t: Conversation) -> None:
    t.perform([["emit", [n], IDS] for n in range(5)])
    t.same(reported(t), answered(t), "emits were given each other's task ids")


@section.must(
    "an emit that asks behind some that don't",
    "Emits whose task ids nobody wants have theirs, too, unless they have need_task_ids: false: they are not the next one's.",
    steps="emit ids",
)
def _(t: Conversation) -> None:
    t.perform([["emit", ["a"]], ["emit", ["b"]], ["emit", ["c"], IDS]])
    place = next(place for place in t.answers if t.received[place].values == ["c"])
    t.same(reported(t), [t.answers[place]], "the emit was given another's task ids")


@section.must(
    "a tuple that comes before the task ids",
    "When you read after an emit, a tuple may come first: it is stored, and worked on after.",
    steps="emit ids",
    after=("bolt/anchors/1",),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.holds_ids = True
    first = t.steps(["emit", ["first"], IDS])
    asking(t, 1)
    second = t.steps(["emit", ["second"]])
    t.flush()
    t.holds_ids = False
    t.answer()
    t.finished(first)
    t.finished(second)
    came = [[message.anchors, message.values[0]] for message in t.received.emits if not reports(message)]
    t.same(came, [[[first], "first"], [[second], "second"]], "tuples were lost or mixed up")


@section.must(
    "1,100 tuples that come before the task ids",
    "All that comes meanwhile is stored, in its order, however much it is.",
    steps="emit ids",
    after=("bolt/order/5",),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.holds_ids = True
    first = t.steps(["emit", [0], IDS])
    asking(t, 1)
    later = [t.steps(["emit", [n]]) for n in range(1, WAITING + 1)]
    t.flush()
    t.holds_ids = False
    t.answer()
    for id in (first, *later):
        t.finished(id)
    t.same(asked_for(t), list(range(WAITING + 1)), "tuples were lost or mixed up")


@section.must("late task ids", "Task ids may come when the next tuple and a heartbeat are there already.", steps="emit")
def _(t: Conversation) -> None:
    t.handshake()
    t.holds_ids = True
    first, second = t.steps(["emit", [1]]), t.steps(["emit", [2]])
    t.wait(lambda: t.received.emits or None, "the emit")
    # A library that waits for task ids after each emit continues only with the answer; all others have finished by now.
    t.heartbeat()
    t.flush()
    t.holds_ids = False
    t.answer()
    t.finished(first)
    t.finished(second)
    t.settle()


@section.must(
    "task ids over several lines",
    "An array is JSON as every message: it may span lines.",
    steps="emit ids",
    after=("common/json/1",),
)
def _(t: Conversation) -> None:
    reach_the_emit(t, b"[\n 5 ,\n 6\n]\nend\n", [5, 6])


@section.must(
    "task ids that nobody reads",
    "Storm sends them for each emit that does not forbid it; a bolt that never asks is not disturbed by 500.",
    steps="emit",
    source=f"{MEASURED} (ids_unread)",
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", [n]] for n in range(500)])
    t.emitted(out, [[n] for n in range(500)], "emits are missing")
    t.settle()


section.should(
    "it declines those that it does not want",
    "need_task_ids: false saves Storm and the bolt a message for each emit whose task ids nobody reads.",
    steps="emit",
    source="Storm's ShellBolt since 0.9.3",
)(wants_none)


@section.must(
    "1,100 tuples, all of which ask",
    "Tuples that come while task ids are awaited wait, too: a bolt that works on them at once, each within the one before, "
    "runs out of stack.",
    steps="emit ids",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.holds_ids = True
    all_ids = [t.steps(["emit", [0], IDS])]
    asking(t, 1)
    all_ids += [t.steps(["emit", [n], IDS]) for n in range(1, WAITING + 1)]
    t.flush()
    t.holds_ids = False
    t.answer()
    for id in all_ids:
        t.finished(id)
    came = sorted(asked_for(t), key=lambda value: int(value or 0))  # a text or null is another case's
    t.same(came, list(range(WAITING + 1)), "tuples were lost")
    t.same(sorted(reported(t)), sorted(answered(t)), "task ids were lost")


@section.must("behind an emit that was refused", BEHIND_REFUSED, steps="emit ids", provokes=PROVOKED, after=ESCAPES)
def _(t: Conversation) -> None:
    t.handshake()
    behind_refused(t, REFUSED)


@section.must("behind a number that was refused", BEHIND_REFUSED, steps="emit ids", provokes=PROVOKED)
def _(t: Conversation) -> None:
    t.handshake()
    behind_refused(t, [NO_NUMBER])


@section.must(
    "emits that decline their task ids",
    "An emit with need_task_ids: false has no answer: nobody waits for one, not even now and then.",
    steps="emit",
    source="Storm's ShellBolt since 0.9.3",
)
def _(t: Conversation) -> None:
    none_declined_is_awaited(t)


@section.must(
    "task ids behind emits that do not ask",
    "An emit without need_task_ids: false is answered, though nobody asks: its task ids are not the next emit's.",
    steps="emit ids",
    after=("bolt/task_ids/2",),
)
def _(t: Conversation) -> None:
    not_those_of_others(t)


@section.must(
    "task ids behind an exception",
    "An exception of user code takes no task ids along, and leaves none: the next emit that asks gets its own.",
    steps="emit ids throw",
    after=("bolt/task_ids/2", "bolt/fail/10"),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.steps(["emit", ["before it"], IDS], ["throw", "behind task ids"])
    ids = [t.steps(["throw", "the exception"]), t.steps(["emit", ["behind it"], IDS])]
    try:
        for id in ids:
            t.finished(id)
    except CaseFailed:
        if not t.child.output_ended:
            raise
        t.monitor.leaving = True  # an exception may end the process, and Storm restarts it
        return
    t.same(reported(t)[-1:], answered(t)[-1:], "an emit was given other task ids")
