"""Runs spark/job.py in a Python that has Spark, and turns its output into figures."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from . import environment

if TYPE_CHECKING:
    from .driver import Child

SCRIPT = environment.HERE / "spark" / "job.py"
BY_HAND = {"by_key": "reduceByKey", "by_partition": "mapPartitions"}
OURS = ("totals", "running", "kept")


def runs(ours: Child, what: str, rounds: int, *sizes: int) -> list[dict[str, float | str | bool]]:
    """Return the output of each run: its work, sentences, wall and CPU seconds.

    Raises environment.Missing without Spark.
    """
    python = environment.spark_python()
    command = [str(python), str(SCRIPT), what, str(rounds), *map(str, sizes)]
    path = {"PYTHONPATH": str(Path(ours.python_path))}
    done = subprocess.run(
        command, env={**ours.environment(), **path}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise environment.Missing(f"Spark: {' '.join(command)} failed: {done.stderr.strip()[-1500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def growth(said: list[dict[str, float]]) -> tuple[float, float]:
    """Return the greatest over the least cost of a further sentence, and the same of the driver's memory."""
    said = sorted(said, key=lambda each: each["sentences"])
    costs = [(b["wall"] - a["wall"]) / (b["sentences"] - a["sentences"]) for a, b in pairwise(said)]
    memory = [each["driver_mib"] + each["heap_mib"] for each in said]
    return max(costs) / min(costs), max(memory) / min(memory)
