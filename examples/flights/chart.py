"""A bar chart as SVG text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 780, 210, 165, 62, 26, 18
_EARLY, _LATE = "#3b7dd8", "#d8663b"


def bar_chart(title: str, subtitle: str, bars: Sequence[tuple[str, float, str]]) -> str:
    """Return the chart. ``bars``: name, value (of any sign), and a note to its right."""
    least = min(0.0, *(value for _, value, _ in bars))
    most = max(0.0, *(value for _, value, _ in bars))
    scale = (WIDTH - LEFT - RIGHT) / ((most - least) or 1)
    zero = LEFT - least * scale
    height = TOP + ROW * len(bars) + 16
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    font = 'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="26" font-size="17" font-weight="bold">{escape(title)}</text>',
        f'<text x="16" y="46" fill="#666">{escape(subtitle)}</text>',
    ]
    for number, (name, value, note) in enumerate(bars):
        y = TOP + number * ROW
        text = y + BAR / 2 + 4.5
        start, end = sorted((zero, zero + value * scale))
        colour = _LATE if value > 0 else _EARLY
        label = f'{value:+.1f} <tspan fill="#666">{escape(note)}</tspan>'
        lines += [
            f'<text x="{LEFT - 10}" y="{text:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{start:.1f}" y="{y}" width="{end - start:.1f}" height="{BAR}" fill="{colour}"/>',
            f'<text x="{max(zero, end) + 6:.1f}" y="{text:.1f}">{label}</text>',
        ]
    bottom = TOP + ROW * len(bars)
    lines.append(f'<line x1="{zero:.1f}" y1="{TOP - 6}" x2="{zero:.1f}" y2="{bottom}" stroke="#222"/>')
    return "\n".join([*lines, "</svg>\n"])
