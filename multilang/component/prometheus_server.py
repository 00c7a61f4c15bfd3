"""The HTTP server of a Prometheus endpoint, whose clients hold little of it, and not for long.

It runs beside components, in their process: each connection is a thread and a descriptor that they lack.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from http.client import LineTooLong
from socketserver import ThreadingMixIn
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from typing import Any

MAX_CONNECTIONS = 16  # for a new one, the oldest is ended
ADMIT = "admit"  # what an application finds in its environ
MAX_HEAD = 64 * 1024  # bytes of a request before its body; Python takes 6 MB, also of who shows no secret
ANSWER_SECS = 10.0  # from the connection to the last byte of the answer


class BoundedServer(ThreadingMixIn, WSGIServer):
    """A server with a thread for each connection, of which there are few.

    An application may admit a connection, by ``environ[ADMIT]()``: those that are not admitted then end it no more.

    Args:
        port: The port; 0 for any free one.
        host: The address to listen at.
        app: The WSGI application.
        max_connections: The largest number of connections that are not admitted; for a new one, the oldest is ended. As many
            again may be admitted.
        answer_secs: Seconds that a connection may take, in all.

    Raises:
        OSError: It can't listen there.
    """

    daemon_threads = True
    request_queue_size = 128  # of Python's 5, a few that connect at once have others wait for seconds

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
        self._admitted: dict[socket.socket, float] = {}  # the same, of those that are admitted
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

    def admit(self, request: socket.socket) -> bool:
        """Admit a connection; False if it was ended, or if there are as many as there may be."""
        with self._lock:
            if request not in self._due or len(self._admitted) >= self._max_connections:
                return False
            self._admitted[request] = self._due.pop(request)
            return True

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._due.pop(request, None)
            self._admitted.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End the connections that take too long; the server calls this twice a second."""
        now = monotonic()
        with self._lock:
            for request in [each for all in (self._due, self._admitted) for each, due in all.items() if due < now]:
                self._end(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever sends no request, or hangs up, would fill the log."""

    def _end(self, request: socket.socket) -> None:
        """End a connection, whose thread then closes it."""
        self._due.pop(request, None)
        self._admitted.pop(request, None)
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    server: BoundedServer
    rfile: Any

    def parse_request(self) -> bool:
        whole = self.rfile
        self.rfile = _Head(whole)
        try:
            return super().parse_request()
        finally:
            self.rfile = whole

    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), ADMIT: partial(self.server.admit, self.connection)}

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _Head:
    """The lines of a request's head, in bounds."""

    def __init__(self, lines: Any) -> None:
        self._lines = lines
        self._left = MAX_HEAD

    def readline(self, most: int) -> bytes:
        line: bytes = self._lines.readline(min(most, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("the head")
        return line
