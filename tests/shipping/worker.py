"""A Storm worker's part in starting a shipped component: it starts the command in a folder and speaks the protocol."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

from multilang.protocol import ParentConnection
from multilang.protocol.messages import Ack, Emit, Log
from tests.patience import patient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from multilang.topology import Topology

LIMIT = patient(60)  # seconds for a process on a busy machine
BARE_PYTHON = getattr(sys, "_base_executable", sys.executable)  # without what is installed in the tests' environment


def bare_environment() -> dict[str, str]:
    """A worker's: nothing of ours in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}


def unpack_jar(jar: bytes, folder: Path) -> Path:
    """As the supervisor does: resources/ without modes; its path."""
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        archive.extractall(folder)
    return folder / "resources"


def run_bolt(
    command: Sequence[str],
    cwd: Path,
    topology: Topology,
    component: str,
    values: list[Any],
    conf: Mapping[str, Any] | None = None,
) -> tuple[list[list[Any]], list[str]]:
    """Give one tuple to a task of ``component``; what it emitted, and what it logged. Fails if it is not acked."""
    assignment = topology.task_ids(ackers=1)
    task = next(id for id, owner in assignment.items() if owner == component)
    source = topology[component].inputs[0]
    parent = ParentConnection("bolt")
    pids = cwd / "pids"
    pids.mkdir(exist_ok=True)
    parent.setup({"topology.name": topology.name, **(conf or {})}, str(pids), topology.context_for(task, assignment))
    parent.tuple("1", source.component, source.stream, 99, values)
    process = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=bare_environment()
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(parent.data_to_send())
        process.stdin.flush()
        said: list[Any] = []
        while not any(isinstance(message, Ack) for message in said):
            data = process.stdout.read1(65536)  # type: ignore[attr-defined]
            if not data:
                _, errors = process.communicate(timeout=LIMIT)
                raise AssertionError(f"the component ended: {said} {errors.decode()}")
            said += parent.receive_data(data)
            for _ in range(sum(isinstance(message, Emit) and message.need_task_ids for message in said)):
                raise AssertionError("a tuple's emit asked for task ids")
        process.stdin.close()
        process.stdin = None
        process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait()
    return [list(m.values) for m in said if isinstance(m, Emit)], [m.message for m in said if isinstance(m, Log)]


def start_failure(command: Sequence[str], cwd: Path) -> str:
    """Return what a component that can't start says on standard error, which Storm puts into its log."""
    shown = subprocess.run(
        command,
        cwd=cwd,
        input="",
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=bare_environment(),
    )
    assert shown.returncode != 0
    assert shown.stdout == ""
    return shown.stderr
