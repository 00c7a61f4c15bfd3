"""Text of a component in any language arrives in the embedded cluster as under Storm, or is refused if it would not.

The JSON here is such as other libraries may write: numbers in any form, unnecessary escapes, duplicate keys.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from multilang.protocol import RemoteProtocolError, Tuple
from tests.protocol.wire import shaken_child, shaken_parent
from tests.soak import SOAK
from tests.values import generated
from tests.values.generated import same
from tests.values.test_values import SEED

if TYPE_CHECKING:
    from tests.values.storm import Storm

TEXTS = 200_000 if SOAK else 6_000
AT_ONCE = 2000
_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NUMBERS = [
    *("-0", "0", "-0.0", "0.0", "0e0", "-0e5", "1e400", "-1e400", "1e-400", "1E5", "1.0E+5", "0.10", "0e20", "1e22"),
    *("100000000000000000000.0", "1.00000000000000000000e+20", "12345678901234567.8e1", "9007199254740993.0"),
    *("1.2345678901234568e+16", "-1.23456789012e+011", "2.4703282292062328e-324", "9223372036854775808"),
]


def number(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(_NUMBERS)
    text = rng.choice(("", "-")) + str(rng.getrandbits(rng.randrange(1, 80)))
    if kind < 0.4:
        return text
    if kind < 0.8:
        text += "." + "".join(rng.choices("0123456789", k=rng.randrange(1, 25)))
    if kind > 0.6:
        text += rng.choice("eE") + rng.choice(("", "+", "-")) + str(rng.randrange(rng.choice((5, 30, 330))))
    return text


def string(rng: Random) -> str:
    text = '"'
    for letter in generated.text(rng):
        chance = rng.random()
        if letter in _SHORT and chance < 0.5:
            text += _SHORT[letter]
        elif chance < 0.3 or letter in '"\\' or letter < " ":
            units = memoryview(letter.encode("utf-16-le")).cast("H")
            text += "".join(rng.choice(("\\u%04x", "\\u%04X")) % unit for unit in units)
        else:
            text += letter
    return text + (rng.choice(("\\ud800", "\\uDFFFx")) if rng.random() < 0.01 else "") + '"'


def value(rng: Random, size: int = 5) -> str:
    kind = rng.random()
    space = rng.choice(("", "", "", " ", "\t"))
    if size > 0 and kind < 0.15:
        return f"[{space}{f'{space},'.join(value(rng, size - 2) for _ in range(rng.randrange(size)))}]"
    if size > 0 and kind < 0.3:
        # A key twice by chance hides the value before it: whether Storm changed that value can't be seen.
        keys = list({json.loads(key): key for key in (string(rng) for _ in range(rng.randrange(size)))}.values())
        twice = f"{space}{keys[0]}:1," if keys and rng.random() < 0.3 else ""
        return f"{{{twice}" + ",".join(f"{space}{key}{space}:{value(rng, size - 2)}{space}" for key in keys) + "}"
    if kind < 0.6:
        return number(rng)
    if kind < 0.9:
        return string(rng)
    return rng.choice(("true", "false", "null"))


def finite(text: str) -> float | str:
    """A number, unless no float is as large: to a component in Java it is a BigDecimal, to Python an infinity."""
    number = float(text)
    return number if number - number == 0.0 else text


def emitted(text: str) -> bytes:
    return f'{{"command":"emit","tuple":[{text}]}}\nend\n'.encode()


def embedded(text: str) -> list[Any]:
    """Return how it arrives in the embedded cluster. Raises RemoteProtocolError."""
    (emit,) = shaken_parent("bolt").receive_data(emitted(text))
    parent = shaken_parent("bolt")
    parent.tuple("1", "lines", "default", 1, emit.values)  # type: ignore[attr-defined]
    (tup,) = shaken_child().receive_data(parent.data_to_send())
    assert isinstance(tup, Tuple)
    return tup.values


def under_storm(storm: Storm, texts: list[str]) -> list[list[Any]]:
    """Return how each arrives under Storm."""
    child = shaken_child()
    tuples: list[Any] = []

    def hear(data: bytes) -> bool:
        tuples.extend(child.receive_data(data))
        return len(tuples) == 2 * len(texts)

    storm.ask(b"".join(map(emitted, texts)), hear)
    for near, far in zip(tuples[::2], tuples[1::2], strict=True):
        assert same(near.values, far.values)
    return [near.values for near in tuples[::2]]


@pytest.mark.soak
def test_a_text_arrives_as_under_storm_or_is_refused_because_storm_changes_it(storm: Storm) -> None:
    rng = Random(SEED)
    refused = 0
    for _ in range(TEXTS // AT_ONCE):
        texts = [value(rng) for _ in range(AT_ONCE)]
        for text, there in zip(texts, under_storm(storm, texts), strict=True):
            try:
                here = embedded(text)
            except RemoteProtocolError:
                refused += 1
                meant = json.loads(text, parse_float=finite)
                assert not same(there, [meant]), f"refused for nothing (MULTILANG_SEED={SEED}): {text!a}"
            else:
                assert same(here, there), f"MULTILANG_SEED={SEED}: {text!a} is {there!a} under Storm, {here!a} here"
    assert 0 < refused < TEXTS // 10


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("1.2345678901234568e+16", 12345678901234568),
        ("12345678901234568.0", 12345678901234568.0),
        ('[1.0, {"k": -1.2345678901234568E16}]', [1.0, {"k": -12345678901234568}]),
        ("-1.23456789012e+011", -123456789012),
        ("1.2345678901234567e+17", 1.2345678901234567e17),
        ('"1.2345678901234568e+16"', "1.2345678901234568e+16"),
        ('"\x7f"', "\x7f"),
        ('["\x7f", "\\n"]', ["\x7f", "\n"]),
        ('"\\u007f\\n"', "\x7f\n"),
    ],
)  # fmt: skip
def test_how_a_number_is_written_says_what_it_is(storm: Storm, text: str, arrives: Any) -> None:
    assert same(embedded(text), [arrives])
    assert same(under_storm(storm, [text]), [[arrives]])


def test_what_storm_would_drop_is_refused() -> None:
    for text in ('"\x7f\\n"', '{"\\u0041\x7f": 1}', '["a", ["\\\\\x7f"]]'):
        with pytest.raises(RemoteProtocolError, match=r"has U\+007F in a string with an escape, where Storm drops it"):
            embedded(text)
