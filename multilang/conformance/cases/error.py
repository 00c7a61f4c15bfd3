"""Errors that are reported without ending the component."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, Section
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/error", "Error", f"Storm's ShellBolt and ShellSpout, handleError; {MEASURED} (error)")


@section.must(
    "an error message", 'An error is {"command": "error", "msg": …}; Storm shows it in its UI.', steps="error"
)
def _(t: Conversation) -> None:
    [out] = t.perform([["error", "a reported error"]])
    texts = [message.value.get("msg") for message in out.of("error")]
    t.same(texts, ["a reported error"], "one error with the text is due")


@section.must(
    "a traceback",
    "An error of many lines is one message.",
    steps="error",
    after=("common/unicode/1", "common/unicode/2"),
)
def _(t: Conversation) -> None:
    text = 'Traceback (most recent call last):\n  File "x.é", line 1\nend\nValueError: 漢 🐍\n'
    [out] = t.perform([["error", text]])
    t.same([message.value.get("msg") for message in out.of("error")], [text], "one error with the text is due")


@section.must(
    "the component continues", "A reported error ends nothing: the next input is worked on.", steps="error emit"
)
def _(t: Conversation) -> None:
    first, second = t.perform([["error", "no harm done"], ["emit", ["still here"]]], [["emit", ["and here"]]])
    t.emitted(first, [["still here"]], "no emit after the error")
    t.emitted(second, [["and here"]], "the next input was not worked on")


section.watch(
    "MUST",
    "error.type",
    "an error's msg is a string",
    "Storm casts it to one: an object halts the worker.",
    "Storm's JsonSerializer",
)
section.watch(
    "MUST", "error.empty", "an error has a msg", "Without one Storm reports null.", f"{MEASURED} (error_null)"
)


@section.should(
    "an exception in user code does not pass in silence",
    "After an exception the tuple is failed, or the process ends: else the tuple is replayed only when it times out. A spout "
    "sends its sync, or ends.",
    steps="throw",
    after=("spout/commands/15",),
    source="the habit of storm.py's BasicBolt and Spout; the protocol's page has nothing on exceptions",
)
def _(t: Conversation) -> None:
    id = t.work(["throw", "the exception"])
    if id is not None:
        t.heartbeat()

    def done() -> bool | None:
        return (t.syncs > 1 if id is None else t.monitor.finished.get(id) == "fail") or None

    t.monitor.leaving = True
    try:
        t.wait(done, "a failed tuple, or the end of the process")
    except CaseFailed:
        if t.child.output_ended:
            return
        raise


@section.should(
    "an exception is reported",
    "The exception's text is reported in an error, a log or on standard error.",
    steps="throw",
    source="storm.py reports the traceback",
)
def _(t: Conversation) -> None:
    def reported() -> bool | None:
        output = b"".join(t.outputs) + t.child.error_text
        return b"the reason 4711" in output or None

    t.work(["throw", "the reason 4711"])
    t.monitor.leaving = True
    try:
        t.wait(reported, "the exception's text")
    except CaseFailed:
        t.child.wait(0)
        if not reported():
            raise


@section.must(
    "an error of 100 KB",
    "A traceback may be long: its text is not cut.",
    steps="error",
    after=("common/error/1", "common/sizes/1"),
)
def _(t: Conversation) -> None:
    text = "".join(f"  line {n} of the traceback\n" for n in range(4000))
    [out] = t.perform([["error", text]])
    t.same([message.value.get("msg") for message in out.of("error")], [text], "one error with the text is due")


@section.must(
    "an error with the signs of a format",
    "An error's text is no pattern that is filled in, and no blanks of it are lost.",
    steps="error",
    after=("common/error/1",),
)
def _(t: Conversation) -> None:
    text = "  100% of %s and %d, %(a)s %%, {} {0} {a} ${b} $c #{d}, \\n \\1 <e> &amp;\t "
    [out] = t.perform([["error", text]])
    t.same([message.value.get("msg") for message in out.of("error")], [text], "one error with the text is due")
