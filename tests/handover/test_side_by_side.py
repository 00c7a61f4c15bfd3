"""Two topologies of different names in one Redis database at once: both count right."""

from __future__ import annotations

import pytest

from tests.handover.places import States
from tests.soak import SOAK

SEEDS = range(5 if SOAK else 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alignment", ["exact", "at-least-once"] if SOAK else ["exact"])
def test_two_topologies_in_one_redis_database_count_right(alignment, seed, place_of, redis, tmp_path):
    one = place_of(f"{alignment} redis", size=3)
    folder = tmp_path / "other"
    folder.mkdir()
    other = States(one.what, folder, {**one.conf, "topology.name": "another"}, 3, "tests.handover.topologies")
    try:
        lives = [place.begin() for place in (one, other)]
        for life in lives:
            life.ends_well()
        for place in (one, other):
            place.check(place.counts())
    finally:
        other.close()
