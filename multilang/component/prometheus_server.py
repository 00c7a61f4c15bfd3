"""The HTTP server of a Prometheus endpoint, whose clients hold little of it, and not for long.

It runs beside components, in their process: each connection is a thread and a descriptor that they lack.
"""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from email.message import Message
from functools import partial
from http.client import HTTPException, LineTooLong, parse_headers
from io import BufferedReader, BytesIO, RawIOBase
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from multilang.component.listening import BACKLOG, Guest, Listener

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_CONNECTIONS = 16  # for a new one, the oldest is ended
HAS_ROOM = "multilang.has_room"  # what an application finds in its environ
MAX_HEAD = 64 * 1024  # bytes of a request before its body; Python takes 6 MB, also of who shows no secret
ANSWER_SECS = 10.0  # from the connection to the last byte of the answer
_LAST_SECS = 1.0  # that answers have which are under way at the end
_READ = 1 << 16  # bytes
_LINGER_SECS = 1.0  # between two parts of what is still coming when the answer was sent
_HEAD_END = re.compile(rb"\n\r?\n")


class BoundedServer(WSGIServer):
    """A server with a thread for each connection whose request has a whole head.

    Args:
        port: The port; 0 for any free one.
        host: The address to listen at.
        app: The WSGI application.
        max_connections: The largest number of connections that are not known; for a new one, the oldest is ended. As many
            again may be known.
        answer_secs: Seconds that a connection may take, in all.
        body_of_known: Returns by the fields of a request's head how many bytes of its body must be here to make its
            connection known, which then is ended for no other one; None: it stays a stranger. For the application,
            ``environ[HAS_ROOM]`` is False if as many are known already as may be.

    Raises:
        OSError: It can't listen there.
    """

    request_queue_size = BACKLOG

    def __init__(
        self,
        port: int,
        host: str,
        app: Any,
        max_connections: int = MAX_CONNECTIONS,
        answer_secs: float = ANSWER_SECS,
        body_of_known: Callable[[Message], int | None] = lambda _fields: None,
    ) -> None:
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self._max_connections = max_connections
        self._answer_secs = answer_secs
        self._body_of_known = body_of_known
        self._stop: Callable[[], object] | None = None
        self._stopping = False
        self._ended = Event()
        self._answering: set[asyncio.Task[Any]] = set()
        self._changed = Lock()
        self.listener: Listener | None = None
        super().__init__((host, port), _Handler)
        self.set_app(app)

    def serve_forever(self, poll_interval: float = 0.0) -> None:
        """Serve until ``shutdown``."""
        try:
            asyncio.run(self._serve())
        finally:
            self._ended.set()

    def shutdown(self) -> None:
        """End ``serve_forever``, which runs in another thread or is about to."""
        with self._changed:
            self._stopping = True
            stop = self._stop
        if stop is not None:
            with suppress(RuntimeError):  # it has ended
                stop()
            self._ended.wait()

    async def _serve(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._stopping:
                return
            self._stop = partial(loop.call_soon_threadsafe, stopped.set)
        most = self._max_connections
        self.listener = Listener(self.socket, self._serve_one, strangers=most, known=most)
        await stopped.wait()
        self.listener.stop()
        if self._answering:
            await asyncio.wait(self._answering, timeout=_LAST_SECS)
        await self.listener.close()

    async def _serve_one(self, sock: socket.socket, guest: Guest) -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        guest.end = partial(_end, sock)
        due = loop.call_later(self._answer_secs, guest.end)
        task = asyncio.current_task()
        assert task is not None
        try:
            read = await _head(loop, sock)
            body = self._body_of_known(_fields(read))
            if body is not None:
                await _read_body(loop, sock, read, body)
            request = _Request(sock, read, body is None or guest.known())
            sock.setblocking(True)
            done = partial(loop.call_soon_threadsafe, over.set)
            Thread(target=self._answer, args=(request, done), daemon=True).start()
        except BaseException:
            sock.close()
            due.cancel()
            raise
        self._answering.add(task)
        try:
            await over.wait()
        finally:
            due.cancel()
            self._answering.discard(task)

    def _answer(self, request: _Request, over: Callable[[], object]) -> None:
        """Answer a request, in a thread of its own."""
        try:
            with suppress(Exception):  # whoever sends no request, or hangs up, would fill the log
                self.finish_request(request, request.sock.getpeername())  # type: ignore[arg-type]
        finally:
            with suppress(OSError):
                request.sock.shutdown(socket.SHUT_WR)
                request.sock.settimeout(_LINGER_SECS)
                while request.sock.recv(_READ):  # closing with something unread would drop the answer on its way
                    pass
            request.sock.close()
            with suppress(RuntimeError):  # the server has ended
                over()


class _Request:
    """A connection with what was read of it already."""

    def __init__(self, sock: socket.socket, read: bytearray, has_room: bool) -> None:
        self.sock = sock
        self.read = read
        self.has_room = has_room

    def makefile(self, mode: Any, size: int) -> Any:
        """Return a file of the connection; that for reading begins with what was read."""
        return BufferedReader(_Rest(self.sock, self.read)) if mode == "rb" else self.sock.makefile(mode, size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)


class _Rest(RawIOBase):
    """The bytes that were read already, and then those that come."""

    def __init__(self, sock: socket.socket, read: bytearray) -> None:
        self._wire = sock
        self._read = memoryview(read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._read:
            return self._wire.recv_into(buffer)
        count = min(len(buffer), len(self._read))
        buffer[:count] = self._read[:count]
        self._read = self._read[count:]
        return count


async def _head(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytearray:
    """Return what a connection sends up to the end of a request's head, or too much. Raises EOFError."""
    head, begin = bytearray(), 0
    while _HEAD_END.search(head, begin) is None and len(head) <= MAX_HEAD:
        part = await loop.sock_recv(sock, _READ)
        if not part:
            raise EOFError
        begin = max(0, len(head) - 2)
        head += part
    return head


def _fields(head: bytearray) -> Message:
    """Return the fields of a request's head, as the application gets them; none if they can't be read."""
    lines = BytesIO(head)
    lines.readline()
    try:
        return parse_headers(lines)
    except HTTPException:
        return Message()


async def _read_body(loop: asyncio.AbstractEventLoop, sock: socket.socket, read: bytearray, size: int) -> None:
    """Read on until so many bytes are there after the head, or the other side ends."""
    found = _HEAD_END.search(read)
    end = (found.end() if found else len(read)) + size
    while len(read) < end and (part := await loop.sock_recv(sock, _READ)):
        read += part


def _end(sock: socket.socket) -> None:
    """End a connection, which whoever serves it then closes."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


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
        return {**super().get_environ(), HAS_ROOM: self.request.has_room}

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
