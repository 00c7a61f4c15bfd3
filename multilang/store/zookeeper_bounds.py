"""Connections of kazoo's that refuse answers that are larger than any of a ZooKeeper's, or not of its protocol.

kazoo itself reads as many bytes as the head of an answer states, up to 2 GB, however slowly they come, and its thread ends
with a traceback at an answer that it can't read. The bounds stand in methods that are private to kazoo; those of 2.10 and
2.11 are known, and a kazoo with others is refused. Import this module where kazoo is installed.
"""

from __future__ import annotations

from ssl import SSLWantReadError, SSLWantWriteError
from time import monotonic

from kazoo.exceptions import ConnectionDropped, KazooException
from kazoo.protocol.connection import ConnectionHandler
from kazoo.version import __version__

from multilang.store.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_ANSWER = 16 * 1024 * 1024  # bytes; ZooKeeper's own bounds are 1 MB for a request and 4 MB for an answer
_PIECE = 1 << 16
_METHODS = {  # that are replaced below, each with its parameters, or called there
    "start": 1,
    "_connect": 4,
    "_read": 3,
    "_read_socket": 2,
    "_socket_error_handling": None,
}
_CONNECTION = "_connection"
_ATTRIBUTES = _CONNECTION, "_session_timeout", "_stopped"


def bounded(client: Any, refused: Callable[[str], None]) -> Any:
    """Return kazoo's client, before its start, with a connection that reconnects after an answer out of bounds.

    Args:
        client: The client.
        refused: Called in the connection's thread with what was wrong with such an answer.

    Raises:
        StateError: This kazoo is made otherwise, so that there would be no bounds.
    """
    others = [name for name, count in _METHODS.items() if not _has(name, count)]
    others += [name for name in _ATTRIBUTES if not hasattr(client, name)]
    if others:
        raise StateError(
            f"kazoo {__version__} is made otherwise than 2.10 and 2.11 ({', '.join(others)}), so that answers of a ZooKeeper would have no "
            "bounds: install one of these, pip install 'kazoo>=2.10,<2.12'"
        )
    vars(client)[_CONNECTION] = _BoundedConnection(client, refused)
    return client


def _has(name: str, parameters: int | None) -> bool:
    method = getattr(ConnectionHandler, name, None)
    return method is not None and parameters in (None, method.__code__.co_argcount)


class _BoundedConnection(ConnectionHandler):  # type: ignore[misc]
    def __init__(self, client: Any, refused: Callable[[str], None]) -> None:
        given = vars(client)[_CONNECTION]
        super().__init__(client, given.retry_sleeper, client.logger, given.sasl_options)
        self._refused = refused
        self._most_secs: float = client._session_timeout / 1000  # what is asked for, whatever a server grants
        self._stops_by = 0.0

    def start(self) -> None:
        self._stops_by = 0.0
        super().start()

    def _connect(self, *address: Any) -> Any:
        return [min(granted, self._most_secs * 1000) for granted in self._checked(super()._connect, *address)]

    def _read_socket(self, *timeouts: Any) -> Any:
        if self.client._stopped.is_set():  # kazoo reads on until the server agrees to the end
            self._stops_by = self._stops_by or monotonic() + self._most_secs
            if monotonic() > self._stops_by:
                raise self._dropped("other things than the answer to the end of the session")
        return self._checked(super()._read_socket, *timeouts)

    def _read(self, length: int, timeout: float) -> bytes:
        if not 0 <= length <= MAX_ANSWER:
            raise self._dropped(f"an answer of {length} bytes, where {MAX_ANSWER} are the most")
        data = bytearray()
        end = monotonic() + min(timeout, self._most_secs)  # kazoo sends no heartbeat meanwhile: no session outlives it
        with self._socket_error_handling():
            while len(data) < length:
                data += self._part(min(length - len(data), _PIECE), end, bool(data))
        return bytes(data)

    def _part(self, most: int, end: float, has_begun: bool) -> bytes:
        left = end - monotonic()
        pending = getattr(self._socket, "pending", int)()  # what TLS has read already
        if left <= 0 or not (pending or self.handler.select([self._socket], [], [], left)[0]):
            if has_begun:  # else it is silent, as one that is busy
                self._refused("an answer that takes too long")
            raise self.handler.timeout_exception("an answer that takes too long")
        try:
            part: bytes = self._socket.recv(most)
        except (SSLWantReadError, SSLWantWriteError):
            return b""
        if not part:
            raise ConnectionDropped("it hung up")
        return part

    def _checked(self, read: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except (KazooException, OSError, self.handler.timeout_exception):
            raise
        except Exception as error:  # noqa: BLE001  # kazoo does not document which ones wrong bytes cause
            raise self._dropped(f"what can't be read: {type(error).__name__}") from None

    def _dropped(self, problem: str) -> Exception:
        self._refused(problem)
        error: Exception = ConnectionDropped(problem)
        return error
