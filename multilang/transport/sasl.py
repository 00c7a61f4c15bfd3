"""The login of Thrift's SASL transport: messages of a status, a length and bytes, until one side has finished.

Storm's plugins ask for authentication alone (``qop=auth``). After the login each message begins with its length, as
without a login.
"""

from __future__ import annotations

from struct import Struct
from time import monotonic

from multilang.transport.base import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol

    class Mechanism(Protocol):
        """The client's part of one login."""

        name: str
        who: str  # the user, and the source of the login, in the words of a message

        def start(self) -> bytes:
            """Return the first response, which may be empty."""

        def step(self, challenge: bytes) -> bytes:
            """Return the response to a challenge. Raises PermissionError."""

        def finish(self, challenge: bytes) -> None:
            """Check the server's last message. Raises PermissionError."""


START, OK, BAD, ERROR, COMPLETE = range(1, 6)
_HEAD = Struct(">BI")
_LONGEST = 65_536  # bytes of a message; those of a login have some hundreds, or a Kerberos ticket of a few thousand
_MOST_STEPS = 20


class Sasl(Transport):
    """A SASL login. The socket's timeout bounds the wait for all of the server's messages together.

    Args:
        mechanism: Makes the client's part of one login, given the server's host. It raises ConfigError when it lacks
            something.
    """

    def __init__(self, mechanism: Callable[[str], Mechanism]) -> None:
        self._mechanism = mechanism

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        mechanism = self._mechanism(host)
        first = mechanism.start()
        secs = wire.gettimeout()
        words = _Messages(wire, mechanism.name)
        _send(wire, START, mechanism.name.encode())
        _send(wire, OK, first)
        for _ in range(_MOST_STEPS):
            status, text = words.receive()
            if status == COMPLETE:
                mechanism.finish(text)
                wire.settimeout(secs)
                return wire
            if status != OK:
                reason = text.decode("utf-8", "replace")[:200].strip() or "no reason given"
                raise PermissionError(f"refused the login by {mechanism.name} of {mechanism.who}: {reason}")
            _send(wire, OK, mechanism.step(text))
        raise PermissionError(f"does not finish the login by {mechanism.name}")


def _send(wire: socket.socket, status: int, text: bytes) -> None:
    wire.sendall(_HEAD.pack(status, len(text)) + text)


class _Messages:
    """The server's messages. Only the wait for them counts for the timeout: a step of ours may wait for a KDC."""

    def __init__(self, wire: socket.socket, name: str) -> None:
        self._wire = wire
        self._name = name
        self._left = wire.gettimeout()  # seconds

    def receive(self) -> tuple[int, bytes]:
        """Return a message's status and bytes."""
        status, length = _HEAD.unpack(self._exactly(_HEAD.size))
        if not OK <= status <= COMPLETE or length > _LONGEST:
            raise PermissionError(f"does not speak SASL, so that there is no login by {self._name}")
        return status, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._received(size - len(parts))
            if not part:
                raise PermissionError(
                    f"hung up during the login by {self._name}: it knows no such login, or refuses it"
                )
            parts += part
        return bytes(parts)

    def _received(self, most: int) -> bytes:
        if self._left is None:
            return self._wire.recv(most)
        if self._left <= 0:
            raise TimeoutError("timed out")
        self._wire.settimeout(self._left)
        begin = monotonic()
        part = self._wire.recv(most)
        self._left -= monotonic() - begin
        return part
