"""Random handovers of real processes: lives that are begun, stopped at a step or anywhere, killed, overlapping and woken.

Whatever came of each, the counts are right, and stay so. MULTILANG_SEED replays a seed; 200 with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.handover.places import PLACES, States
from tests.handover.test_steps import OF_STATES, OF_TRANSACTIONS, signals
from tests.servers import wait_for
from tests.soak import SOAK, soak_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.handover.lives import Life
    from tests.handover.places import Place

SEEDS = [int(os.environ["MULTILANG_SEED"])] if "MULTILANG_SEED" in os.environ else range(200 if SOAK else 1)


@soak_only
@pytest.mark.parametrize(("seed", "what"), [(seed, PLACES[(3 * seed) % len(PLACES)]) for seed in SEEDS])
def test_counts_are_right_whoever_wrote_last(seed: int, what: str, place_of: Callable[..., Place]) -> None:
    chance = Random(seed)
    place = place_of(what, size=2)
    for _ in range(chance.randint(1, 3)):
        goes_wrong(place, chance)
    last = finished(place, chance)
    counts = place.counts()
    place.check(counts)
    for life in chance.sample(place.lives, len(place.lives)):
        ends(place, life)
    if not place.repeats or not any(life.process.returncode == 0 for life in place.lives if life is not last):
        assert place.counts() == counts
    place.check(place.counts())


def goes_wrong(place: Place, chance: Random) -> None:
    """A life, to its end or to where it is stopped or killed; one before may go on meanwhile, or wake."""
    steps = [each for each in (OF_STATES if isinstance(place, States) else OF_TRANSACTIONS) if each[0] == place.what]
    _, who, step = chance.choice([each for each in steps if not each[2].endswith(" sync")])
    life = place.begin(*signals(who, step, chance.randrange(100)))
    if chance.random() < 0.7:
        life.is_stopped_or_ended()
    else:
        due, before = chance.randint(1, 300), place.counts().total()
        life.until(lambda: place.counts().total() > before + due)
    what = chance.choice(["kill", "kill", "stop", "leave"])
    if what == "kill":
        life.kill()
    elif what == "stop":
        place.stop(life)
    for earlier in place.lives[:-1]:
        if chance.random() < 0.3:
            earlier.wake()


def finished(place: Place, chance: Random) -> Life:
    """The first life that comes to its end, when those that run are stopped, or killed."""
    while True:
        for life in place.lives:
            if life.process.poll() is None:
                if chance.random() < 0.5:
                    place.stop(life)
                else:
                    life.kill()
        last = place.begin()
        if last.end() == 0:
            return last
        place.is_told(last)


def ends(place: Place, life: Life) -> None:
    """It comes to its end by itself; if it could not go on, it says so."""
    wait_for(lambda: life.wake() or life.process.poll() is not None, "it ends")  # it may stop itself yet
    if life.end() > 0:
        place.is_told(life)
    life.is_gone()
