"""Messages of bytes between a spout's process and the Spark driver, over TCP.

The framing is that of multiprocessing.connection, of which only ``send_bytes`` and ``recv_bytes`` are used, never the
methods that pickle. Each end proves by an HMAC (SHA-256) of both ends' random numbers and of its own role that it knows
the secret, which never crosses the wire. Messages are neither encrypted nor signed: on networks that others listen on,
use a tunnel.

A message is a JSON object on one line; in answers, the text of a block follows the line. No wait is endless: a peer
that sends nothing, or reads nothing, for too long is disconnected.
"""

from __future__ import annotations

import hmac
import os
import socket
import struct
from multiprocessing.connection import Connection
from time import monotonic

from multilang.component.errors import ConnectorError, SourceUnavailable
from multilang.protocol.codec import dumps, loads
from multilang.settings import SECRET_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECRET = "MULTILANG_SOURCE_SECRET"  # the name of an environment variable
SHORTEST_SECRET = 16  # characters
MAX_REQUEST = 1024 * 1024  # bytes
MAX_ANSWER = 1024 * 1024 * 1024  # bytes; large, because the length of a block depends on its rows
_GREETING = b"#multilang served 2#"
_RANDOM = 32  # bytes of each end's random number
_LONGEST_PROOF = 256  # bytes of a message before the other end is known
_LENGTH = struct.Struct("!i")  # of a message, before it
_REFUSED = b"#refused#"
STALLED_SECS = 30.0  # longest silence while a message is due; an end that works on an answer says so more often


def secret(variable: str = SECRET, file: str | None = None) -> bytes:
    """Return the secret that both ends know.

    Args:
        variable: The environment variable that has it, unless a file is given.
        file: The file that has it; white space around it does not count.

    Raises:
        ConnectorError: There is no secret, or it is too short.
    """
    if file is None:
        place, text = f"the environment variable {variable}", os.environ.get(variable, "")
    else:
        place = f"{_named_file(file)},"
        try:
            with open(file, encoding="utf-8") as opened:
                text = opened.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConnectorError(
                f"the secret of the served source can't be read from {place[:-1]}: {error}; put the serving driver's there, on "
                "each machine that has a task of the spout, readable for the user of its workers alone"
            ) from None
    if len(text) < SHORTEST_SECRET:
        raise ConnectorError(
            f"{place} has {'no secret' if not text else f'{len(text)} characters only'}; set it to "
            f"the serving driver's, of at least {SHORTEST_SECRET} characters (python -c 'import secrets; "
            "print(secrets.token_hex(32))')"
        )
    return text.encode()


def _named_file(file: str) -> str:
    return f"the file {file!r}, which {SECRET_FILE} or secret_file= names"


