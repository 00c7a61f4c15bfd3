"""Values of every kind that JSON has, from a seed: many and quickly, with what parsers get wrong made frequent."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

MAX_DEPTH = 300  # what the codec lets through

# What a parser may treat unlike its neighbours: what JSON escapes, what ends lines, ends of UTF-8 lengths and planes.
_EDGES = [
    *map(chr, (*range(0x21), 0x22, 0x2F, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D, 0x7E, 0x7F, 0x80, 0x85, 0x9F, 0xA0, 0xAD)),
    *map(chr, (0x7FF, 0x800, 0x200B, 0x2028, 0x2029, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000)),
    *map(chr, (0x1F40D, 0x1FFFF, 0x10FFFF)),
    *("\\u", "\\u007f", "\\n", "\\\\", '\\"', "e+16", "1.2345678901234568e+16", "],[", "\nend\n", "end", "null", "NaN"),
    *("é", "e\u0301", "👩\u200d👧", "true", "1", "-0", "'", ":", ",", "#", "//", "/*"),
]


def text(rng: Random) -> str:
    """Text of letters, of edges, of any code points, or of all of them."""
    kind = rng.random()
    if kind < 0.2:
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=rng.randrange(12)))
    if kind < 0.6:
        return "".join(rng.choices(_EDGES, k=rng.randrange(1, 8)))
    if kind < 0.8:
        return "".join(_any(rng) for _ in range(rng.randrange(10)))
    if kind < 0.999:
        return "".join(rng.choice(_EDGES) if rng.random() < 0.3 else _any(rng) for _ in range(rng.randrange(20)))
    return "".join(rng.choice(_EDGES) * rng.randrange(4000) for _ in range(5))


def _any(rng: Random) -> str:
    point = rng.randrange(0x110000 - 0x800) if rng.random() < 0.5 else rng.randrange(0x300)
    return chr(point if point < 0xD800 else point + 0x800)


def integer(rng: Random) -> int:
    """An integer of 64 bits: any size is as likely as any other, and the edges are likely."""
    bits = rng.randrange(64)
    number = rng.getrandbits(bits) if rng.random() < 0.6 else (1 << bits) + rng.randrange(-2, 3)
    return max(-(2**63), min(2**63 - 1, -number if rng.random() < 0.5 else number))


def number(rng: Random) -> float:
    """A finite float: by its bits, by its digits, or around a power of ten or two."""
    while True:
        kind = rng.random()
        if kind < 0.4:
            (found,) = struct.unpack("d", rng.randbytes(8))
        elif kind < 0.6:
            found = rng.randrange(10 ** rng.randrange(1, 18)) * 10.0 ** rng.randrange(-30, 30)
        elif kind < 0.8:
            digits = str(rng.randrange(10**16, 10**17))[: rng.randrange(1, 18)]
            found = float(f"{digits[0]}.{digits[1:]}e{rng.randrange(-8, 24)}")
        else:
            found = (10.0 if rng.random() < 0.5 else 2.0) ** rng.randrange(-300, 300)
            found *= 1 + rng.randrange(-3, 4) * 2.0**-52
        if found - found == 0.0:
            return -found if rng.random() < 0.5 else found


def value(rng: Random, size: int = 6, depth: int = 0) -> Any:
    """A value of any kind; ``size``: of its containers, which shrinks on the way down."""
    kind = rng.random()
    if depth == 0 and kind < 0.002:
        return deep(rng)
    if size and kind < 0.15:
        return [value(rng, size - 2, depth + 1) for _ in range(rng.randrange(size))]
    if size and kind < 0.3:
        return {text(rng): value(rng, size - 2, depth + 1) for _ in range(rng.randrange(size))}
    if kind < 0.5:
        return text(rng)
    if kind < 0.7:
        return integer(rng)
    if kind < 0.95:
        return number(rng)
    return rng.choice((None, True, False))


def deep(rng: Random) -> Any:
    """A value that is nested, up to what is allowed."""
    found: Any = value(rng, 0, 1)
    for _ in range(rng.choice((MAX_DEPTH - 1, rng.randrange(MAX_DEPTH)))):
        found = [found] if rng.random() < 0.5 else {text(rng): found}
    return [found]


def count(found: Any) -> int:
    """Return how many values this is, with those inside it."""
    if isinstance(found, list):
        return 1 + sum(map(count, found))
    if isinstance(found, dict):
        return 1 + sum(map(count, found.values()))
    return 1


def same(one: Any, other: Any) -> bool:
    """Equal, of the same type all the way down, floats to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other)
    return bool(one == other)
