"""Values that survive the trip exactly, and values that are refused before they are sent."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import math
import re
import struct
import uuid
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from multilang.protocol import ParentConnection, UnserializableValue
from multilang.protocol.codec import MAX_DEPTH, dumps, encode_values, loads, normalize, reason_against
from tests.protocol.wire import END, outcome, received, sent_by, shaken_child, shaken_parent, whole

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value, type and sign: 1, 1.0 and True are three things, and so are 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def nested(depth: int) -> list[Any]:
    """A list of ``depth`` levels."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


# ---- what survives ----


@given(st.lists(VALUES, max_size=5))
def test_what_is_sent_is_what_arrives(values: list[Any]) -> None:
    text = encode_values(values)
    assert same(loads(text.encode()), values)
    assert same(json.loads(text), values)  # and to a reader that is not ours
    assert "\n" not in text
    assert same(normalize(values), values)


ANY = st.recursive(
    VALUES
    | st.integers(-(2**65), 2**65)
    | st.sampled_from([float("nan"), float("inf"), "\ud800", b"", ("a", 1), {1: 2}, {"a"}]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(ANY, max_size=4))
@example([[["a", 2**63]]])
@example([[["\ud800"]]])
@example(nested(20))
def test_values_in_lists_are_refused_for_the_same_reason_as_by_themselves(values: list[Any]) -> None:
    reason = next((reason for value in values if (reason := reason_against(value)) is not None), None)
    if reason is None:
        assert encode_values(values) == dumps(values)
        return
    with pytest.raises(UnserializableValue) as refused:
        encode_values(values)
    assert reason in str(refused.value)


@given(FLOATS)
@example(0.1 + 0.2)
@example(-0.0)
@example(5e-324)
@example(1.7976931348623157e308)
@example(2.0**53 + 2)
@example(1e16)
@example(123456789012345680.0)
def test_a_float_keeps_its_bits(number: float) -> None:
    assert same(loads(encode_values([number])), [number])
    # As Java writes it: "1.0E300"
    mantissa, _, exponent = repr(number).partition("e")
    java = mantissa if not exponent else f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
    assert same(loads(f"[{java}]".encode()), [number])


NEAR_16 = st.integers(10**15, 10**18).map(float) | st.floats(1e16, 1e17) | st.floats(1e160, 1e170)


@given(st.lists(NEAR_16 | NEAR_16.map(float.__neg__) | st.text('e+16"\\\x7f1.\n', max_size=30), max_size=4))
@example([1.2345678901234568e16, -1.2345678901234568e16, 1.2345678901234568e160, "1.2345678901234568e+16"])
def test_json_is_written_so_that_storms_parser_keeps_it(values: list[Any]) -> None:
    """No U+007F as it is, and no number with as many decimals as its exponent: what is in tests/values, without Java."""
    text = encode_values([values, {str(value): value for value in values}])
    assert same(loads(text)[0], values)
    assert "\x7f" not in text
    for number in re.findall(r'"(?:[^"\\]|\\.)*"|-?\d\.(\d+)e\+(\d+)', text):
        assert not number[0] or len(number[0]) != int(number[1]) or len(number[0]) < 14


@given(INTEGERS)
@example(-(2**63))
@example(2**63 - 1)
@example(2**31)
@example(2**53 + 1)
def test_an_integer_stays_one(number: int) -> None:
    assert same(loads(encode_values([number])), [number])
    assert same(loads(encode_values([[number]])), [[number]])


@given(st.lists(TEXT, max_size=4))
@example(["\x00\x1f\x7f\x80\u2028\u2029\ufeff\U0010ffff", '"\\/</b>', "\nend\n"])
def test_text_passes_both_ends(texts: list[str]) -> None:
    child = shaken_child(**{"stream->outputfields": None, "streams": None})
    parent = shaken_parent("bolt", ["11"])
    child.emit(texts, anchors=[received(child)])
    (emit,) = parent.receive_data(child.data_to_send())
    assert emit.values == texts  # type: ignore[attr-defined]


class Colour(enum.IntEnum):
    RED = 3


class Word(str):
    __slots__ = ()


class Real(float):
    """As numpy's float64 is one."""


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (Point(1, 2), [1, 2]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (Colour.RED, 3),
        (Word("w"), "w"),
        (Real(0.1), 0.1),
        (nested(MAX_DEPTH), nested(MAX_DEPTH)),
    ],
)
def test_what_is_nearly_json_arrives_as_json(value: Any, arrives: Any) -> None:
    assert same(loads(encode_values([value])), [arrives])
    assert same(normalize([value]), [arrives])