class Channel:
    """One end of a connection.

    ``stalled_secs``: how long the other end may send nothing, or read nothing, when it should; and how long it has in all to
    authenticate itself.
    """

    def __init__(self, sock: socket.socket, stalled_secs: float = STALLED_SECS) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A second handle on the socket, to shut it down from another thread: closing alone would not wake a thread that
        # waits.
        self._socket = sock.dup()
        self._connection = Connection(sock.detach())
        self._secs = stalled_secs
        self.patience(stalled_secs)

    def patience(self, secs: float) -> None:
        """Set the seconds after which a peer that stops within a message, or does not read, is disconnected."""
        seconds, micros = divmod(int(secs * 1e6), 1_000_000)
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, micros))

    def prove(self, key: bytes, first: bool, secret_file: str | None = None) -> None:
        """Authenticate both ends.

        ``first``: this end, the server's, asks first. ``secret_file``: the file that has this end's secret, for the
        message. Raises ConnectorError if the secrets differ.
        """
        end = monotonic() + self._secs
        try:
            same = self._proves_as_server(key, end) if first else self._proves_as_client(key, end)
        except (EOFError, OSError) as error:
            raise SourceUnavailable(f"the connection ended while it was authenticated: {error!r}") from None
        except ValueError:
            raise ConnectorError("the other end speaks another protocol; is this the port that serve() told?") from None
        if not same:
            fix = "give both the same in their environment"
            if secret_file is not None:
                fix = f"put the serving driver's into {_named_file(secret_file)}"
            raise ConnectorError(f"the two ends do not have the same secret; {fix}")

    def _proves_as_server(self, key: bytes, end: float) -> bool:
        ours = os.urandom(_RANDOM)
        self._connection.send_bytes(_GREETING + ours)
        proof = self._proof(end)
        theirs, digest = proof[:_RANDOM], proof[_RANDOM:]
        if not hmac.compare_digest(digest, _digest(key, b"client", ours, theirs)):
            self._connection.send_bytes(_REFUSED)
            return False
        self._connection.send_bytes(_digest(key, b"server", ours, theirs))
        return True

    def _proves_as_client(self, key: bytes, end: float) -> bool:
        greeting = self._proof(end)
        theirs = greeting[len(_GREETING) :]
        if not greeting.startswith(_GREETING) or len(theirs) != _RANDOM:
            raise ValueError("no greeting of ours")
        ours = os.urandom(_RANDOM)
        self._connection.send_bytes(ours + _digest(key, b"client", theirs, ours))
        digest = self._proof(end)
        return hmac.compare_digest(digest, _digest(key, b"server", theirs, ours))

    def _proof(self, end: float) -> bytes:
        """Return a short message that is there in time: a byte now and then is no silence, and still too slow."""
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size, end))
        if not 0 <= size <= _LONGEST_PROOF:
            raise ValueError("no proof has so many bytes")
        return self._exactly(size, end)

    def _exactly(self, size: int, end: float) -> bytes:
        data = b""
        while len(data) < size:
            left = end - monotonic()
            if left <= 0 or not self._connection.poll(left):
                raise TimeoutError("the other end took too long")
            part = self._socket.recv(size - len(data))
            if not part:
                raise EOFError("it hung up")
            data += part
        return data

    def send(self, message: dict[str, Any], data: bytes = b"") -> None:
        """Send a message. Raises SourceUnavailable when the other end is gone, or does not read."""
        try:
            self._connection.send_bytes(dumps(message).encode() + b"\n" + data)
        except (OSError, ValueError) as error:
            raise SourceUnavailable(f"the connection ended: {error!r}") from None

    def receive(self, most: int, wait: float | None = None) -> tuple[dict[str, Any], bytes]:
        """Return the next message and the data after it.

        ``most``: the longest message, in bytes. ``wait``: seconds until it begins, None for no limit; afterwards
        SourceUnavailable is raised.
        """
        try:
            if wait is not None and not self._connection.poll(wait):
                raise SourceUnavailable(f"nothing was heard for {wait:g} seconds")
            if wait is None:
                self._connection.poll(None)
            head, _, data = self._connection.recv_bytes(most).partition(b"\n")
            message = loads(head)
            if not isinstance(message, dict):
                raise ValueError("no object")
            return message, data
        except (EOFError, OSError) as error:
            raise SourceUnavailable(f"the connection ended: {error!r}") from None
        except ValueError:
            raise ConnectorError("the other end speaks another protocol") from None

    def close(self) -> None:
        """Shut the connection down, from any thread. A thread that waits for it gets an error."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end was quicker
        self._socket.close()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()  # the source was not closed

    def release(self) -> None:
        """Close the connection, in the thread that uses it."""
        self.close()
        self._connection.close()


def _digest(key: bytes, role: bytes, server: bytes, client: bytes) -> bytes:
    """Return the proof of an end. Its role is in it, so that nobody can send back what the other end proved."""
    return hmac.digest(key, role + server + client, "sha256")


def connect(
    host: str, port: int, key: bytes, stalled_secs: float = STALLED_SECS, secret_file: str | None = None
) -> Channel:
    """Connect to a driver that serves.

    ``secret_file``: the file that has the secret, for the message about another one. Raises SourceUnavailable when the
    driver does not answer, ConnectorError for another secret.
    """
    try:
        sock = socket.create_connection((host, port), timeout=stalled_secs)
    except OSError as error:
        raise SourceUnavailable(f"nothing answers at {host}:{port}: {error}") from None
    channel = Channel(sock, stalled_secs)
    try:
        channel.prove(key, first=False, secret_file=secret_file)
    except BaseException:
        channel.release()
        raise
    return channel
