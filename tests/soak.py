"""The choice between a sample and the full numbers, which ``scripts/soak`` asks for."""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SOAK = os.environ.get("MULTILANG_SOAK") == "full"


def combined(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations of parameters in the soak, else so few that each value is in one of them."""
    if SOAK:
        return list(product(*parameters))
    return [tuple(each[n % len(each)] for each in parameters) for n in range(max(map(len, parameters)))]


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """Return all cases in the soak, else one of ``every``."""
    return list(cases)[:: 1 if SOAK else every]
