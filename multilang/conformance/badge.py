"""A badge: how many of the MUST requirements a program keeps, as a picture for a README."""

from __future__ import annotations

from html import escape

from multilang.conformance.result import FAILED, PASSED, Result

_LABEL = "Storm multi-lang"
_GREEN, _YELLOW, _RED = "#1a7f37", "#9a6700", "#cf222e"
_WIDTH = 6.6  # of one letter; textLength makes it fit whatever the font is
_PAD = 12


def to_badge(result: Result, strict: bool = False) -> str:
    """Return the badge as SVG: green if the program keeps what was asked, yellow if a SHOULD fails, red if a MUST does.

    Args:
        result: The result of the program.
        strict: Whether a SHOULD that is not kept makes it red, too.
    """
    kept = result.count(PASSED, "MUST")
    asked = result.asked("MUST")
    bad = result.bad(strict) or kept < asked or not asked
    colour = _RED if bad else _YELLOW if result.count(FAILED) else _GREEN
    value = f"{result.kind} {kept}/{asked} MUST"
    widths = [round(len(text) * _WIDTH) for text in (_LABEL, value)]
    left, right = (width + _PAD for width in widths)
    texts = "".join(
        f'<text x="{x}" y="14" textLength="{width}">{escape(text)}</text>'
        for x, width, text in ((_PAD // 2, widths[0], _LABEL), (left + _PAD // 2, widths[1], value))
    )
    said = escape(f"{_LABEL}: {value}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{said}">'
        f"<title>{said}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="20" fill="#444"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" lengthAdjust="spacingAndGlyphs">'
        f"{texts}</g></svg>\n"
    )
