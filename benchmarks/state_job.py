"""Runs the programs in `state/`: word count with state and without, and checkpoints by the size of the state."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import environment
from .driver import Child

FOLDER = environment.HERE / "state"
STORES = ("none", "memory", "sqlite", "redis")


def word_count(ours: Child, python: str, mode: str, store: str, sentences: int, redis: int) -> dict[str, Any]:
    """Return wall and CPU seconds, and whether the counts are right."""
    return _run(ours, [python, str(FOLDER / "counting.py"), mode, store, str(sentences), str(redis)])[-1]


def checkpoints(ours: Child, python: str, store: str, sizes: tuple[int, ...], redis: int) -> dict[int, float]:
    """Return the milliseconds of a checkpoint of 1000 changed keys, by the number of stored keys."""
    command = [python, str(FOLDER / "checkpoints.py"), store, "1", *map(str, sizes), "--redis", str(redis)]
    return {each["size"]: each["ms"] for each in _run(ours, command)}


@contextmanager
def redis_server() -> Iterator[int | None]:
    """Yield the port of a Redis that writes everything to the disk, or None without redis-server."""
    if shutil.which("redis-server") is None:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="multilang-bench-redis-") as folder:
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        process = subprocess.Popen(
            [*command, "--appendonly", "yes"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield port
        finally:
            process.kill()
            process.wait()


def flush(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        connection.recv(64)


def _run(ours: Child, command: list[str]) -> list[dict[str, Any]]:
    # In another folder, because `python -m` searches the current one first, and another checkout may be measured.
    done = subprocess.run(
        command,
        env=ours.environment(),
        cwd=ours.python_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise environment.Missing(f"state: {' '.join(command[1:])} failed: {done.stderr.strip()[-1500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
