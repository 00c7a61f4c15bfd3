"""All processes that a program started, also those that left its process group, found by marks that they inherit.

One mark is a variable in the program's environment. The other is a limit that means nothing any more, that of file locks: a
process has it also when it was started with an empty environment, and when it has ended and nobody has waited for it. Linux
shows each process's environment and limits in /proc; elsewhere only the group can be found.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

_PROC = "/proc"
_ROUNDS = 100  # rounds of search and kill, because a process may start another one during a search
_LOCKS = 10  # RLIMIT_LOCKS, which Linux has not heeded since 2.4, and which Python's module has no name for
_STARTING = threading.Lock()  # while the limit of this process is the mark of one program


class Mark:
    """The marks of one program and of all that it starts.

    Attributes:
        variable: A variable's name that nothing else has, for the program's environment.
    """

    def __init__(self) -> None:
        """Make a mark that nothing else has."""
        self.variable = f"MULTILANG_CONFORMANCE_{uuid4().hex}"
        self._limit = b""

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Mark by its limit, too, what is started meanwhile, where the system can."""
        if sys.platform != "linux":
            yield
            return
        with _STARTING:
            soft, hard = resource.getrlimit(_LOCKS)
            marked = random.randrange(1 << 32, 1 << 62)
            try:
                resource.setrlimit(_LOCKS, (marked, hard))
            except (OSError, ValueError):
                yield  # an administrator has given it a maximum
                return
            self._limit = f"{'Max file locks':25} {marked:<20} ".encode()
            try:
                yield
            finally:
                resource.setrlimit(_LOCKS, (soft, hard))

    def has(self, pid: int) -> bool:
        """Return whether this process has the mark; False where that can't be seen.

        Args:
            pid: The process.
        """
        if self.variable.encode() in _read(pid, "environ"):
            return True
        return bool(self._limit) and self._limit in _read(pid, "limits")

    def processes(self) -> set[int] | None:
        """Return the processes that have the mark, also ended ones, or None where that can't be seen."""
        try:
            names = os.listdir(_PROC)
        except OSError:
            return None  # this is not Linux
        return {int(name) for name in names if name.isdigit() and self.has(int(name))}

    def kill(self) -> None:
        """End every process that has the mark."""
        killed: set[int] = set()
        for _ in range(_ROUNDS):
            found = {pid for pid in (self.processes() or ()) if pid not in killed and not is_ended(pid)}
            if not found:
                return
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass  # it ended by itself, or the number belongs to another user's process now
            killed |= found


def is_ended(pid: int) -> bool:
    """Return whether a process has ended, and its parent has not asked for its status yet.

    Args:
        pid: The process.
    """
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] == [b"Z"]


def held(pid: int) -> Counter[str]:
    """Return the number of things that a process holds, by their names.

    Args:
        pid: The process.
    """
    if is_ended(pid):
        return Counter({"ended processes that it did not wait for": 1})
    return Counter({"processes": 1, "threads": _count(pid, "task"), "open files": _count(pid, "fd")})


def _count(pid: int, folder: str) -> int:
    try:
        return len(os.listdir(f"{_PROC}/{pid}/{folder}"))
    except OSError:
        return 0  # it has ended, or belongs to another user


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"{_PROC}/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or belongs to another user
