"""A file of a topology's state disappears or is replaced, or a clock is set back: none of this goes unnoticed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.handover.places import BROKEN_OFF
from tests.servers import wait_for
from tests.soak import SOAK

SEEDS = range(5 if SOAK else 1)
CLOCK = Path(__file__).parent / "clock"


def deleted(path: str) -> None:
    for each in (path, f"{path}-wal", f"{path}-shm"):
        os.unlink(each)


def replaced(path: str) -> None:
    """By a whole copy of itself, as somebody does who puts a backup back."""
    copy = f"{path}.copy"
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    os.replace(copy, path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("gone", [deleted, replaced])
@pytest.mark.parametrize(
    "what", ["exact sqlite", "at-least-once sqlite", "transactional sqlite"] if SOAK else ["exact sqlite"]
)
def test_a_file_that_goes_away_under_a_topology_ends_it(what, gone, seed, place_of):
    place = place_of(what, size=15)
    life = place.begin()
    wait_for(place.counts, "it has counted some")
    gone(place.files[0])
    assert life.end() in BROKEN_OFF, life.said
    assert place.files[0] in life.said


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_that_is_set_back_keeps_no_tuple_from_being_acked(seed, place_of):
    """Once 289 of 3,000 were: what was in memory had been committed by a clock that was ahead."""
    place = place_of("at-least-once memory", size=10)
    killed = [("$checkpointspout-0", step, 3, "SIGKILL") for step in ("PREPARE emit", "COMMIT emitted")]
    life = place.begin(*killed, env={"PYTHONPATH": str(CLOCK), "CLOCK": str(place.folder / "clock")})
    life.ends_well()
    assert "0 pending, 0 lost" in life.said
