"""The HTTP server of a Prometheus endpoint, whose clients hold little of it, and not for long.

It runs beside components, in their process: each connection is a thread and a descriptor that they lack.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from socketserver import ThreadingMixIn
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from typing import Any

MAX_CONNECTIONS = 16  # for a new one, the oldest is ended
ANSWER_SECS = 10.0  # from the connection to the last byte of the answer


class BoundedServer(ThreadingMixIn, WSGIServer):
    """A server with a thread for each connection, of which there are few.

    Args:
        port: The port; 0 for any free one.
        host: The address to listen at.
        app: The WSGI application.
        max_connections: The largest number of connections.
        answer_secs: Seconds that a connection may take, in all.

    Raises:
        OSError: It can't listen there.
    """

    daemon_threads = True

    def __init__(
        self,
        port: int,
        host: str,
        app: Any,
        max_connections: int = MAX_CONNECTIONS,
        answer_secs: float = ANSWER_SECS,
    ) -> None:
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self._lock = Lock()
        self._due: dict[socket.socket, float] = {}  # until when a connection may last, the oldest first
        self._max_connections = max_connections
        self._answer_secs = answer_secs
        super().__init__((host, port), _Handler)
        self.set_app(app)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._due) >= self._max_connections:
                self._end(next(iter(self._due)))
            self._due[request] = monotonic() + self._answer_secs
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._due.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End the connections that take too long; the server calls this twice a second."""
        now = monotonic()
        with self._lock:
            for request in [each for each, due in self._due.items() if due < now]:
                self._end(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever sends no request, or hangs up, would fill the log."""

    def _end(self, request: socket.socket) -> None:
        """End a connection, whose thread then closes it."""
        del self._due[request]
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
