"""kill -9 at every named step of a batch's commit: every batch counts once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_driver_killed_at_every_step_of_a_commit_counts_each_batch_once(durable) -> None:
    command = [sys.executable, "-m", "tests.spark.stream.killed_saves", json.dumps(durable)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)
    names = [f"{task}|{phase} {step}" for task in ("count-0", "count-1", "lengths-0") for phase in ("PREPARE", "COMMIT") for step in ("write", "synced")]  # fmt: skip
    names += [f"$checkpointspout-0|{state} write" for state in ("PREPARING", "COMMITTING", "COMMITTED")]
    assert set(names) <= set(steps)
