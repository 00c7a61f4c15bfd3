"""Drivers of queries in processes of their own, which are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random
    from typing import Any

ROOT = Path(__file__).parents[3]


def settings_of(folder: str) -> dict[str, str]:
    """Spark's properties of a driver that leaves nothing outside its folder."""
    return {
        "spark.driver.memory": "768m",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }


def driver(module: str, folder: Path, conf: dict[str, Any], **environment: str) -> subprocess.Popen[str]:
    """``python -m tests.spark.stream.MODULE FOLDER CONF``, begun."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.spark.stream.{module}", str(folder), json.dumps(conf)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], secs: float = 300) -> tuple[str, str]:
    """Return what it said, when it ends within so many seconds; no process that it started is left."""
    try:
        return process.communicate(timeout=secs)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def killed_at_random(process: subprocess.Popen[str], folder: Path, chance: Random, at_work: bool) -> bool:
    """Kill it soon after it began a new batch or, unless ``at_work``, at any moment, and return whether it was killed.

    It may have ended before.
    """
    begun = _batches(folder)
    while at_work and process.poll() is None and _batches(folder) == begun:
        time.sleep(0.05)
    time.sleep(chance.uniform(0, 3 if at_work else 12))
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    end(process)
    return running


def _batches(folder: Path) -> int:
    """Return how many batches Spark has stored."""
    return sum(name.name.isdecimal() for name in (folder / "checkpoint" / "offsets").glob("*"))
