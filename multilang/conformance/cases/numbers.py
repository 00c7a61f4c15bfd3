"""Numbers: Storm reads integers of 64 bits and doubles, and hashes them for fields groupings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/numbers", "Numbers", f"{PAGE}, Bolts; RFC 8259, section 6")
CHANGED = "numbers came out changed"
LISTS = ("common/json/12",)  # numbers are sent in a list


@section.must(
    "integers of 32 bits", "Integers that every language has come out as they went in.", steps="emit", after=LISTS
)
def _(t: Conversation) -> None:
    t.unchanged([0, 1, -1, 255, 65536, 2147483647, -2147483648], CHANGED)


@section.must(
    "integers of 53 bits", "Integers that a double holds exactly come out exactly.", steps="emit", after=LISTS
)
def _(t: Conversation) -> None:
    t.unchanged([2147483648, -2147483649, 4294967296, 9007199254740991, -9007199254740991], CHANGED)


@section.must(
    "doubles", "A double of 15 digits, which every text of a double keeps, comes out.", steps="emit", after=LISTS
)
def _(t: Conversation) -> None:
    texts = ["0.1", "-1.5", "3.14159265358979", "-0.000123456789012345", "1e300", "2.5e-300"]
    t.unchanged([float(text) for text in texts], CHANGED, texts)


@section.must(
    "exponents", "A number may be written with an exponent, large or small e, signed or not.", steps="emit", after=LISTS
)
def _(t: Conversation) -> None:
    t.unchanged([100.0, 100.0, 0.0015, -0.02], CHANGED, ["1e2", "1E+2", "1.5e-3", "-2E-2"])


@section.must(
    "a number is no text",
    "Numbers do not become strings, nor strings that look like numbers become numbers.",
    steps="emit",
    after=LISTS,
)
def _(t: Conversation) -> None:
    t.unchanged([7, "7", 1.5, "1.5", "true"], "types came out changed")


@section.should(
    "integers beyond 53 bits",
    "Storm's integers have 64 bits; a language without them at least should not alter them in silence.",
    steps="emit",
)
def _(t: Conversation) -> None:
    t.same(t.echo("[9007199254740993,-9007199254740993]"), [9007199254740993, -9007199254740993], CHANGED)


@section.should("the largest and smallest 64-bit integers", "Java's Long comes out exactly.", steps="emit")
def _(t: Conversation) -> None:
    numbers = [9223372036854775807, -9223372036854775808]
    t.same(t.echo(str(numbers)), numbers, CHANGED)


@section.should(
    "1.0 stays a double",
    "Storm reads 1.0 as a Double and 1 as an Integer, whose hashes differ: a fields grouping may send them to different tasks.",
    steps="emit",
)
def _(t: Conversation) -> None:
    value = t.echo("[1.0,-3.0]")
    t.check(all(type(each) is float for each in value), "doubles came out as integers", "[1.0, -3.0]", value)


@section.should("minus zero", "-0.0 keeps its sign.", steps="emit")
def _(t: Conversation) -> None:
    value = t.echo("-0.0")
    t.check(value == 0 and math.copysign(1, value) < 0, "the sign was lost", "-0.0", value)


@section.should(
    "an integer beyond 64 bits does not end it",
    "Storm from 2.6 on sends a BigInteger as it is; the component answers and continues.",
    steps="emit",
    source=f"{MEASURED} (bigint)",
)
def _(t: Conversation) -> None:
    t.perform_text('[["emit",[123456789012345678901234567890]]]', "[]")


@section.should(
    "NaN in a tuple does not end it",
    "Storm writes a Java NaN bare, which is not JSON: a component that dies of it takes its worker along.",
    steps="emit",
    source=MEASURED,
)
def _(t: Conversation) -> None:
    if t.kind == "spout":
        t.handshake(conf=t.world.full_conf(**{"a.nan": "@nan@"}), text=lambda text: text.replace('"@nan@"', "NaN"))
        t.next()
    else:
        t.handshake()
        t.finished(t.tuple(text="[[],NaN]", stream="two"))
        t.settle()


section.watch(
    "SHOULD",
    "numbers.constant",
    "it writes no NaN and no Infinity",
    "They are not JSON; Storm makes a string of an infinity.",
    f"{MEASURED} (nan, infinity)",
)


@section.must(
    "an integer stays an integer",
    "Storm reads 1700000000000 as a Long and 1.7e12 as a Double: a Java bolt's getLong throws, and their hashes differ.",
    steps="emit",
    source=f"{MEASURED}; {PAGE}, Bolts",
    after=("common/numbers/2",),
)
def _(t: Conversation) -> None:
    numbers = [7, 100, 123456789, 1700000000000, -9007199254740991]
    value = t.echo(str(numbers))
    t.same(value, numbers, CHANGED)
    t.check(all(type(each) is int for each in value), "integers came out as doubles", str(numbers), str(value))


@section.must(
    "doubles to their last bit",
    "Java's double needs up to 17 digits; a language that writes 15 changes it in silence, and sums and keys with it.",
    steps="emit",
    source="RFC 8259, section 6: doubles of IEEE 754; Java's Double.toString",
    after=("common/numbers/3",),
)
def _(t: Conversation) -> None:
    texts = ["0.30000000000000004", "3.141592653589793", "-1234567.8901234567"]
    t.unchanged([float(text) for text in texts], CHANGED, texts)


@section.should(
    "the smallest doubles",
    "Doubles near zero come out to their last bit, too.",
    steps="emit",
    after=("common/numbers/14",),
)
def _(t: Conversation) -> None:
    texts = ["2.2250738585072014e-308", "5e-324"]
    t.same(t.echo(f"[{','.join(texts)}]"), [float(text) for text in texts], CHANGED)
