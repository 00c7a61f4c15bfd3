"""Requests over HTTP/1.1, one for each connection: reading them within bounds, answering them, and a server of them."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from multilang.errors import MultilangError
from multilang.listening.accepting import Connection, Listener
from multilang.listening.loops import LoopThread

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Iterable, Mapping

MAX_HEAD = 64 * 1024  # bytes of a request before its body
_MAX_DIGITS = 20  # of a length, since int() refuses very long numbers
_LAST_SECS = 1.0  # that answers have which are under way at the end
_REST_SECS = 2.0  # for what is still coming when a request was refused
_PART = 1 << 16  # bytes
_log = logging.getLogger(__name__)


class Refused(MultilangError):
    """A request is refused with a reason.

    Args:
        status: The answer's status.
        why: Its text.
        fields: Further fields of its head.
    """

    def __init__(self, status: HTTPStatus, why: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.fields = fields or {}

    def answer(self) -> bytes:
        """Return the answer, as it is sent."""
        return answer(self.status, str(self), self.fields)


class Head:
    """The part of a request before its body.

    Attributes:
        method: The method.
        path: The path as it was sent, in Latin 1; ``unquoted`` makes text of it, or of a part.
        query: What follows the path behind a question mark.
        fields: The fields by their names in small letters; one that is there more than once is empty, as no check allows it.
    """

    def __init__(self, method: str, target: str, fields: Mapping[str, str]) -> None:
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.fields = fields

    def size(self, most: int) -> int:
        """Return the number of the body's bytes. Raises Refused if it is not given, or is more than ``most``."""
        size = self.fields.get("content-length", "")
        if not size.isdecimal() or "transfer-encoding" in self.fields:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "a POST says its Content-Length")
        if len(size) > _MAX_DIGITS or int(size) > most:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {most} bytes")
        return int(size)


def unquoted(part: str) -> str:
    """Return part of a path as text: percent-encoded, or plain UTF-8 (as curl sends it)."""
    return unquote_to_bytes(part.encode("latin-1")).decode("utf-8", "replace")


def fields_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return fields by their names in small letters; one that is there more than once is empty."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        fields[key] = "" if key in fields else value.strip()
    return fields


async def read_head(reader: asyncio.StreamReader) -> Head:
    """Read the head of a request; how long it may take is up to the caller.

    Raises:
        Refused: It is no request, or its head is larger than the reader's limit.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too large") from None
    except asyncio.IncompleteReadError:
        raise _no_request() from None
    lines = head[:-4].decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise _no_request()
    pairs = (line.partition(":") for line in lines[1:])
    return Head(words[0], words[1], fields_of((name, value) for name, _, value in pairs))


def answer(status: HTTPStatus, body: str | bytes, fields: Mapping[str, str] | None = None) -> bytes:
    """Return an answer, as it is sent.

    Args:
        status: The status.
        body: The body; a text is sent as UTF-8.
        fields: Further fields of the head; ``Content-Type`` is that of a text without it.
    """
    data = body.encode("utf-8", "backslashreplace") if isinstance(body, str) else body
    named = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": len(data), **(fields or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}Connection: close\r\n\r\n".encode("latin-1") + data


async def take_rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the rest of a refused request: closing with unread bytes could drop the answer on its way."""
    writer.transport.set_write_buffer_limits(0)
    await writer.drain()
    writer.write_eof()
    over = asyncio.get_running_loop().call_later(_REST_SECS, writer.transport.abort)
    try:
        while await reader.read(_PART):
            pass
    finally:
        over.cancel()


async def stream(sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the two sides of a connection that was accepted."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(MAX_HEAD, loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class Request:
    """A request whose head is here.

    Attributes:
        head: The head.
        admit: Admits the request's connection, so that it is not ended for another one; False if as many are admitted as may be.
    """

    def __init__(self, head: Head, reader: asyncio.StreamReader, admit: Callable[[], bool]) -> None:
        self.head = head
        self.admit = admit
        self._reader = reader

    async def body(self, size: int) -> bytes:
        """Return the body. Raises Refused if it ends before it has so many bytes."""
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is cut short") from None


class HttpServer:
    """A server in a thread of its own, from its making to ``close``.

    Args:
        listening: The socket, which listens already.
        respond: Returns the answer to a request, or raises Refused; called in the server's event loop.
        connections: The largest number of anonymous connections; for a new one, the oldest is ended. As many again may be
            admitted.
        secs: Seconds that a connection may take, in all.
        name: The thread's name.

    Attributes:
        port: The port.
        listener: What accepts the connections.
    """

    def __init__(
        self,
        listening: socket.socket,
        respond: Callable[[Request], Awaitable[bytes]],
        *,
        connections: int,
        secs: float,
        name: str,
    ) -> None:
        self.port: int = listening.getsockname()[1]
        self._listening = listening
        self._respond = respond
        self._secs = secs
        self._answering: set[Connection] = set()
        self._loop = LoopThread(name)
        self.listener = self._loop.run(self._listen(connections))

    def close(self) -> None:
        """Serve no more; the second time, do nothing."""
        self._loop.close(self._end)

    async def _listen(self, most: int) -> Listener:
        return Listener(self._listening, self._serve, anonymous=most, admitted=most, anonymous_secs=self._secs)

    async def _end(self) -> None:
        self.listener.stop()
        self._listening.close()
        tasks = [each.task for each in self._answering if each.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_SECS)
        await self.listener.close()

    async def _serve(self, sock: socket.socket, connection: Connection) -> None:
        reader, writer = await stream(sock)
        connection.end = writer.transport.abort
        due = asyncio.get_running_loop().call_later(self._secs, writer.transport.abort)
        try:
            try:
                writer.write(await self._answer(reader, connection))
            except Refused as refused:
                writer.write(refused.answer())
                await take_rest(reader, writer)
            writer.close()
            await writer.wait_closed()
        finally:
            due.cancel()
            writer.transport.abort()
            self._answering.discard(connection)

    async def _answer(self, reader: asyncio.StreamReader, connection: Connection) -> bytes:
        request = Request(await read_head(reader), reader, connection.admit)
        self._answering.add(connection)
        try:
            return await self._respond(request)
        except (Refused, OSError):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the next one may be answered
            _log.exception("a request for %s could not be answered", request.head.path)
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "it failed; the server's log has the reason") from None


def _no_request() -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, "this is not an HTTP request that can be read")