def test_containers_are_copied_in_process() -> None:
    inner = [1]
    (copied,) = normalize([inner])
    inner.append(2)
    assert copied == [1]


# ---- what is refused ----

Refused = pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "nan has no JSON form; send None or a string"),
        (float("inf"), "inf has no JSON form"),
        (-math.inf, "-inf has no JSON form"),
        (2**63, "the integer 9223372036854775808 is beyond 64 bits; send it as a string"),
        (-(2**63) - 1, "the integer -9223372036854775809 is beyond 64 bits"),
        (10**5000, "the integer of 16610 bits is beyond 64 bits"),
        (b"bytes", "b'bytes' is a bytes, which JSON does not have; decode it, or send base64 text"),
        (bytearray(b"x"), "is a bytearray, which JSON does not have; decode it"),
        ({1, 2}, "is a set, which JSON does not have; send sorted"),
        (frozenset("a"), "is a frozenset, .*; send sorted"),
        (datetime.date(2020, 1, 2), "is a date, which JSON does not have; send .isoformat"),
        (datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), "is a datetime, .*; send .isoformat"),
        (decimal.Decimal("1.5"), "is a Decimal, which JSON does not have; send str"),
        (fractions.Fraction(1, 2), "is a Fraction"),
        (uuid.UUID(int=5), "is an UUID"),
        (PurePosixPath("/x"), "is a PurePosixPath"),
        (1j, "is a complex"),
        (object(), "is an object, which JSON does not have; send strings, numbers"),
        (iter([]), "is a list_iterator"),
        ("a\ud800b", r"a string with a lone surrogate \('a\\ud800b'\) has no UTF-8 form; replace or escape it"),
        ("\ud83d\udc0d", "lone surrogate"),  # two halves that Python does not join
        ({1: "x"}, "the key 1 of a dict is an int; JSON has string keys only, convert it with str"),
        ({None: "x"}, "the key None of a dict is a NoneType"),
        ({b"k": "x"}, "the key b'k' of a dict is a bytes"),
        ({"\udfff": 1}, "lone surrogate"),
        ({"deep": [1, {"er": {2}}]}, "is a set"),
        ([float("nan")], "nan has no JSON form"),
        (nested(MAX_DEPTH + 1), "nested deeper than 300 levels, which Storm's parser refuses"),
        (memoryview(b"x"), "is a memoryview"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)


@Refused
def test_an_emit_says_what_does_not_survive_and_where(value: Any, reason: str) -> None:
    child = shaken_child()
    tup = received(child)
    where = r"component 'split', stream 'default', value 1 \(field 'n'\): "
    for emit in (
        lambda: child.emit(["a", value], anchors=[tup]),
        lambda: child.emit(("a", value)),
        lambda: child.emit(["a", value], token="never"),
        lambda: child.emit_many([["a", value]]),
        lambda: child.emit_from_spout(["a", value], 1),
    ):
        with pytest.raises(UnserializableValue, match=where + ".*" + reason) as caught:
            emit()
        assert caught.value.index == 1
    assert child.data_to_send() == b""
    assert tup.unfinished


@Refused
def test_in_process_the_same_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(UnserializableValue, match=reason) as caught:
        normalize(["a", None, value])
    assert caught.value.index == 2
    assert str(caught.value).startswith("value 2: ")


@pytest.mark.parametrize("values", [{"a": 1}, "ab", {1, 2}, None, 5, (value for value in "ab"), range(2), b"ab"])
def test_values_are_a_list(values: Any) -> None:
    child = shaken_child()
    message = "component 'split', stream 'default': a tuple's values are a list, not "
    with pytest.raises(UnserializableValue, match=message) as caught:
        child.emit(values)
    assert caught.value.index is None
    assert child.data_to_send() == b""
    with pytest.raises(UnserializableValue, match="a tuple's values are a list"):
        normalize(values)


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(UnserializableValue, match="nested deeper than 300 levels"):
        encode_values(circle)


def test_a_long_value_is_shown_shortened() -> None:
    with pytest.raises(UnserializableValue) as caught:
        encode_values([b"x" * 100_000])
    assert len(str(caught.value)) < 300


class Scalar:
    """The common part of numpy's and torch's numbers."""

    def item(self) -> int:
        return 1


def test_numbers_of_other_libraries_are_named_with_their_cure() -> None:
    with pytest.raises(
        UnserializableValue, match=r"is a Scalar, which JSON does not have; convert it with .item\(\) or"
    ):
        encode_values([Scalar()])


