"""A topology that is started while its predecessor runs, or lies stopped, counts nothing wrong, and says why it can't run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.handover.places import PLACES
from tests.servers import wait_for
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.handover.places import Place

SEEDS = range(5 if SOAK else 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("what", PLACES if SOAK else ["transactional zookeeper"])
def test_the_second_of_two_is_refused_by_name(what: str, seed: int, place_of: Callable[..., Place]) -> None:
    place = place_of(what)
    first = place.begin((*place.worker, 1 + seed, "SIGSTOP"))  # so that it is not done before the other has begun
    first.is_stopped()
    place.refuses(place.begin(), first)
    first.wake()
    first.ends_well()
    place.check(place.counts())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("what", PLACES if SOAK else ["exact sqlite"])
def test_one_that_lies_stopped_is_taken_over_and_ends_when_it_wakes(
    what: str, seed: int, place_of: Callable[..., Place]
) -> None:
    place = place_of(what, size=5)
    first = place.begin()
    wait_for(lambda: place.counts().total() > 100 * seed, "it has counted some")
    place.stop(first)
    place.begin().ends_well()
    counts = place.counts()
    place.check(counts)
    first.wake()
    place.fences(first)
    assert place.counts() == counts
