"""Ctrl-C, SIGTERM and a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, LIMIT, ROOT, topology
from tests.soak import combined


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the command as the leader of a process group of its own, as a shell does."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [COMMAND, "run", *arguments, "-c", f"test.folder={tmp_path}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def children(folder: Path) -> list[int]:
    """The processes of the bolt that WritesItsPid; waits for the first."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        pids = [int(path.name) for path in folder.iterdir()]
        if pids:
            return pids
        time.sleep(0.02)
    raise AssertionError("no component started")


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("mode", "number"), combined(["process", "inprocess", "simulated"], [signal.SIGINT, signal.SIGTERM])
)
def test_a_signal_ends_the_run_with_its_figures_and_leaves_no_process(start, tmp_path, mode, number) -> None:
    process = start(topology("endless"), "--mode", mode)
    pids = [pid for pid in children(tmp_path) if pid != process.pid]
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number
    assert re.search(r"before everything was processed:\n  - spout 'numbers' \(task \d+\): ", stdout)
    assert re.search(r"^numbers +spout", stdout, re.M)
    assert "Traceback" not in stderr
    assert all(ended(pid) for pid in pids)
    assert bool(pids) == (mode == "process")


def test_ctrl_c_at_a_terminal_reaches_the_components_too_and_still_ends_cleanly(start, tmp_path) -> None:
    process = start(topology("endless"))
    pids = children(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "0 restarts, 0 errors" in stdout
    assert all(ended(pid) for pid in pids)


def test_components_end_when_the_command_is_killed(start, tmp_path) -> None:
    process = start(topology("endless"))
    pids = children(tmp_path)
    process.kill()
    process.communicate(timeout=LIMIT)
    deadline = time.monotonic() + LIMIT
    while not all(ended(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(ended(pid) for pid in pids)


def test_a_terminal_sees_the_table_change_while_it_runs() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "run", topology("slow"), "--mode", "inprocess", "--for", "2"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and select.select([ours], [], [], LIMIT)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # as Linux reports that the other end was closed
            break
        seen += piece
    os.close(ours)
    assert process.wait(LIMIT) == 0
    text = seen.decode()
    assert "\x1b[" in text  # redrawn in place
    assert text.count("small (inprocess)") >= 3
    assert "Ctrl-C ends it" in text
    assert re.search(r"[0-9]+ tuples acked in 2\.", text)


def test_prometheus_reads_the_status_while_the_topology_runs(start: Callable[..., subprocess.Popen[str]]) -> None:
    pytest.importorskip("prometheus_client")
    run = start(topology("endless"), "--prometheus", "0")
    assert run.stderr is not None
    line = run.stderr.readline()
    assert line.startswith("Prometheus metrics on http://127.0.0.1:"), line
    url = line.split()[-1]
    acked = re.compile(
        r'^multilang_task_acked_total\{component="numbers",kind="spout",task="\d+",topology="\w+"\} (\S+)$', re.M
    )
    seen: list[float] = []
    deadline = time.monotonic() + LIMIT
    while len(seen) < 2:  # it grows
        assert time.monotonic() < deadline
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = acked.search(answer.read().decode())
        if found and float(found[1]) > (seen[-1] if seen else 0):
            seen.append(float(found[1]))
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT)
    assert run.returncode == 130
