"""The interface of a transport, and the plain one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket


class Transport:
    """A way to speak Thrift over a connected socket.

    Attributes:
        framed: Whether each message has its length before it. Only TLS leaves it out, as Storm's plugin does.
    """

    framed = True

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        """Do the handshake, and return the socket to go on with. The caller has set its timeout.

        Args:
            wire: The connected socket.
            host: The other side, as the client named it.

        Raises:
            ConfigError: A file or package that the login needs is missing, or wrong; nothing was sent.
            PermissionError: The other side refused, or is not the one that it should be.
            OSError: The connection broke.
        """
        raise NotImplementedError


class Plain(Transport):
    """No login and no encryption (Storm's SimpleTransportPlugin)."""

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        return wire


PLAIN = Plain()
