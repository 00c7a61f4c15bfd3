"""Processes that are forked from one that has loaded what every component needs."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ForkedProcess:
    """A process of ``forked.py``'s, with the calls of subprocess.Popen that the tests use."""

    def __init__(self, target: str, folder: Path, environment: Mapping[str, str]) -> None:
        given, self._status = _server().start(target, folder, environment)
        self.args = ["multilang.component", target]
        self.pid, stdin, stdout, stderr = given
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb", 0)
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb", 0)
        self.stderr: IO[bytes] = os.fdopen(stderr, "rb", 0)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass  # it has ended meanwhile

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, limit: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], limit)[0]:
            self.returncode = int(os.read(self._status, 16))
            os.close(self._status)
        return self.returncode


class _Server:
    def __init__(self) -> None:
        self._end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked.py"), str(other.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[other.fileno()],
            env={**without_settings(), "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        other.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._end.close()
        self._process.wait()

    def start(self, target: str, folder: Path, environment: Mapping[str, str]) -> tuple[tuple[int, int, int, int], int]:
        """Return the process's number and our ends of its streams, and where its status will be."""
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr), (status, told) = (os.pipe() for _ in range(4))
        request = {"target": target, "folder": str(folder), "environment": dict(environment)}
        socket.send_fds(self._end, [json.dumps(request).encode()], [stdin, stdout, stderr, told])
        for fd in (stdin, stdout, stderr, told):
            os.close(fd)
        return (int(self._end.recv(64)), to_stdin, from_stdout, from_stderr), status


@cache
def _server() -> _Server:
    return _Server()


def without_settings() -> dict[str, str]:
    """Return this process's environment without its interpreter's settings, which must not decide how a child behaves."""
    return {
        name: text for name, text in os.environ.items() if not name.startswith("PYTHON") or name == "PYTHONHASHSEED"
    }
