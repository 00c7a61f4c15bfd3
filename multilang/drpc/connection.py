"""A blocking connection to a DRPC server."""

from __future__ import annotations

import select
from itertools import count
from time import monotonic

from multilang.drpc import addresses, thrift
from multilang.drpc.errors import DRPCConnectionError, DRPCTimeoutError
from multilang.transport import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from multilang.transport import Transport

CLIENT_PORT, INVOCATIONS_PORT, HTTP_PORT = 3772, 3773, 3774
CONNECT_SECS = 10.0


class Connection:
    """A connection for one call at a time. It connects at the first call, and again after it broke.

    All methods raise DRPCConnectionError.

    Args:
        host: The server's host, or "unix:" and the folder of its sockets.
        port: The server's port.
        timeout: Seconds that an answer may take; None: for ever.
        transport: How the server is reached, which is done again with each connection.
    """

    def __init__(self, host: str, port: int, timeout: float | None = None, transport: Transport = PLAIN) -> None:
        self.host = host
        self.port = port
        self.timeout = timeout
        self._transport = transport
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
            if self.timeout is None:  # the system's own timeout, for a host that does not answer
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
            self.close()  # the server was restarted since the last call
        if self._socket is None:
            try:
                wire = addresses.connect(self.host, self.port, CONNECT_SECS)
            except TimeoutError as error:
                raise DRPCConnectionError(f"{self}: no answer; does a DRPC server run there?") from error
            self._socket = opened(wire, self.host, self._transport, str(self))
        return self._socket

    def __str__(self) -> str:
        return addresses.shown(self.host, self.port)


def opened(wire: socket.socket, host: str, transport: Transport, where: str) -> socket.socket:
    """Return a connected socket after the transport's handshake.

    Args:
        wire: The socket, which is closed when the handshake fails.
        host: The server's host.
        transport: How the server is reached.
        where: The server, for messages.

    Raises:
        ConfigError: The login lacks a file or an entry; nothing was sent.
        DRPCConnectionError: The server refuses the login, or broke off.
    """
    try:
        wire.settimeout(CONNECT_SECS)
        return transport.open(wire, host)
    except PermissionError as error:
        wire.close()
        raise DRPCConnectionError(f"the DRPC server at {where} {error}") from None
    except TimeoutError:
        wire.close()
        raise DRPCConnectionError(f"{where}: no answer to the login; does a DRPC server run there?") from None
    except BaseException:
        wire.close()
        raise


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
