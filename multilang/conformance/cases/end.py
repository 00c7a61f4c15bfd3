"""End of input and shutdown: a component must not outlive its worker."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import Section
from multilang.conformance.cases.spout_ordinary import begin, own
from multilang.conformance.errors import CaseFailed, Halted, NotApplicable
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/end", "End of input, shutdown", "a killed worker leaves a closed pipe and nothing else")
DESTROY = "Storm's ShellProcess.destroy: SIGTERM"
_VARIOUS: list[list[Any]] = [[7], [None], [True], [""], [{"a": {"b": None}}], [{"id": "1"}], [-1.5e300, "b", "c"], []]


def ends(t: Conversation, why: str) -> None:
    """Check that the program's process ends in time."""
    if t.child.wait(monotonic() + t.timeout) is None:
        raise CaseFailed(why, f"the end of the process within {t.timeout:g} s", "it still runs", timed_out=True)


def processes_seen(t: Conversation) -> None:
    """Leave a case out where the processes that a program started can't be seen."""
    if t.child.processes() is None:
        raise NotApplicable("the processes that a program started are seen on Linux alone")


def work(t: Conversation) -> None:
    """Have the program do ordinary work, with which it may start helpers."""
    processes_seen(t)
    try:
        if t.kind == "bolt":
            t.handshake()
            for values in [*t.world.tuples] * 3:
                t.tuple(values)
            t.tuple([5], comp="__system", stream="__tick", task=-1)
            t.settle()
        else:
            begin(t)
            for _ in range(3):
                t.next()
            if t.received.emits:
                t.command("ack", own(t, []))
    except (CaseFailed, Halted) as fault:
        raise NotApplicable(f"it did not get through ordinary work: {fault}") from None


def all_ended(t: Conversation) -> None:
    """Check that no process is left that the program started."""
    until = monotonic() + t.timeout
    while (left := t.child.processes()) and monotonic() < until:
        sleep(0.02)
    if left:
        raise CaseFailed(
            "processes that it started still run: end them when the input ends and on SIGTERM, or have them read a pipe of yours",
            "none",
            f"{len(left)} of them",
            timed_out=True,
        )


@section.must(
    "it ends with its input",
    "When the worker ends, so does standard input; a component that then continues stays for ever.",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input was closed, and the program still runs")


@section.must("it ends with its input, before the handshake", "A worker may end before it has sent anything.")
def _(t: Conversation) -> None:
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input was closed, and the program still runs")


@section.must(
    "it ends inside of a message",
    "The input may end anywhere: a message without its end is none, and there will be no more.",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    half = storm_text({"id": "", "command": "next"})[:-5]
    t.send(half.encode())
    t.flush()
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input ended inside of a message, and the program still runs")


@section.must(
    "it ends on SIGTERM", "A topology that is killed or rebalanced ends its components by SIGTERM.", source=DESTROY
)
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    t.monitor.leaving = True
    t.child.terminate()
    ends(t, "it was sent SIGTERM, and still runs")


@section.should(
    "it ends on SIGTERM at work",
    "SIGTERM comes at any time, also while user code is busy.",
    steps="sleep",
    source=DESTROY,
)
def _(t: Conversation) -> None:
    t.work(["log", "at work"], ["sleep", 3600])
    t.flush()
    t.monitor.leaving = True
    t.child.terminate()
    ends(t, "it was sent SIGTERM while at work, and still runs")


@section.should(
    "it ends with its output",
    "When nobody reads any more, a component that continues works for nothing.",
    source="a killed worker",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    t.monitor.leaving = True
    t.child.close_output()
    for _ in range(20):
        if t.child.status() is not None:
            break
        if t.kind == "spout":
            t.begin("next")
        else:
            t.heartbeat()
        t.child.wait(monotonic() + 0.05)
    ends(t, "nobody reads its output, and the program still runs")


@section.should("the orderly end is no failure", "At the end of its input it exits with status 0.")
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input was closed, and the program still runs")
    t.same(t.child.status(), 0, "the exit status is not 0")


@section.must(
    "its helpers end with it",
    "When the input has ended, no process that it started survives: the supervisor knows only the one whose pid it got.",
    after=("common/end/1",),
)
def _(t: Conversation) -> None:
    work(t)
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input was closed, and the program still runs")
    all_ended(t)


@section.must(
    "its helpers end with it on SIGTERM",
    "When the program was ended by SIGTERM and its pipes are closed, no process that it started survives.",
    source=DESTROY,
    after=("common/end/4", "common/end/8"),
)
def _(t: Conversation) -> None:
    work(t)
    t.monitor.leaving = True
    t.child.terminate()
    # A program in front of it may go first, and the pipe's end stop the other.
    t.child.wait(monotonic() + t.timeout / 4)
    t.child.close_input()
    ends(t, "it was sent SIGTERM and its input was closed, and the program still runs")
    all_ended(t)


@section.must(
    "it ends with its input while it waits for task ids",
    "The input may end when task ids are due: they will not come any more.",
    steps="emit ids",
    after=("common/end/1",),
)
def _(t: Conversation) -> None:
    t.holds_ids = True
    t.work(["emit", ["x"], {"ids": True}])
    t.wait(lambda: t.owed or None, "the emit")
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input was closed while it waited for task ids, and the program still runs")


@section.must(
    "its helpers end with it after an exception",
    "An exception may start what ordinary work does not, such as a program that reports it. When the input has ended, no process "
    "that it started survives.",
    steps="throw",
    after=("common/end/1", "common/end/8"),
)
def _(t: Conversation) -> None:
    processes_seen(t)
    t.work(["throw", "the exception"])
    leaves(t)


@section.must(
    "its helpers end with it after what fails",
    "Values may be anything that JSON has: a bolt may refuse them, fail the tuple, or end. A spout's tuple may fail. When the input has "
    "ended, no process that it started survives.",
    after=("common/end/1", "common/end/8", "bolt/ordinary/1", "spout/ordinary/3"),
)
def _(t: Conversation) -> None:
    processes_seen(t)
    if t.kind == "bolt":
        t.handshake()
        for values in _VARIOUS if t.world.contract else [*_VARIOUS, [["a", 1]]]:
            t.tuple(values)
    else:
        begin(t)
        t.next()
        if t.received.emits:
            t.command("fail", own(t, []))
    leaves(t)


def leaves(t: Conversation) -> None:
    """Check that the program ends with its input, and that nothing is left of what it started."""
    before = t.syncs
    if t.kind == "bolt":
        t.heartbeat()
    elif t.syncs == t.commands:
        t.begin("next")
    try:
        t.wait(lambda: t.syncs > before or None, "an answer, or the end of the process")
    except CaseFailed:
        if not t.child.output_ended:
            raise NotApplicable("it neither answers nor ends, which another case judges") from None
    t.monitor.leaving = True
    t.child.close_input()
    ends(t, "the input was closed, and the program still runs")
    all_ended(t)
