"""Text is UTF-8 in both directions, and comes out exactly as it went in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from multilang.conformance.case import C_LOCALE, MEASURED, Section
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/unicode", "Unicode", "Storm's JsonSerializer: UTF-8; RFC 8259, section 8.1")
CHANGED = "the text came out changed"


def echoes(t: Conversation, text: str) -> None:
    """Check that a text that is sent as raw UTF-8 comes out unchanged."""
    t.same(t.echo(storm_text(text)), text, CHANGED)


@section.must("letters of two and three bytes", "Raw UTF-8 within the first plane is read and written.", steps="emit")
def _(t: Conversation) -> None:
    echoes(t, "naïve Ελληνικά עברית 漢字 ✓")


@section.must("letters of four bytes", "Raw UTF-8 beyond U+FFFF is read and written.", steps="emit")
def _(t: Conversation) -> None:
    echoes(t, "🐍𝒳👩‍👩‍👧‍👦 \U0010fffd")


@section.must(
    "line separators that are not line feeds",
    "Only LF ends a line: U+0085, U+2028, U+2029, VT and FF do not.",
    steps="emit",
)
def _(t: Conversation) -> None:
    text = "a\u0085end\u2028end\u2029end"
    echoes(t, text)


@section.must(
    "a text with a byte order mark inside", "U+FEFF inside of a string is a character as any other.", steps="emit"
)
def _(t: Conversation) -> None:
    echoes(t, "\ufeffa\ufeff \uffff \ufffd")


@section.must(
    "the character U+0000", "An escaped zero is data, and ends no text.", steps="emit", after=("common/json/8",)
)
def _(t: Conversation) -> None:
    t.same(t.echo('"\\u0000a\\u0000b\\u0000"'), "\0a\0b\0", CHANGED)


@section.must("DEL and C1 controls", "U+007F to U+009F need no escape and stay what they are.", steps="emit")
def _(t: Conversation) -> None:
    echoes(t, "\x7f\x80\x9f|")


@section.must(
    "composed and decomposed letters",
    "Texts are not normalised: é and e with an accent stay two different texts.",
    steps="emit",
)
def _(t: Conversation) -> None:
    t.same(t.echo(storm_text(["\u00e9", "e\u0301"])), ["\u00e9", "e\u0301"], CHANGED)


@section.must("letters as keys of a map", "Keys are texts as values are.", steps="emit", after=("common/json/17",))
def _(t: Conversation) -> None:
    value = {"schlüssel": 1, "🔑": 2, "\u2028": 3}
    t.same(t.echo(storm_text(value)), value, CHANGED)


@section.must(
    "UTF-8 in a plain C locale",
    "The protocol is UTF-8 whatever the environment is: a supervisor started by init has no locale.",
    steps="emit",
    env=C_LOCALE,
)
def _(t: Conversation) -> None:
    echoes(t, "naïve 漢字 🐍")


@section.must(
    "an escaped letter in the C locale",
    "What comes as an escape may not be lost on the way out for want of a locale.",
    steps="emit",
    env=C_LOCALE,
    after=("common/json/8",),
)
def _(t: Conversation) -> None:
    t.same(t.echo(json.dumps("é漢🐍")), "é漢🐍", CHANGED)


@section.should(
    "half a surrogate pair does not end it",
    "JSON can hold an escape of half a pair, which no UTF-8 has: the component answers and continues.",
    steps="emit",
)
def _(t: Conversation) -> None:
    t.perform_text('[["emit",["a\\ud800b"]]]', "[]")


section.watch(
    "SHOULD",
    "unicode.surrogate",
    "it writes no half surrogate pair",
    "Storm turns it into a question mark, in silence.",
    f"{MEASURED} (surrogate)",
)


@section.should(
    "DEL beside an escape",
    "U+007F is written \\u007f in a text or key that also holds an escape: raw, Storm's parser drops it there, in silence.",
    steps="emit",
    source=f"{MEASURED}; its parser, json-smart",
    watch=("unicode.delete",),
)
def _(t: Conversation) -> None:
    value = ["a\x7f\nb", '\\"\x7f', {"key\x7f\t": "\x7f"}]
    t.same(t.echo(storm_text(value)), value, CHANGED)
