"""A blocking connection to a DRPC server."""

from __future__ import annotations

import select
from itertools import count
from time import monotonic

from multilang.drpc import addresses, thrift
from multilang.drpc.errors import DRPCConnectionError, DRPCTimeoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

CLIENT_PORT, INVOCATIONS_PORT, HTTP_PORT = 3772, 3773, 3774
CONNECT_SECS = 10.0


class Connection:
    """A connection for one call at a time. It connects at the first call, and again after it broke.

    All methods raise DRPCConnectionError.

    Args:
        host: The server's host, or "unix:" and the folder of its sockets.
        port: The server's port.
        timeout: Seconds that an answer may take; None: for ever.
    """

    def __init__(self, host: str, port: int, timeout: float | None = None) -> None:
        self.host = host
        self.port = port
        self.timeout = timeout
        self._socket: socket.socket | None = None
        self._serials = count(1)

    def call(self, name: str, fields: dict[int, Any]) -> Any:
        """Call a method, and return its answer."""
        serial = next(self._serials) & 0x7FFFFFFF
        frame = thrift.encode(thrift.CALL, name, serial, fields)
        try:
            wire = self._open()
            wire.settimeout(self.timeout)
            wire.sendall(frame)
            end = None if self.timeout is None else monotonic() + self.timeout
            message = thrift.decode(_exactly(wire, thrift.frame_size(_exactly(wire, 4, end)), end))
            return thrift.answer_of(message, name, serial)
        except DRPCConnectionError:
            self.close()
            raise
        except TimeoutError as error:
            self.close()
            if self.timeout is None:  # the system's own timeout, for a host that is gone
                raise DRPCConnectionError(f"{self}: {error}") from error
            raise DRPCTimeoutError(f"no answer of {self} within {self.timeout:g} seconds") from None
        except OSError as error:
            self.close()
            raise DRPCConnectionError(f"{self}: {error.strerror or error}; does a DRPC server run there?") from error
        except BaseException as error:
            if not isinstance(error, Exception):
                self.close()  # the call was broken off, and its answer would be taken for that of the next call
            raise

    def close(self) -> None:
        """Close the connection; another call opens it again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self) -> socket.socket:
        if self._socket is not None and _ended(self._socket):
            self.close()  # the server was started again since the last call
        if self._socket is None:
            try:
                wire = addresses.connect(self.host, self.port, CONNECT_SECS)
            except TimeoutError as error:
                raise DRPCConnectionError(f"{self}: no answer; does a DRPC server run there?") from error
            self._socket = wire
        return self._socket

    def __str__(self) -> str:
        return addresses.shown(self.host, self.port)


def _ended(wire: socket.socket) -> bool:
    """Return whether the connection has ended: there is something to read, although the server was asked nothing."""
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    return bool(poll.poll(0))


def _exactly(wire: socket.socket, size: int, end: float | None) -> bytes:
    parts = []
    while size:
        if end is not None:
            wire.settimeout(max(end - monotonic(), 0.001))
        part = wire.recv(min(size, 1 << 20))
        if not part:
            raise DRPCConnectionError("the DRPC server closed the connection without an answer")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
