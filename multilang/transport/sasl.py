"""The login of Thrift's SASL transport: messages of a status, a length and bytes, until one side is content.

Storm's plugins ask for authentication alone (``qop=auth``). After the login each message has its length before it, as
without a login.
"""

from __future__ import annotations

from struct import Struct

from multilang.transport.base import LoginError, Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol

    class Mechanism(Protocol):
        """The client's part of one login."""

        name: str
        who: str  # the user, and where the login comes from, in the words of a message

        def start(self) -> bytes:
            """Return the first response, which may be empty."""

        def step(self, challenge: bytes) -> bytes:
            """Return the response to a challenge. Raises LoginError."""

        def finish(self, challenge: bytes) -> None:
            """Check the server's last word. Raises LoginError."""


START, OK, BAD, ERROR, COMPLETE = range(1, 6)
_HEAD = Struct(">BI")
_LONGEST = 65_536  # bytes of a message; those of a login have some hundreds, or a Kerberos ticket of a few thousand
_MOST_STEPS = 20


class Sasl(Transport):
    """A SASL login.

    Args:
        mechanism: Makes the client's part of one login, given the server's host. It raises ConfigError when it lacks
            something.
    """

    def __init__(self, mechanism: Callable[[str], Mechanism]) -> None:
        self._mechanism = mechanism

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        mechanism = self._mechanism(host)
        first = mechanism.start()
        _send(wire, START, mechanism.name.encode())
        _send(wire, OK, first)
        for _ in range(_MOST_STEPS):
            status, text = _receive(wire, mechanism.name)
            if status == COMPLETE:
                mechanism.finish(text)
                return wire
            if status != OK:
                said = text.decode("utf-8", "replace")[:200].strip() or "no reason given"
                raise LoginError(f"refused the login by {mechanism.name} of {mechanism.who}: {said}")
            _send(wire, OK, mechanism.step(text))
        raise LoginError(f"asks again and again in the login by {mechanism.name}")


def _send(wire: socket.socket, status: int, text: bytes) -> None:
    wire.sendall(_HEAD.pack(status, len(text)) + text)


def _receive(wire: socket.socket, name: str) -> tuple[int, bytes]:
    status, length = _HEAD.unpack(_exactly(wire, _HEAD.size, name))
    if not OK <= status <= COMPLETE or length > _LONGEST:
        raise LoginError(f"does not speak SASL, so that there is no login by {name}")
    return status, _exactly(wire, length, name)


def _exactly(wire: socket.socket, size: int, name: str) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = wire.recv(size - len(parts))
        if not part:
            raise LoginError(f"hung up during the login by {name}: it knows no such login, or refuses it")
        parts += part
    return bytes(parts)
