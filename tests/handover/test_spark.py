"""A Spark job that is stopped while it saves its states, and wakes when a topology has taken them over, saves nothing."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.handover.lives import Life
from tests.handover.spark_job import ROWS
from tests.soak import SOAK, soak_only
from tests.spark.conftest import spark_programs  # noqa: F401  # a fixture
from tests.state.topologies import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.handover.places import States

STEPS = [("count-1", "COMMIT write")]
if SOAK:
    STEPS += [
        (who, f"{action} write") for who in ("count-0", "count-1", "lengths-0") for action in ("PREPARE", "COMMIT")
    ] + [("$checkpointspout-0", f"{state} write") for state in ("PREPARING", "COMMITTING", "COMMITTED")]


@soak_only
@pytest.mark.usefixtures("spark_programs")
@pytest.mark.parametrize(("who", "step"), STEPS)
@pytest.mark.parametrize("store", ["sqlite", "redis"] if SOAK else ["redis"])
def test_a_job_that_wakes_in_its_save_changes_nothing(
    store: str, who: str, step: str, place_of: Callable[..., States]
) -> None:
    place = place_of(f"at-least-once {store}")
    kept = ("topology.state.provider", "topology.state.provider.config", "multilang.trace", "topology.name")
    conf = json.dumps({key: place.conf[key] for key in kept})
    folder = place.folder / "job"
    command = [sys.executable, "-m", "tests.handover.spark_job", conf, str(folder)]
    env = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    job = Life(command, folder, [(who, step, 1, "SIGSTOP")], env)
    place.lives.append(job)
    job.is_stopped()
    place.begin().ends_well()
    counts = place.counts()
    job.wake()
    assert job.end() != 0, job.said
    assert "was taken over" in job.said, job.said
    assert place.counts() == counts
    of_topology = words_of(place.sentences)
    is_committed = step.startswith("COMMIT ") or step == "COMMITTED write"  # so that who takes over commits it
    due = of_topology + words_of(ROWS) if is_committed else of_topology
    assert not due - counts
