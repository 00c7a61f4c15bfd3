"""Partial-key grouping: each key has two tasks, and the less used one gets the tuple (Storm's PartialKeyGrouping).

It balances skewed keys; a key's total must then be summed up downstream from two tasks. A key has the same two tasks as
in Storm: they come from ``java.util.Random`` with the key's hash as seed, so that every source task chooses the same
two.
"""

from __future__ import annotations

from multilang.topology.javahash import java_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_MULTIPLIER = 0x5DEECE66D  # java.util.Random is a 48-bit linear congruential generator
_MASK = (1 << 48) - 1
_CACHED_KEYS = 65536


def two_tasks(hashes: Sequence[int], n: int) -> tuple[int, int]:
    """Return the indexes, below ``n``, of the two tasks for the key whose fields have these hashes."""
    seed = 1
    for hash_ in hashes:
        for byte in hash_.to_bytes(4, "big", signed=True):
            seed = (31 * seed + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    random = _JavaRandom(seed - (1 << 32) if seed >> 31 else seed)
    first = random.below(n)
    second = random.below(n)
    return first, (second + 1) % n if first == second else second


def partial_key(indexes: Sequence[int], tasks: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[int]]:
    """Return one source task's choosing function for a key that consists of the values at ``indexes``."""
    pairs: dict[tuple[int, ...], tuple[int, int]] = {}
    load = [0] * len(tasks)  # tuples sent so far, counted for each source task, as in Storm's BalancedTargetSelector
    answers = [(task,) for task in tasks]

    def choose(values: Sequence[Any]) -> Sequence[int]:
        hashes = tuple([java_hash(values[index]) for index in indexes])
        pair = pairs.get(hashes)
        if pair is None:
            if len(pairs) >= _CACHED_KEYS:
                pairs.clear()
            pair = pairs[hashes] = two_tasks(hashes, len(tasks))
        first, second = pair
        chosen = second if load[second] < load[first] else first
        load[chosen] += 1
        return answers[chosen]

    return choose


class _JavaRandom:
    """``java.util.Random``, as far as ``nextInt(bound)`` needs it."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def below(self, bound: int) -> int:
        """Return Java's ``nextInt(bound)``."""
        bits = self._next31()
        if bound & -bound == bound:
            return bound * bits >> 31
        # the last, incomplete part of the range would make it uneven
        while bits - bits % bound + (bound - 1) >= 1 << 31:
            bits = self._next31()
        return bits % bound

    def _next31(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17
