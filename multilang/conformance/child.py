"""The program under test as a process: bytes in, bytes out, and no call that blocks.

A program under test may do anything: never read, never stop writing, close its output and keep running, ignore SIGTERM,
leave processes behind. So one poll loop with bounded buffers moves the bytes of both pipes, and at the end SIGKILL is
sent to its whole process group, and to every process that left the group.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
from collections import Counter, deque
from time import monotonic
from typing import TYPE_CHECKING

from multilang.conformance.descendants import Mark, held, is_ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_READ = 1 << 16
MAX_OUTPUT = 48 << 20  # bytes of unread output, or of one message; a program with more is out of control
_MAX_ERROR = 1 << 14  # number of its last bytes on standard error that are stored
_LOOK = 0.0005  # seconds between two checks whether the program has read a piece


class CannotStart(Exception):
    """The program can't be started; the text has the reason."""


def _environment() -> dict[str, str]:
    """Return the variables of this process, but for the one that flushes each write of a Python program.

    Images of containers set it. A supervisor does not, and there a message that the program does not flush never comes.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


class StartedProgram:
    """A started program in a process group of its own."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None) -> None:
        self._mark = Mark()
        try:
            with self._mark.limits():
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                    cwd=cwd,
                    env={**_environment(), **(env or {}), self._mark.variable: "1"},
                )
        except (OSError, ValueError) as error:
            raise CannotStart(f"{command[0]}: {getattr(error, 'strerror', None) or error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pid = self._process.pid
        self._stdin: int | None = self._process.stdin.fileno()
        self._stdout: int | None = self._process.stdout.fileno()
        self._stderr: int | None = self._process.stderr.fileno()
        for fd in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(fd, False)
        self._outgoing: deque[tuple[bytes, bool]] = deque()
        self.unsent = 0  # the number of bytes that are still queued
        self.unread = bytearray()  # output that was not taken yet
        self.reading = True  # False: its output is left in the pipe
        self.reading_error = True  # the same for its standard error
        self.output_ended = False
        self.flooded = False
        self.error_text = b""
        self._status: int | None = None
        self._is_reaped = False

    # ---- what goes in ----

    def write(self, data: bytes) -> None:
        """Queue bytes for its input."""
        self._outgoing.append((data, False))
        self.unsent += len(data)

    def write_pieces(self, pieces: Iterable[bytes]) -> None:
        """Queue pieces, each of which is written when the program has read everything before it."""
        for piece in filter(None, pieces):
            self._outgoing.append((piece, True))
            self.unsent += len(piece)

    def close_input(self) -> None:
        """Close its input."""
        self._drop()
        if self._stdin is not None:
            self._stdin = None
            assert self._process.stdin is not None
            self._process.stdin.close()

    def close_output(self) -> None:
        """Stop reading for good: from now on its writes meet a closed pipe."""
        if self._stdout is not None:
            self._stdout = None
            assert self._process.stdout is not None
            self._process.stdout.close()

    # ---- moving bytes ----

    def pump(self, until: float) -> bool:
        """Move the bytes that can be moved, waiting until ``until`` (monotonic seconds) at most.

        Return False if nothing moved.
        """
        poll = select.poll()
        waiting_for_reader = False
        if self._stdin is not None and self._outgoing:
            if self._outgoing[0][1] and not self._has_read_all():
                waiting_for_reader = True
            else:
                poll.register(self._stdin, select.POLLOUT)
        reading = self.reading and not self.output_ended and not self.flooded
        if reading and self._stdout is not None:
            poll.register(self._stdout, select.POLLIN)
        if self._stderr is not None and self.reading_error:
            poll.register(self._stderr, select.POLLIN)
        left = max(0.0, until - monotonic())
        if waiting_for_reader:
            left = min(left, _LOOK)
        moved = False
        for fd, _ in poll.poll(left * 1000):
            if fd == self._stdin:
                self._write_some(fd)
            elif fd == self._stdout:
                self._read_some(fd)
            else:
                self._read_error(fd)
            moved = True
        return moved

    def output_waiting(self) -> int:
        """Return the number of bytes of its output that are in the pipe."""
        return 0 if self._stdout is None else _in_pipe(self._stdout) or 0

    def _has_read_all(self) -> bool:
        assert self._stdin is not None
        return not _in_pipe(self._stdin)

    def _write_some(self, fd: int) -> None:
        data, alone = self._outgoing.popleft()
        try:
            sent = os.write(fd, data[:_READ])
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop()
            return
        self.unsent -= sent
        if sent < len(data):
            self._outgoing.appendleft((data[sent:], alone))

    def _drop(self) -> None:
        self._outgoing.clear()
        self.unsent = 0

    def _read_some(self, fd: int) -> None:
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return
        if not data:
            self.output_ended = True
        self.unread += data
        self.flooded = len(self.unread) > MAX_OUTPUT

    def _read_error(self, fd: int) -> None:
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return
        if not data:
            self._stderr = None
        self.error_text = (self.error_text + data)[-_MAX_ERROR:]

    def owns(self, pid: int) -> bool:
        """Return whether that is the process that was started, or one that it started."""
        try:
            return os.getsid(pid) == self.pid or self._mark.has(pid)
        except (ProcessLookupError, OverflowError, PermissionError):
            return False

    def processes(self) -> set[int] | None:
        """Return the running processes among itself and those that it started, or None where the system does not show them."""
        found = self._mark.processes()
        return None if found is None else {pid for pid in found if not is_ended(pid)}

    def held(self) -> Counter[str]:
        """Return the number of things that it and the processes that it started hold, by their names; none if they can't be seen."""
        processes = (self._mark.processes() or set()) - ({self.pid} if self.status() is not None else set())
        return sum(map(held, processes), Counter())

    # ---- its end ----

    def status(self) -> int | None:
        """Return its exit status (a signal's number negative), or None while it runs.

        It stays unreaped, so that its process group remains ours.
        """
        if self._status is None and not self._is_reaped:
            try:
                info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                # It was killed meanwhile, by another thread or before a signal came.
                self._status = self._process.returncode
                return self._status
            if info is not None:
                self._status = info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
        return self._status

    def wait(self, until: float) -> int | None:
        """Return its exit status if it ends before ``until`` (monotonic seconds), else None.

        Its output is read meanwhile.
        """
        while self.status() is None and monotonic() < until:
            self.pump(min(until, monotonic() + 0.01))
            if self.flooded:
                self.unread.clear()
                self.flooded = False
        return self.status()

    def terminate(self) -> None:
        """Send SIGTERM to this process alone, as Java's Process.destroy does."""
        if self.status() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and all processes that it started, at once."""
        if self._is_reaped:
            return
        self.status()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # PermissionError: on macOS, if only an ended leader is left
        self._process.wait()
        self._mark.kill()
        self._is_reaped = True
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._stdin = self._stdout = self._stderr = None


def _in_pipe(fd: int) -> int | None:
    """Return the number of bytes in a pipe, or None where the system does not report it."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0])
    except OSError:
        return None
