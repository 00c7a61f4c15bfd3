"""The choice between a sample and the full numbers, which ``scripts/soak`` asks for.

A sample has a case for each mechanism. What repeats one of them, or takes long to say again what a quicker test says, is
marked with ``soak_only``, a test or a single parameter of it, and is collected in the soak alone.
"""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SOAK = os.environ.get("MULTILANG_SOAK") == "full"
soak_only = pytest.mark.soak_only


EVERY_MODE = pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
"""In each mode of the embedded cluster: what a mode does itself, such as its kinds of messages, starts, ends and failures."""
MOSTLY_IN_PROCESS = pytest.mark.parametrize(
    "mode", ["inprocess", "simulated", pytest.param("process", marks=soak_only)]
)
"""The same, with processes in the soak alone: they say there what they say in another test."""


def combined(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations of parameters in the soak, else so few that each value is in one of them."""
    if SOAK:
        return list(product(*parameters))
    return [tuple(each[n % len(each)] for each in parameters) for n in range(max(map(len, parameters)))]


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """Return all cases in the soak, else one of ``every``."""
    return list(cases)[:: 1 if SOAK else every]


def chosen(cases: Iterable[Any], *few: Any) -> list[Any]:
    """Return all cases in the soak, else these few of them."""
    every = list(cases)
    assert all(case in every for case in few), [case for case in few if case not in every]
    return every if SOAK else list(few)
