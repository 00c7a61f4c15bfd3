"""Text that user code writes to standard output and standard error, captured for Storm's log."""

from __future__ import annotations

import os
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.protocol import ChildConnection

_MAX_LINE = 8192  # bytes of captured text in one line of the log
_MAX_WAITING = 8 * 1024 * 1024  # characters of log that may wait for a parent that does not read
INFO, WARN = 2, 3


class CapturedStream:
    """A standard stream whose text is logged line by line.

    Args:
        fd: The reading end of the pipe that replaces the stream.
        name: The stream's name in ``sys``.
        level: The level of its lines in Storm's log.
        connection: The connection.

    Attributes:
        held: A line that has not ended.
        waiting: The characters that were logged and not sent yet.
    """

    def __init__(self, fd: int, name: str, level: int, connection: ChildConnection) -> None:
        self.fd = fd
        self.held = b""
        self._name = name
        self._level = level
        self._connection = connection
        self._dropped = 0
        self._looks = 0
        self._lock = allocate_lock()  # both threads call pump at the end
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """True if so much of it waits for the parent to read that the writer must wait, too."""
        return self.waiting > _MAX_WAITING

    def pump(self) -> bool | None:
        """Log what is in the pipe; False when it is empty, None when no process can write to it any more."""
        with self._lock:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return False
            if not data:
                return None
            self._looks = 0
            lines = (self.held + data).split(b"\n")
            self.held = lines.pop()
            for line in lines:
                self._log(line)
            while len(self.held) > _MAX_LINE:
                self._log(self.held[:_MAX_LINE])
                self.held = self.held[_MAX_LINE:]
            return True

    def drain(self) -> None:
        """Log all that is in the pipe now, even if the parent does not read."""
        while self.pump():
            pass
        self.waiting = 0
        self.finish()

    def look(self) -> None:
        """Log a line that has not ended after a few looks."""
        if self.held or (self._dropped and not self.waiting):
            self._looks += 1
            if self._looks > 4:
                self.finish()

    def finish(self) -> None:
        """Log a line that has not ended, and how much was left out."""
        with self._lock:
            if self.held:
                self._log(self.held)
                self.held = b""
            self._log_omitted()

    def _log(self, line: bytes) -> None:
        if self.is_full:
            self._dropped += len(line) + 1
            return
        self._log_omitted()
        for start in range(0, len(line), _MAX_LINE):
            text = line[start : start + _MAX_LINE].decode("utf-8", "backslashreplace").rstrip("\r")
            if text:
                self.waiting += len(text)
                self._connection.log(f"{self._name}: {text}", self._level)

    def _log_omitted(self) -> None:
        if self._dropped and not self.is_full:
            self._connection.log(f"{self._name}: {self._dropped} bytes left out, since the log is not read", WARN)
            self._dropped = 0
