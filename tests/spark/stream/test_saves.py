"""kill -9 at every named step of a batch's commit: every batch counts once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spark_bridge.job import SparkJobError
from spark_bridge.job.states import States
from tests.state.topologies import topology

ROOT = Path(__file__).parents[3]


def test_a_driver_killed_at_every_step_of_a_commit_counts_each_batch_once(durable) -> None:
    command = [sys.executable, "-m", "tests.spark.stream.killed_saves", json.dumps(durable)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)
    names = [f"{task}|{phase} {step}" for task in ("count-0", "count-1", "lengths-0") for phase in ("PREPARE", "COMMIT") for step in ("write", "synced")]  # fmt: skip
    names += [f"$checkpointspout-0|{state} write" for state in ("PREPARING", "COMMITTING", "COMMITTED")]
    assert set(names) <= set(steps)


def test_what_is_based_on_states_that_somebody_changed_is_not_saved(durable) -> None:
    first, second = States(topology, durable), States(topology, durable)  # one session may have two queries
    assert (first.begin("one", 0), second.begin("two", 0)) == (0, 0)
    first.save({"count-0": [(b'"moon"', b"1")]}, "one", 0)
    with pytest.raises(SparkJobError, match=r"was changed by another topology, query or job meanwhile"):
        second.save({"count-0": [(b'"moon"', b"1")]}, "two", 0)
    first.save({"count-0": [(b'"moon"', b"2")]}, "one", 1)
    second.close()
    first.close()
    now = States(topology, durable)
    assert (dict(now.items("count")), now.begin("one", 1), now.begin("two", 0)) == ({"moon": 2}, None, 2)
    now.close()


def test_of_two_that_save_at_once_one_does(durable) -> None:
    for turn in range(10):
        both = [States(topology, durable) for _ in range(2)]
        together = threading.Barrier(2)

        def save(number: int, turn: int = turn, both: list[States] = both, together: Any = together) -> bool:
            query = f"{turn} {number}"
            assert both[number].begin(query, 0) == turn
            together.wait()
            try:
                both[number].save({"count-0": [(b'"moon"', b"%d" % (2 * turn + number))]}, query, 0)
            except SparkJobError:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            saved = [*pool.map(save, range(2))]
        assert sorted(saved) == [False, True]
        for each in both:
            each.close()
        now = States(topology, durable)
        assert (dict(now.items("count")), now.txid) == ({"moon": 2 * turn + saved.index(True)}, turn)
        now.close()
