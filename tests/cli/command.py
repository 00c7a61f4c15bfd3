"""Runs the command as its user does: as a program."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.patience import patient
from tests.soak import SOAK

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "multilang"
TOPOLOGIES = Path(__file__).parent / "topologies.py"
LIMIT = patient(170)  # seconds: for a machine that is busy with other tests
# A process that is measured, or whose interpreter has other settings, is not forked, and none is in the soak.
_PROGRAM = SOAK or sys.platform != "linux" or any(name.startswith("COVERAGE_PROCESS") for name in os.environ)


def multilang(
    *arguments: object, cwd: Path = ROOT, limit: float = LIMIT, **env: str
) -> subprocess.CompletedProcess[str]:
    """The command's output and status, with its output going to pipes."""
    words = [*map(str, arguments)]
    if not _PROGRAM and not any(name.startswith("PYTHON") for name in env):
        return _loaded().run(words, cwd, limit, {**os.environ, **env})
    return subprocess.run(
        [COMMAND, *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=limit,
        cwd=cwd,
        env={**os.environ, **env},
    )


class Loaded:
    """The process of ``forked.py``, which ends with this one."""

    def __init__(self) -> None:
        self._end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: text for name, text in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked.py"), str(other.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[other.fileno()],
            env=environment,
        )
        other.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._end.close()
        self._process.wait()

    def run(
        self, words: list[str], folder: Path, limit: float, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run one command line. Raise subprocess.TimeoutExpired after ``limit`` seconds."""
        request = {"arguments": words, "folder": str(folder), "environment": environment}
        with open(os.devnull, "rb") as nothing:
            pipes = [os.pipe() for _ in range(2)]
            ends = [nothing.fileno(), *(write for _, write in pipes)]
            socket.send_fds(self._end, [json.dumps(request).encode()], ends)
        for _, write in pipes:
            os.close(write)
        pid = int(self._end.recv(64))
        ended = threading.Timer(limit, os.kill, (pid, signal.SIGKILL))
        ended.start()
        texts = [b"", b""]
        readers = [threading.Thread(target=_read, args=(read, texts, at)) for at, (read, _) in enumerate(pipes)]
        for reader in readers:
            reader.start()
        status = int(self._end.recv(64))
        in_time = ended.is_alive()
        ended.cancel()
        for reader in readers:
            reader.join()
        if not in_time:
            raise subprocess.TimeoutExpired(words, limit)
        shown = [text.decode().replace("\r\n", "\n") for text in texts]
        return subprocess.CompletedProcess([str(COMMAND), *words], status, *shown)


_own = threading.local()


def _loaded() -> Loaded:
    """Return this thread's process: what threads run at the same time runs at the same time."""
    if not hasattr(_own, "loaded"):
        _own.loaded = Loaded()
    loaded: Loaded = _own.loaded
    return loaded


def _read(fd: int, texts: list[bytes], at: int) -> None:
    with open(fd, "rb") as pipe:
        texts[at] = pipe.read()


def figures(*arguments: object, **env: str) -> dict[str, Any]:
    """The JSON document of a run of one of the topologies beside this file; its status is in it."""
    shown = multilang("run", *arguments, "--json", **env)
    assert shown.stdout.startswith("{"), shown.stderr
    document: dict[str, Any] = json.loads(shown.stdout)
    assert document["status"] == shown.returncode
    return document


def topology(name: str) -> str:
    """Return the argument for one of the topologies beside this file."""
    return f"{TOPOLOGIES}:{name}"
