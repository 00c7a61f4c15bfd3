"""The JSON that a program must be able to read: over several lines, with escapes, in any order of keys."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from multilang.conformance.case import PAGE, Section
from multilang.conformance.errors import CaseFailed
from multilang.conformance.world import SOURCE, framed, storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/json", "Multi-line JSON, escapes, nesting", f"{PAGE}, The Protocol: Notes")
# What the page shows over many lines comes in one from Storm: each message of every version and of each recording is one
# line of compact JSON and the line "end", and "both ends use a line-reading mechanism". So a program that reads one line of
# JSON at a time works, and what no parent sends is a SHOULD, as are blanks between tokens and escapes in keys.
NEVER_SENT = (
    "Storm's JsonSerializer writes a message in one line, without blanks: a program that knows no other form works"
)


def ping(t: Conversation, text: str) -> None:
    """Send this text, a heartbeat to a bolt or a next to a spout, and wait for the sync.

    ``@id``: the heartbeat's id.
    """
    if not t.is_set_up:
        t.handshake()
    if t.kind == "spout":
        t.command("next", text=text)
        return
    before = t.syncs
    id = t.new_id()
    t.monitor.heartbeats.add(id)
    t.send(framed(text.replace("@id", id)))
    t.wait_sync(before + 1)
    t.settle()


def ping_text(t: Conversation, **layout: object) -> str:
    """Return the same message formatted by json.dumps; without a layout as compact as Storm's."""
    layout = layout or {"separators": (",", ":")}
    if t.kind == "spout":
        return json.dumps({"command": "next", "id": ""}, **layout)  # type: ignore[arg-type]
    beat = {"id": "@id", "comp": SOURCE, "stream": "__heartbeat", "task": -1, "tuple": []}
    return json.dumps(beat, **layout)  # type: ignore[arg-type]


@section.should(
    "a message over several lines",
    "A message is all lines up to 'end', not one line.",
    source=f"{PAGE}, Initial Handshake; {NEVER_SENT}",
)
def _(t: Conversation) -> None:
    ping(t, ping_text(t, indent=2))


@section.should(
    "each token on a line of its own",
    "A message may span any number of lines, also without indentation.",
    source=f"{PAGE}, Initial Handshake; {NEVER_SENT}",
)
def _(t: Conversation) -> None:
    ping(t, ping_text(t, indent=0, separators=("\n,", "\n:\n")))


@section.should(
    "blanks and tabs between tokens",
    "JSON allows white space around each token.",
    source=f"RFC 8259, section 2; {NEVER_SENT}",
)
def _(t: Conversation) -> None:
    ping(t, " \t" + ping_text(t, separators=(" \t, ", "\t : ")) + "\t ")


@section.must("keys in another order", "A JSON object's keys have no order.", source="RFC 8259, section 4")
def _(t: Conversation) -> None:
    ping(t, storm_text(dict(sorted(json.loads(ping_text(t)).items(), reverse=True))))


@section.should(
    "keys written with escapes",
    'A key may be written with escapes: "\\u0074ask" is "task".',
    source=f"RFC 8259, section 7; {NEVER_SENT}",
)
def _(t: Conversation) -> None:
    ping(t, ping_text(t).replace('"task"', '"\\u0074ask"').replace('"command"', '"c\\u006fmmand"'))


@section.should(
    'a line that holds "end" in quotes',
    'The delimiter is the line end, not the JSON string "end" on a line of its own.',
    steps="emit",
    source=f"{PAGE}, The Protocol: Notes; {NEVER_SENT}",
)
def _(t: Conversation) -> None:
    [out] = t.perform_text('[["emit",[[\n"end"\n,\n"ending"\n]]]]')
    t.emitted(out, [[["end", "ending"]]], "the value came out changed")


@section.must(
    "a string with the delimiter inside",
    "Text with line feeds and 'end' in it is data: it is read, and written escaped, so that it ends no message.",
    steps="emit",
)
def _(t: Conversation) -> None:
    t.same(t.echo('"a\\nend\\nb\\nend\\n"'), "a\nend\nb\nend\n", "the text came out changed")


@section.must(
    "all escapes of JSON",
    "Every escape is decoded, the slash that Storm always escapes among them.",
    steps="emit",
    after=("common/unicode/1",),
)
def _(t: Conversation) -> None:
    t.same(
        t.echo('"\\" \\\\ \\/ \\b\\f\\n\\r\\t \\u0041\\u00e9\\u6f22"'),
        '" \\ / \b\f\n\r\t Aé漢',
        "the text came out changed",
    )


@section.must(
    "an escaped surrogate pair",
    "A character beyond U+FFFF may come as two \\u escapes, which are one character.",
    steps="emit",
    after=("common/unicode/2",),
)
def _(t: Conversation) -> None:
    t.same(t.echo('"\\ud83d\\udc0d"'), "🐍", "the character came out changed")


@section.must(
    "true, false and null", "They are values of their own: not 1, 0, an empty text, nor left out.", steps="emit"
)
def _(t: Conversation) -> None:
    t.unchanged([True, False, None, 1, 0, ""], "the values came out changed")


