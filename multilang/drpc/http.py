"""The HTTP interface: ``GET /drpc/<function>/<args>`` as in Storm, and ``POST /drpc/<function>`` for long arguments."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from multilang.drpc.errors import DRPCExecutionException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_READ_SECS = 30.0  # how long a request may take to arrive
_MAX_BODY = 16384000  # bytes, Thrift's bound
_MAX_DIGITS = 20  # of a length, since int() refuses very long numbers


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


async def answer_http(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    execute: Callable[[str, str], Awaitable[str]],
) -> None:
    """Read one request and write its answer. The caller closes the connection then."""
    try:
        function, arguments = await asyncio.wait_for(_read(reader), _READ_SECS)
        status, text = HTTPStatus.OK, await execute(function, arguments)
    except _Refused as refused:
        status, text = refused.status, str(refused)
    except DRPCExecutionException as problem:
        timed_out = problem.kind == "SERVER_TIMEOUT"
        status = HTTPStatus.GATEWAY_TIMEOUT if timed_out else HTTPStatus.INTERNAL_SERVER_ERROR
        text = f"{problem.kind}: {problem.message}"
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError, UnicodeDecodeError):
        status, text = HTTPStatus.BAD_REQUEST, "this is not an HTTP request that can be read"
    body = text.encode("utf-8", "backslashreplace")
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()


async def until_end(reader: asyncio.StreamReader) -> None:
    """Wait until the client closes the connection; ignore what else it sends."""
    try:
        while await reader.read(1 << 16):
            pass
    except OSError:
        pass


async def _read(reader: asyncio.StreamReader) -> tuple[str, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise _Refused(HTTPStatus.BAD_REQUEST, "this is not an HTTP request that can be read")
    method, path = words[0], words[1].partition("?")[0]
    root, _, rest = path.lstrip("/").partition("/")
    function, _, arguments = rest.partition("/")
    if root != "drpc" or not function:
        raise _Refused(HTTPStatus.NOT_FOUND, "there is only /drpc/<function>/<args>")
    if method == "GET":
        return _text(function), _text(arguments)
    if method != "POST":
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use GET or POST")
    sizes = [line.partition(":")[2].strip() for line in head if line.lower().startswith("content-length:")]
    if len(sizes) != 1 or not sizes[0].isdecimal():
        raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a POST says its Content-Length")
    if len(sizes[0]) > _MAX_DIGITS or int(sizes[0]) > _MAX_BODY:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {_MAX_BODY} bytes")
    return _text(function), (await reader.readexactly(int(sizes[0]))).decode()


def _text(part: str) -> str:
    """Return part of a path, which was read as latin-1, as text: percent-encoded, or plain UTF-8 (as curl sends it)."""
    return unquote_to_bytes(part.encode("latin-1")).decode("utf-8", "replace")