def test_metrics_are_checked_as_values_are() -> None:
    child = shaken_child()
    child.metrics("m", {"n": [1, 2.5, None]})
    assert sent_by(child) == [{"command": "metrics", "name": "m", "params": {"n": [1, 2.5, None]}}]
    with pytest.raises(UnserializableValue, match="the metric 'm': nan has no JSON form"):
        child.metrics("m", float("nan"))
    assert child.data_to_send() == b""


@pytest.mark.parametrize("text", ["plain", "né\n\x00", "a\ud800b", ""])
def test_a_log_line_is_never_lost(text: str) -> None:
    child = shaken_child()
    child.log(text, 3)
    child.error(text)
    shown = text.replace("\ud800", "\\ud800")
    assert sent_by(child) == [
        {"command": "log", "msg": shown, "level": 3},
        {"command": "error", "msg": shown},
    ]


def test_the_parent_refuses_what_it_can_not_say() -> None:
    parent = shaken_parent("bolt")
    with pytest.raises(UnserializableValue, match="value 1: nan has no JSON form"):
        parent.tuple("11", "lines", "default", 1, ["a", float("nan")])
    assert parent.unfinished == set()
    with pytest.raises(UnserializableValue, match=r"handshake's conf, key 'topology.x': .* is a set"):
        ParentConnection("bolt").setup({"topology.x": {1}}, "/pids", {})
    spout = shaken_parent("spout")
    spout.receive_data(b'{"command":"sync"}' + END)
    with pytest.raises(UnserializableValue, match="the message id"):
        spout.ack(object())
    assert parent.data_to_send() + spout.data_to_send() == b""


def test_integers_of_any_size_pass_the_parent_since_storm_takes_them() -> None:
    parent = shaken_parent("bolt")
    parent.tuple("11", "lines", "default", 1, [2**64, -(2**200)])
    child = shaken_child()
    (tup,) = child.receive_data(parent.data_to_send())
    assert tup.values == [2**64, -(2**200)]  # type: ignore[attr-defined]


# ---- ujson reads a little more than JSON ----


@pytest.mark.parametrize(
    ("text", "value"),
    [("[-]", [0]), ("[01]", [1]), ("[1.]", [1.0]), ('["a\nb"]', ["a\nb"]), ("[1e400]", [math.inf]), ("[NaN]", None)],
)
def test_what_is_read_although_it_is_no_json(text: str, value: Any) -> None:
    """No peer writes these; should ujson grow stricter, the module docstring of parent.py has to change."""
    found = loads(text)
    assert found == value if value is not None else math.isnan(found[0])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "[-1e400]", '{"k":NaN}'])
def test_no_emit_holds_what_is_no_number(number: str) -> None:
    _, error = _outcome(shaken_parent("bolt"), f'{{"command":"emit","tuple":["a",{number}]}}')
    assert error is not None
    assert "an emit has a 'tuple' whose value 1 is or holds" in error
    # Storm's own Java components may send them, and Java writes them bare
    child = shaken_child()
    (tup,) = child.receive_data(
        f'{{"id":"1","comp":"j","stream":"default","task":1,"tuple":["a",{number}]}}'.encode() + END
    )
    assert tup.values[0] == "a"  # type: ignore[attr-defined]


def _outcome(parent: ParentConnection, text: str) -> tuple[list[Any], str | None]:
    return outcome(parent, whole(text.encode() + END))


@pytest.mark.parametrize(
    "text",
    ["[1,]", "[.5]", "[+1]", "{'a':1}", "[1 2]", "[nan]", '["\x00"]', '["\\q"]', "[0x1]", "[1e]", "", '{"a":1}x'],
)
def test_what_is_no_json_at_all_is_refused(text: str) -> None:
    _, error = _outcome(shaken_parent("bolt"), text)
    assert error is not None
    assert "nothing but the protocol may be written to stdout" in error


def test_a_message_nested_too_deeply_is_refused_as_storm_does() -> None:
    def emit(depth: int) -> str:
        return '{"command":"emit","tuple":' + "[" * depth + "]" * depth + "}"

    _, error = _outcome(shaken_parent("bolt"), emit(399))
    assert error is None
    for depth in (400, 900, 1100, 100_000):
        for strict in (True, False):
            _, error = _outcome(shaken_parent("bolt", strict=strict), emit(depth))
            assert error is not None
            assert "so deeply" in error or "depth limit" in error or "is not JSON" in error
