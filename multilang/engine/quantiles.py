"""Quantiles of latencies, from histograms whose intervals grow like powers of two."""

from __future__ import annotations

from math import frexp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PARTS = 16
"""The intervals between a length and twice that length: a quantile is off by 3 % at most, and by half of that on average."""


def bin_of(secs: float) -> int:
    """Return the number of the interval in which a latency lies. ``secs``: seconds; from 0 to below a nanosecond it is the same."""
    if secs < 1e-9:
        secs = 1e-9
    mantissa, exponent = frexp(secs)  # the mantissa is from 0.5 to below 1
    return exponent * PARTS + int((mantissa - 0.5) * (2 * PARTS))


def middle_of(number: int) -> float:
    """Return the middle of an interval, in seconds. ``number``: that of ``bin_of``."""
    exponent, part = divmod(number, PARTS)
    return (0.5 + (part + 0.5) / (2 * PARTS)) * 2.0**exponent


def quantiles(counts: Iterable[Mapping[int, int]], shares: Iterable[float]) -> list[float | None]:
    """Return the latencies below which these shares of all are, in seconds; None: there is none.

    Args:
        counts: Of each task, the numbers of latencies by interval.
        shares: The shares, from 0 to 1.
    """
    whole: dict[int, int] = {}
    for each in counts:
        for number, count in list(each.items()):  # the task adds to it meanwhile
            whole[number] = whole.get(number, 0) + count
    ordered = sorted(whole.items())
    total = sum(whole.values())
    found: list[float | None] = []
    for share in shares:
        left = share * total
        for number, count in ordered:
            left -= count
            if left <= 0:
                found.append(middle_of(number))
                break
        else:
            found.append(middle_of(ordered[-1][0]) if ordered else None)
    return found
