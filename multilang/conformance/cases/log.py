"""Log messages and their levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.errors import CaseFailed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation, Out

section = Section("common/log", "Log levels", f"{PAGE}, Spouts and Bolts: log")


def logged(out: Out, text: str) -> int:
    """Return the place of the log message with this text. A library may log more, before and after it."""
    places = [i for i, message in enumerate(out) if message.command == "log" and message.value.get("msg") == text]
    if len(places) != 1:
        found = [message.value.get("msg") for message in out.of("log")]
        raise CaseFailed("one log message with the text is due", repr(text[:200]), f"{found!r:.400}")
    return places[0]


@section.must("a log message", 'A log is {"command": "log", "msg": …} with the text as it is.', steps="log emit")
def _(t: Conversation) -> None:
    [out] = t.perform([["log", "hello world!"]])
    logged(out, "hello world!")


@section.must("a text of several lines", "Line feeds are part of the text, also a line 'end'.", steps="log")
def _(t: Conversation) -> None:
    text = "first\nend\n  third\t\n"
    [out] = t.perform([["log", text]])
    logged(out, text)


@section.must(
    "letters of all kinds",
    "A log's text is UTF-8 as all else.",
    steps="log",
    after=("common/unicode/1", "common/unicode/2"),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["log", 'naïve 漢字 🐍 "q" \\']])
    logged(out, 'naïve 漢字 🐍 "q" \\')


@section.must(
    "a log between emits", "What is written keeps its order: the log comes between the two emits.", steps="log emit"
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["before"]], ["log", "between"], ["emit", ["after"]]])
    place = logged(out, "between")
    t.emitted(out, [["before"], ["after"]], "the emits are others")
    order = [out.index(out.emits[0]) < place, place < out.index(out.emits[1])]
    t.check(all(order), "the log is not between the emits", "emit, log, emit", str(out.words))


@section.must("a log of 100 KB", "A long text is not cut.", steps="log", after=("common/sizes/1",))
def _(t: Conversation) -> None:
    text = "0123456789" * 10_000
    [out] = t.perform([["log", text]])
    logged(out, text)


section.watch(
    "MUST",
    "log.type",
    "a log's msg is a string",
    "Storm casts it to one: a number or an object halts the worker.",
    "Storm's JsonSerializer",
)
section.watch("MUST", "log.empty", "a log has a msg", "Without one Storm logs null.", f"{PAGE}, Bolts: log")


@section.should(
    "the five levels", "Storm's levels are 0 trace, 1 debug, 2 info, 3 warn, 4 error, sent as a number.", steps="log"
)
def _(t: Conversation) -> None:
    [out] = t.perform([*(["log", f"level {level}", level] for level in range(5)), ["log", "no level"]])
    texts = [*(f"level {level}" for level in range(5)), "no level"]
    levels = [out[logged(out, text)].value.get("level", 2) for text in texts]
    t.same(levels, [0, 1, 2, 3, 4, 2], "levels are others")


section.watch(
    "SHOULD",
    "log.level",
    "a level is one of 0 to 4",
    "Storm takes any other for info.",
    f"{MEASURED} (log_levels)",
)


@section.must(
    "a text with the signs of a format",
    "A log's text is no pattern that is filled in: %, {}, $ and \\ are signs as all others.",
    steps="log",
)
def _(t: Conversation) -> None:
    text = "100% of %s and %d, %(a)s %%, {} {0} {a} ${b} $c #{d}, \\n \\1 <e> &amp;"
    [out] = t.perform([["log", text]])
    logged(out, text)


@section.should("an empty text", "An empty text is one: msg is there, and empty.", steps="log")
def _(t: Conversation) -> None:
    [out] = t.perform([["log", ""]])
    logged(out, "")
