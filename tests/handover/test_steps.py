"""A task that is stopped at a step, and wakes when another run has finished: it changes nothing.

A sample of the steps here; each five times, in each store and of each kind, with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.soak import SOAK
from tests.state.test_crashes import STEPS, has

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.handover.lives import Signal
    from tests.handover.places import Place

OF_STATES = [
    (f"{alignment} {store}", who, step)
    for alignment, first in (("exact", "ROLLBACK"), ("at-least-once", "INITSTATE"))
    for who, step in [*STEPS, ("$checkpointspout-0", "CLAIM claimed"), ("count-1", f"{first} claimed")]
    for store in ("sqlite", "redis")
    if has(alignment, store, who, step)
]
OF_A_CLAIM = ["CLAIM look", "CLAIM claim", "CLAIM claimed"]
OF_A_COORDINATOR = [
    *OF_A_CLAIM,
    *(f"BEGIN {step}" for step in ("write", "written", "emit", "emitted", "acked")),
    *(f"COMMIT {step}" for step in ("emit", "emitted", "acked")),
]
OF_AN_EMITTER = [*OF_A_CLAIM, "BATCH emit", "BATCH emitted"]
OF_A_COMMITTER = [f"COMMIT {step}" for step in ("finish", "read", "put", "done", "finished")]
OF_TRANSACTIONS = [
    (f"{kind} {store}", who, step)
    for kind, of_its_emitter in (
        ("transactional", ["BATCH write", "BATCH written"]),
        ("opaque", ["COMMIT write", "COMMIT written"]),
    )
    for who, steps in (
        ("coordinator", OF_A_COORDINATOR),
        ("emitter-1", [*OF_AN_EMITTER, *of_its_emitter]),
        ("update-0", OF_A_COMMITTER),
    )
    for step in steps
    for store in ("sqlite", "zookeeper")
]
SAMPLE = [
    ("exact redis", "count-1", "COMMIT write"),
    ("transactional zookeeper", "coordinator", "BEGIN write"),
    ("transactional sqlite", "emitter-1", "BATCH write"),
    ("opaque sqlite", "update-0", "COMMIT put"),
]


def signals(who: str, step: str, seed: int) -> list[Signal]:
    """Return the signals that lead to the step, and the stop there."""
    if step.startswith("CLAIM") or step.endswith("claimed"):
        return [(who, step, 1, "SIGSTOP")]
    if step.startswith(("ROLLBACK", "INITSTATE")):  # of a recovery, which something has to cause
        return [("count-0", "PREPARE received", 2, "SIGKILL"), (who, step, 1, "SIGSTOP")]
    return [(who, step, random.Random(f"{who} {step} {seed}").randint(1, 3), "SIGSTOP")]


@pytest.mark.parametrize("seed", range(5 if SOAK else 1))
@pytest.mark.parametrize(("what", "who", "step"), [*OF_STATES, *OF_TRANSACTIONS] if SOAK else SAMPLE)
def test_who_wakes_after_another_run_changes_nothing(
    what: str, who: str, step: str, seed: int, place_of: Callable[..., Place]
) -> None:
    place = place_of(what)
    first = place.begin(*signals(who, step, seed))
    first.is_stopped()
    first.kill()
    second = place.begin()
    if step.endswith(" sync") and "sqlite" in what:  # it has locked the file: who takes over waits until that is over
        second.has_begun()
        first.wake()
        first.is_gone()
        second.ends_well()
        place.check(place.counts())
        return
    second.ends_well()
    counts = place.counts()
    place.check(counts)
    first.wake()
    first.is_gone()
    assert place.counts() == counts
