"""Figures as text, for the table on a terminal and for pages."""

from __future__ import annotations

UNKNOWN = "-"
"""The text of a figure that the engine can't know."""


def number(count: int | None) -> str:
    """Return a count as text."""
    return UNKNOWN if count is None else f"{count:,}"


def per_second(rate: float | None) -> str:
    """Return a rate as text."""
    return UNKNOWN if rate is None else f"{rate:,.0f}/s"


def percent(share: float | None) -> str:
    """Return a share from 0 to 1 as text."""
    return UNKNOWN if share is None else f"{share:.0%}"


def milliseconds(latency: float | None) -> str:
    """Return a latency as text, with as many digits as are significant."""
    if latency is None:
        return UNKNOWN
    if latency >= 10_000:
        return f"{latency / 1000:,.1f} s"
    if latency < 1:
        return f"{latency * 1000:.{1 if latency < 0.01 else 0}f} µs"
    return f"{latency:,.0f} ms" if latency >= 10 else f"{latency:.1f} ms"


def duration(secs: float | None) -> str:
    """Return a time as text."""
    if secs is None:
        return UNKNOWN
    whole = int(secs)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def counted(tuples: int) -> str:
    """Return a number of tuples, such as ``1 tuple``."""
    return f"{tuples} tuple{'' if tuples == 1 else 's'}"
