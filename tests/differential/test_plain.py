"""Engines give what plain Python works out: of unanchored, refused and aliased tuples, skewed sources and names that a script rebinds.

Spark and Storm are tested in tests/spark/job/test_differential.py and tests/storm/test_differential.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from tests.differential import plain
from tests.patience import patient
from tests.soak import SOAK
from tests.streams import skewed

ROOT = Path(__file__).parents[2]
STEP = st.tuples(st.integers(1, 2), st.booleans(), st.booleans())
SHAPES = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 12),
        "tasks": st.integers(1, 2),
        "reliable": st.booleans(),
        "steps": st.lists(STEP, max_size=3),
    }
)


def check(shape: dict[str, Any], mode: Any, seed: int = 0) -> None:
    with TemporaryDirectory() as folder:
        with LocalCluster(mode, seed=seed) as cluster:
            run = cluster.submit(plain.built(shape, f"{folder}/record"))
            run.wait(timeout=patient(60))
            assert not run.errors
        assert plain.written(f"{folder}/record") == 2 * [plain.worked_out(shape)]


@settings(max_examples=300 if SOAK else 15, deadline=None)
@given(SHAPES, st.integers(0, 99))
def test_simulated(shape: dict[str, Any], seed: int) -> None:
    check(shape, "simulated", seed)


@settings(max_examples=100 if SOAK else 8, deadline=None)
@given(SHAPES)
def test_in_process(shape: dict[str, Any]) -> None:
    check(shape, "inprocess")


@pytest.mark.parametrize("reliable", [True, False])
def test_with_processes(reliable: bool) -> None:
    check({"rows": 12, "tasks": 1, "reliable": reliable, "steps": [(2, True, True), (1, False, True)]}, "process")


def test_in_process_no_window_loses_what_a_slower_source_task_brings() -> None:
    shape = {
        "sources": [(2, 0.05, 0.005, 0), (1, 0.2, 0.0, 2)],
        "steps": [("fold", 2)],
        "together": [("unordered", 1), ("repartition", 2)],
        "tasks": 2,
        "window": "session",
    }
    wanted = skewed.worked_out(shape)
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(skewed.built(shape), capture=["end", "lates"])
        run.wait(lambda run: skewed.seen(run.captured("end")).total() >= wanted.total(), timeout=patient(60))
        assert not run.captured("lates")
        assert skewed.seen(run.captured("end")) == wanted
        assert not run.errors


REBOUND = {
    "": "pass",
    "the argument 'by' of Times": "by = 1000; topology = build(by)",
    "what 'FACTOR' is in rebound": "FACTOR = 1000",
    "the attribute 'plus' of the class Times": "Times.plus = 1000",
}


@pytest.mark.parametrize(("part", "then"), REBOUND.items(), ids=REBOUND)
def test_what_a_script_binds_again_is_what_runs_or_is_refused_by_name(tmp_path: Path, part: str, then: str) -> None:
    file = tmp_path / "rebound.py"
    file.write_text(plain.REBOUND_SCRIPT.format(then=then))
    shown = subprocess.run([sys.executable, file], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    simulated, in_process, with_processes = shown.stdout.splitlines()
    assert (simulated, in_process) == ("right", "right")
    assert with_processes == "right" if not part else f"{part} differs" in with_processes
