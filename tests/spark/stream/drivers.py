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


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it said; nothing that it started is left."""
    try:
        return process.communicate(timeout=300)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def killed_at_random(process: subprocess.Popen[str], folder: Path, chance: Random) -> bool:
    """Whether it was killed, some seconds after its query's first batch began; it may have come to its end before."""
    started = time.monotonic()
    while process.poll() is None and not (folder / "checkpoint" / "offsets" / "0").exists():
        time.sleep(0.05)
    if time.monotonic() - started < 60:
        time.sleep(chance.uniform(0, 12))
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    end(process)
    return running
