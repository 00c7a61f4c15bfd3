"""All processes that a program started, also those that left its process group, found by a mark that they inherit.

The mark is a variable in the program's environment. Linux shows each process's environment in /proc; elsewhere only the
group can be found. A process that was started with an empty environment is not found either.
"""

from __future__ import annotations

import os
import signal
from uuid import uuid4

_PROC = "/proc"
_ROUNDS = 100  # rounds of search and kill, because a process may start another one during a search


def new_mark() -> str:
    """Return a variable's name that nothing else has."""
    return f"MULTILANG_CONFORMANCE_{uuid4().hex}"


def kill_marked(mark: str) -> None:
    """End every process whose environment has the mark."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        found = _marked(mark.encode() + b"=") - killed
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it ended by itself, or the number belongs to another user's process now
        killed |= found


def marked(mark: str) -> set[int] | None:
    """Return the running processes whose environment has the mark, or None where that can't be seen."""
    return _marked(mark.encode() + b"=") if os.path.isdir(f"{_PROC}/self") else None


def is_marked(pid: int, mark: str) -> bool:
    """Return whether this process has the mark; False where that can't be seen."""
    return mark.encode() in _environment(str(pid))


def _marked(mark: bytes) -> set[int]:
    try:
        names = os.listdir(_PROC)
    except OSError:
        return set()  # this is not Linux
    return {int(name) for name in names if name.isdigit() and mark in _environment(name)}


def _environment(pid: str) -> bytes:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or belongs to another user
