"""Random values and texts, and the many ways in which JSON may spell them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

_EXACT = 2**53  # beyond it, languages whose numbers are doubles change integers
_POWERS = (*range(-200, 9), *range(25, 200))  # in between, some languages write a double as an integer
_DEEPEST = 4
_LONGEST = 12  # elements of an array or an object, and characters of most texts
_TEXTS = (
    "end",
    "\nend\n",
    "end\n{}",
    '"end"',
    "{}",
    "[]",
    "null",
    "\\",
    "\\n",
    "\\u0041",
    '"',
    "'",
    "/",
    "</script>",
    "",
)
_LETTERS = (
    "abcdefghij KLMNOP0123456789",
    "\t\n\r\b\f\x00\x01\x1f\x7f",
    "éÅßøñ\u0301\xa0\xad",
    "漢字かなабвγδ",
    "🐍👩‍🚀𝒳\U0010ffff",
    "\u2028\u2029\ufeff\u200d\uffff\ue000",
)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "/": "\\/"}
_BLANKS = ("", "", "", "", " ", "\n", "  ", "\t", "\r\n ")


def text(random: Random) -> str:
    """Return a random text.

    Args:
        random: The source of what is random.
    """
    if random.random() < 0.2:
        return random.choice(_TEXTS)
    length = random.choice((0, 1, 2, random.randrange(_LONGEST), random.randrange(200)))
    letters = _LETTERS if random.random() < 0.3 else (random.choice(_LETTERS),)
    return "".join(random.choice(random.choice(letters)) for _ in range(length))


def value(random: Random, depth: int = 0) -> Any:
    """Return a random JSON value, of such as Storm and a program in any language keep as they are.

    Args:
        random: The source of what is random.
        depth: The number of arrays and objects around it.
    """
    makers: list[Callable[[], Any]] = [
        lambda: text(random),
        lambda: random.choice((None, True, False)),
        lambda: random.choice((random.randrange(-9, 10), random.randrange(-_EXACT, _EXACT))),
        lambda: random.choice((random.gauss(0, 1), random.uniform(1, 2) * 10.0 ** random.choice(_POWERS), -0.5)),
    ]
    if depth < _DEEPEST:
        size = random.randrange(_LONGEST >> depth)
        makers += [
            lambda: [value(random, depth + 1) for _ in range(size)],
            lambda: {text(random): value(random, depth + 1) for _ in range(size)},
        ]
    return random.choice(makers)()


def spelled(random: Random, value: Any) -> str:
    """Return one of the many JSON texts for a value: blanks between its parts, and escapes where they are allowed.

    Args:
        random: The source of what is random.
        value: The value.
    """
    blanks = _BLANKS if random.random() < 0.5 else ("",)
    escaped = random.choice((0.0, 0.1, 1.0))

    def blank() -> str:
        return random.choice(blanks)

    def string(words: str) -> str:
        return '"' + "".join(_letter(random, letter, escaped) for letter in words) + '"'

    def spell(each: Any) -> str:
        if isinstance(each, str):
            return string(each)
        if isinstance(each, list):
            return f"[{blank()}{f'{blank()},{blank()}'.join(map(spell, each))}{blank()}]"
        if isinstance(each, dict):
            pairs = (f"{string(key)}{blank()}:{blank()}{spell(inner)}" for key, inner in each.items())
            return f"{{{blank()}{f'{blank()},{blank()}'.join(pairs)}{blank()}}}"
        return json.dumps(each, allow_nan=False)

    return spell(value)


def _letter(random: Random, letter: str, escaped: float) -> str:
    if letter in '"\\' or letter < " " or random.random() < escaped:
        if letter in _ESCAPES and random.random() < 0.5:
            return _ESCAPES[letter]
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    return letter


def pieces(random: Random, often: float, most: int = 6) -> Callable[[bytes], Iterable[bytes]] | None:
    """Return a function that cuts bytes at random places, or None for no cuts.

    Args:
        random: The source of what is random.
        often: The probability of cuts.
        most: The number of cuts at most.
    """
    if random.random() >= often:
        return None
    count, seed = random.randrange(1, most + 1), random.random()

    def cut(data: bytes) -> Iterable[bytes]:
        places = sorted(Random(seed).randrange(len(data) + 1) for _ in range(count))
        return [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)]

    return cut
