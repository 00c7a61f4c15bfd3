"""Write to Storm so that the two sides never block each other.

A parent that is busy writing to this process may not read at that moment; with a blocking write both would then wait
forever. So as much is written as the pipe takes, the rest is stored, and the main thread reads while it waits.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident
from stat import S_ISFIFO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.protocol import ChildConnection

_PIPE_SIZE = 256 * 1024  # bytes


class Output:
    """Writes a connection's bytes to a descriptor; any thread may call it."""

    def __init__(self, connection: ChildConnection, fd: int) -> None:
        self._connection = connection
        self.fd = fd
        self._lock = allocate_lock()
        self._rest: memoryview | None = None
        self.writer = 0  # the thread that writes: a signal's handler must not interrupt a write before it is counted
        self.closed = False  # the reader closed the pipe
        self.written = 0  # bytes; a growing number shows that the parent reads
        if S_ISFIFO(os.fstat(fd).st_mode):
            os.set_blocking(fd, False)
            _enlarge(fd)

    def flush_some(self) -> bool:
        """Write as much as the pipe takes now; return True when nothing is left."""
        with self._lock:
            self.writer = get_ident()
            try:
                while not self.closed:
                    rest = self._rest
                    if rest is None:
                        data = self._connection.data_to_send()
                        if not data:
                            return True
                        rest = memoryview(data)
                    try:
                        n = os.write(self.fd, rest)
                    except BlockingIOError:
                        self._rest = rest
                        return False
                    except OSError:  # EPIPE and the like: there is no one left to report it to
                        self.closed = True
                        self._rest = None
                        break
                    self.written += n
                    self._rest = rest[n:] if n < len(rest) else None
                self._connection.data_to_send()
                return True
            finally:
                self.writer = 0


def _enlarge(fd: int) -> None:
    """Enlarge the pipe, so that the output for one full read fits into one write (only Linux can do this)."""
    try:
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(fd, F_SETPIPE_SZ, _PIPE_SIZE)
    except (ImportError, OSError):
        pass  # another system, or the user's share of pipe memory is used up: a small pipe works, too
