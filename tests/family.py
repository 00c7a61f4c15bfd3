"""The processes of a run of the tests: all that it starts, and all that these leave behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux's prctl
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Relative:
    """A process below this one."""

    pid: int
    parent: int
    state: str
    secs: float  # since its start
    command: str

    def __str__(self) -> str:
        return f"{self.pid} (of {self.parent}, {self.state}, {self.secs:.0f} s): {self.command[:300]}"


class Family:
    """The processes below this one. On Linux those are among them whose parents ended, which would else be lost from sight.

    It waits for every process that ends, so that none stays a zombie: use ``start`` and ``wait`` for all of them.
    """

    def __init__(self) -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self.statuses: dict[int, int] = {}
        self.beside: set[int] = set()  # what is no part of the run
        self.ended, wake = os.pipe()  # readable when a process has ended
        for end in (self.ended, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)

    def start(self, command: Sequence[str | Path], *, beside: bool = False, **how: Any) -> subprocess.Popen[bytes]:
        """Start a process. ``beside``: it and what it starts are no part of what ``relatives`` and ``end`` see."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **how)
        if beside:
            self.beside.add(process.pid)
        return process

    def reap(self) -> None:
        """Take note of every process that has ended."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.ended, 4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self.statuses[found[0]] = os.waitstatus_to_exitcode(found[1])

    def status(self, process: subprocess.Popen[bytes]) -> int | None:
        """Return a process's exit status, None while it runs."""
        self.reap()
        if process.returncode is None and process.pid in self.statuses:
            process.returncode = self.statuses[process.pid]
        return process.returncode

    def lines(self, process: subprocess.Popen[bytes], secs: float) -> Iterator[bytes | None]:
        """Yield what a process writes, by the line, until it ends, and None at least every ``secs`` seconds."""
        output: IO[bytes] | None = process.stdout
        assert output is not None
        os.set_blocking(output.fileno(), False)
        unfinished = b""
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.ended, selectors.EVENT_READ)
            while True:
                # What it leaves behind may keep the pipe open: its own end counts.
                over = self.status(process) is not None
                ready = {key.fileobj for key, _ in selector.select(0 if over else secs)}
                chunk = (output.read(1 << 16) or b"") if output in ready else b""
                if output in ready and not chunk:
                    selector.unregister(output)
                *whole, unfinished = (unfinished + chunk).split(b"\n")
                yield from whole
                if over and not chunk:
                    break
                yield None
        if unfinished:
            yield unfinished

    def wait(self, process: subprocess.Popen[bytes], secs: float = float("inf")) -> int | None:
        """Return a process's exit status; None if it still runs after ``secs`` seconds."""
        deadline = time.monotonic() + secs
        while (status := self.status(process)) is None and time.monotonic() < deadline:
            select_for(self.ended)
        return status

    def relatives(self) -> list[Relative]:
        """Return the processes below this one, parents first. Only Linux shows them."""
        every = {each.pid: each for each in map(_relative, filter(str.isdigit, _listed("/proc"))) if each is not None}
        below = {os.getpid()}
        while more := {pid for pid, each in every.items() if each.parent in below} - below - self.beside:
            below |= more
        return sorted((every[pid] for pid in below - {os.getpid()}), key=lambda each: (-each.secs, each.pid))

    def end(self) -> list[Relative]:
        """End all processes below this one, and return them."""
        ended: dict[int, Relative] = {}
        self.reap()
        while left := [each for each in self.relatives() if each.state != "Z"]:
            for each in left:
                ended.setdefault(each.pid, each)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
            time.sleep(0.01)
            self.reap()
        return list(ended.values())


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")


def select_for(descriptor: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        selector.select(1)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _relative(pid: str) -> Relative | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:  # it has ended
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICK
    return Relative(int(pid), int(fields[1]), fields[0], age, command)
