"""The errors in declaring a topology."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.near import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class TopologyError(ConfigError):
    """A topology is declared in a way that can't run; the text names the component and the fix."""


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return the end of an error's text: a near match of ``wrong``, or else all known names."""
    names = sorted(known)
    if not names:
        return "there is none"
    near = nearest(wrong, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"write {'one of ' if len(names) > 1 else ''}{', '.join(map(repr, names))}"
