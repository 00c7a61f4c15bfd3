"""A Spark cluster of two machines, which are two addresses of this one: what is done twice there is counted once."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import patient
from tests.soak import combined, soak_only
from tests.spark.job.cluster_driver import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
SUMS = {f"k{k}": sum(n for _, n in ROWS if n % 7 == k) for k in range(7)}
START_SECS = patient(120.0)
# What happens, and whether it does in the first of two bolts.
RUNS = combined(["SlowOnce", "LosesItsMachine"], [True, False])


def spark_class(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__path__[0])
    # The machines find nothing of this folder by themselves: the drivers say what their executors' Python needs.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(log.parent)}
    env |= {"SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as file:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments], env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )


def said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Return what a started process says in its log, within a time limit."""
    end = time.monotonic() + START_SECS
    while time.monotonic() < end and process.poll() is None:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{process.args}: {log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def master(spark_programs: None, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as processes:

        def started(name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
            log = tmp_path / f"{name}.log"
            process = spark_class(log, *arguments)
            processes.callback(process.wait, 60)
            processes.callback(process.terminate)
            return process, log

        master, log = started(
            "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        url = said(master, log, r"Starting Spark master at (spark://\S+)")
        for host in ("127.0.0.2", "127.0.0.3"):
            worker, log = started(
                host, "org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0", "--cores", "1",
                "--memory", "700m", "--work-dir", str(tmp_path / "work"), url,
            )  # fmt: skip
            said(worker, log, r"(registered with master)")
        yield url


def is_loopback(host: str) -> bool:
    try:
        socket.create_server((host, 0)).close()
    except OSError:
        return False
    return True


@soak_only
@pytest.mark.skipif(not is_loopback("127.0.0.2"), reason="127.0.0.2 is no address of this machine (macOS)")
def test_speculative_attempts_and_lost_machines_never_double_an_ack(master: str, tmp_path: Path) -> None:
    folder = tmp_path / "driver"
    folder.mkdir()
    driver = subprocess.run(
        [sys.executable, "-m", "tests.spark.job.cluster_driver", master, str(ROOT), str(folder), json.dumps(RUNS)],
        cwd=ROOT, capture_output=True, text=True, timeout=patient(500),
    )  # fmt: skip
    assert driver.returncode == 0, driver.stderr[-3000:]
    runs: list[dict[str, Any]] = [json.loads(line) for line in driver.stdout.splitlines()]
    assert [(run["bolt"], run["first"]) for run in runs] == RUNS
    for run in runs:
        assert run["marks"] == ["attempt-1", "attempt-2"], run  # it was run twice
        assert (run["acked"], run["lost"], run["rounds"]) == (1000, 0, 1)
        if run["first"]:
            assert {key: (total, count) for key, total, count in run["rows"]} == {
                key: (total, sum(each == key for each, _ in ROWS)) for key, total in SUMS.items()
            }
            assert run["counters"]["trouble"] == [1000, 1000]
        else:
            assert sorted(map(tuple, run["rows"])) == sorted([*ROWS, *SUMS.items()])
            assert run["counters"]["trouble"] == [1007, 1007]
