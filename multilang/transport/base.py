"""The interface of a transport, and the plain one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket


class Transport:
    """A transport of Thrift messages over a connected socket.

    Attributes:
        framed: Whether each message begins with its length. Only TLS leaves it out, as Storm's plugin does.
    """

    framed = True

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        """Do the handshake, and return the socket to use afterwards. The caller has set its timeout.

        Args:
            wire: The connected socket.
            host: The other side, as the client named it.

        Raises:
            ConfigError: A file or package that the login needs is missing, or wrong; nothing was sent.
            PermissionError: The other side refused the login, or failed to authenticate itself.
            OSError: The connection broke.
        """
        raise NotImplementedError


class Plain(Transport):
    """No login and no encryption (Storm's SimpleTransportPlugin)."""

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        return wire


PLAIN = Plain()
