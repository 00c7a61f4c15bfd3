"""The near match of a name that was probably misspelt."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(wrong: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most like a wrong one; None if none is.

    Args:
        wrong: The name.
        known: The names that it may stand for.
        cutoff: How much alike they must be, from 0 to 1.
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(wrong, known, n=1, cutoff=cutoff)), None)
