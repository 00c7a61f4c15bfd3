"""Check with many seeds: one in a thousand may show what a single run does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SEED_VARIABLE = "MULTILANG_SEED"


def each_seed(check: Callable[[int], object], seeds: int = 100, first: int = 0) -> None:
    """Call ``check(seed)`` with many seeds.

    ``check`` runs a topology with ``LocalCluster("simulated", seed=seed, faults=Faults())`` and asserts what must hold
    whatever happens. With MULTILANG_SEED in the environment only that seed is tried: the same run, event by event.

    Args:
        check: The check; it raises an exception when it fails.
        seeds: The number of seeds.
        first: The first seed; the others follow it.

    Raises:
        AssertionError: The check failed; the error names the first such seed.
    """
    only = os.environ.get(SEED_VARIABLE)
    tried = range(first, first + seeds) if only is None else [_number(only)]
    for passed, seed in enumerate(tried):
        try:
            check(seed)
        except BaseException as error:
            # pytest.fail, and pytest.raises when nothing is raised, raise an error that is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "Failed":
                raise
            raise AssertionError(
                f"seed {seed} fails, after {passed} that passed: {type(error).__name__}: {error}\n"
                f"to replay this run alone: {SEED_VARIABLE}={seed}"
            ) from error


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{SEED_VARIABLE} is {text!r}; set it to the number that a failing run printed") from None