@section.must("null as a tuple's value", "A value may be null and stays one, the last of a tuple, too.", steps="emit")
def _(t: Conversation) -> None:
    pairs = [["a", None], [None, None], [None, "b"], ["c", ""]]
    [out] = t.perform([["emit", [None]], *(["emit", pair, {"stream": "pair"}] for pair in pairs)])
    t.emitted(out, [[None], *pairs], "the values came out changed")


@section.must("empty texts, lists and maps", "What is empty stays what it is.", steps="emit")
def _(t: Conversation) -> None:
    [out] = t.perform_text('[["emit",[["",[],{},[[]],{"":{}}]]],["emit",[""]],["emit",[[]]],["emit",[{}]]]')
    t.emitted(out, [[["", [], {}, [[]], {"": {}}]], [""], [[]], [{}]], "the values came out changed")


@section.must("lists and maps inside each other", "Values nest, 50 levels deep at least.", steps="emit")
def _(t: Conversation) -> None:
    value = json.loads('{"a":[' * 25 + "1" + "]}" * 25)
    t.same(t.echo(storm_text(value)), value, "the value came out changed")


@section.must(
    "keys that look like the protocol's", "A map inside of a tuple is data, whatever its keys are.", steps="emit"
)
def _(t: Conversation) -> None:
    value = {"command": "ack", "id": "1", "end": "end", "stream": "__heartbeat", "task": -1, "pid": 1}
    t.same(t.echo(storm_text(value)), value, "the map came out changed")


@section.must("a text that is a message", "A string that holds a whole message, with its end, is data.", steps="emit")
def _(t: Conversation) -> None:
    text = '{"command": "sync"}\nend\n'
    before = t.syncs
    t.same(t.echo(json.dumps(text)), text, "the text came out changed")
    if t.kind == "bolt" and t.syncs != before:
        raise CaseFailed("the text was taken for a message", "no sync", "a sync")


@section.should(
    "300 levels", "What is nested 300 deep passes: Storm itself reads up to 400 levels of a message.", steps="emit"
)
def _(t: Conversation) -> None:
    text = "[" * 300 + "]" * 300
    t.same(len(json.dumps(t.echo(text))), len(text), "the value came out changed")


@section.must(
    "keys of a map",
    "Each key of a map stays as it is: in capitals or not, with blanks and dots, and with null as its value.",
    steps="emit",
)
def _(t: Conversation) -> None:
    value = {"key": 1, "Key": 2, "KEY": {"a.b": None, "a b": None}, " ": [{"x": None}], "1": 3, "null": None}
    t.same(t.echo(storm_text(value)), value, "the map came out changed")


@section.must(
    "keys that mean something in a language",
    "A key is any text: what a language calls the parts of its own objects is data as well.",
    steps="emit",
    source="RFC 8259, section 4",
)
def _(t: Conversation) -> None:
    value = {
        "__proto__": {"a": 1},
        "constructor": 2,
        "toString": 3,
        "length": 4,
        "__class__": "x",
        "": 5,
        "0": 6,
        "-1": 7,
    }
    t.same(t.echo(storm_text(value)), value, "the map came out changed")


@section.must(
    "texts that look like something else",
    "A text stays the text that it is, though it looks like a date, a number or a word of a language.",
    steps="emit",
    after=("common/numbers/5",),
)
def _(t: Conversation) -> None:
    dates = ["2026-01-31T08:05:09Z", "2026-01-31", "/Date(1769846709000)/", "08:05:09.10"]
    numbers = ["007", "1e3", "0x1F", "1.50", "+1", "1_000", "-0", "NaN", "Infinity", "-1"]
    words = [
        "true",
        "null",
        "None",
        "undefined",
        "nil",
        "yes",
        "[]",
        "{}",
        '"x"',
        "=1+1",
        "@x",
        "$x",
        "&amp;",
        "<b>",
        "%d",
        "\\u0041",
    ]
    t.unchanged([*dates, *numbers, *words], "texts came out changed")


@section.must(
    "white space in texts",
    "Blanks at the ends of a text, several in a row, tabs, CR LF and CR are data, and stay what they are.",
    steps="emit",
    after=("common/json/8",),
)
def _(t: Conversation) -> None:
    texts = ["  two  blanks  ", " ", "\ttab\t\t", "a\r\nb\rc\n\nd\r\n", "\n", "", "x "]
    t.unchanged(texts, "texts came out changed")


@section.should(
    "empty lines inside of a message",
    "Only the line end ends a message: empty lines between its tokens, any number of them, are white space of JSON.",
    source=f"RFC 8259, section 2; {NEVER_SENT}",
    after=("common/json/1", "common/json/2"),
)
def _(t: Conversation) -> None:
    gaps = iter(("\n\n", "\n\n\n\n\n", "\n \n\t\n", "\n\n\n"))
    ping(t, re.sub("[,:]", lambda sign: sign[0] + next(gaps, "\n\n"), ping_text(t)))
