"""The programs that the benchmarks run still run, and count right: each once, with little to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patient

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "command",
    [
        "cluster/embedded.py inprocess 100",
        "cluster/embedded.py process 100",
        "state/counting.py inprocess none 100",
        "state/counting.py inprocess memory 100 0",
        "state/counting.py inprocess sqlite 100 0",
        "state/counting.py process sqlite 100 0",
        "transactional/counting.py inprocess 100",
        "transactional/counting.py inprocess 100 50 2",
    ],
)
def test_a_count_is_right(command):
    (said,) = said_by(command)
    assert said["right"]
    assert said["wall"] > 0 < said["cpu"]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_checkpoints_of_states_of_several_sizes_are_timed(store):
    assert [each["size"] for each in said_by(f"state/checkpoints.py {store} 1 1000 2000")] == [1000, 2000]


def test_requests_of_reach_are_answered_and_timed():
    assert [each["at once"] for each in said_by("drpc/reach.py 20 2 4")] == [2, 4]


def said_by(command):
    script, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
