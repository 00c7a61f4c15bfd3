"""One thing to do about a project."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Finding:
    """One thing to do.

    Attributes:
        path: The file.
        line: The line, from 1; 0 is the whole file.
        what: The fault.
        fix: What to write or do instead; empty if there is nothing to do.
        stops: Whether it keeps the program from running; otherwise it is only good to know.
        python2: Whether only a program that was written for Python 2 has it.
    """

    path: str
    line: int
    what: str
    fix: str
    stops: bool = True
    python2: bool = False


def as_text(found: list[Finding]) -> str:
    """Return findings line by line, as compilers print them."""
    lines: list[Any] = []
    for each in found:
        place = f"{each.path}:{each.line}" if each.line else each.path
        lines.append(f"{place}: {'' if each.stops else 'note: '}{each.what}{each.fix and '; '}{each.fix}")
    return "\n".join(lines)
