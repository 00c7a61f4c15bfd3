"""The HTTP interface: ``POST /drpc/<function>`` with the arguments as the body.

Storm's has ``GET /drpc/<function>/<args>``, too. Any page that a browser shows may cause a GET, so that a GET executes
nothing here. A page may also cause a POST, or point a name of its own to this machine: a request says by ``Origin`` and
``Sec-Fetch-Site`` where it is from, and by ``Host`` what it asked for.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from multilang.drpc.errors import DRPCExecutionException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from multilang.drpc.wires import Wire

_READ_SECS = 30.0  # how long a request may take to arrive
_MAX_BODY = 16384000  # bytes, Thrift's bound
_MAX_DIGITS = 20  # of a length, since int() refuses very long numbers


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


async def answer_http(
    wire: Wire, execute: Callable[[str, str], Awaitable[str]], hosts: Collection[str] = ("localhost",)
) -> None:
    """Read one request and write its answer. The caller closes the connection then.

    Args:
        wire: The connection.
        execute: Calls a function.
        hosts: The names by which a request may call this server, besides addresses.
    """
    try:
        function, arguments = await asyncio.wait_for(_read(wire, hosts), _READ_SECS)
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
    await wire.send(head.encode() + body)


async def until_end(reader: asyncio.StreamReader) -> None:
    """Wait until the client closes the connection; ignore what else it sends."""
    try:
        while await reader.read(1 << 16):
            pass
    except OSError:
        pass


async def _read(wire: Wire, hosts: Collection[str]) -> tuple[str, str]:
    lines = (await wire.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise _Refused(HTTPStatus.BAD_REQUEST, "this is not an HTTP request that can be read")
    head = _Head(lines[1:])
    _check_origin(head, hosts)
    method, path = words[0], words[1].partition("?")[0]
    root, _, function = path.lstrip("/").partition("/")
    if root != "drpc" or not function:
        raise _Refused(HTTPStatus.NOT_FOUND, "there is only /drpc/<function>")
    if method != "POST":
        raise _Refused(
            HTTPStatus.METHOD_NOT_ALLOWED, "use POST, with the arguments as the body: a GET executes nothing"
        )
    if "/" in function:
        raise _Refused(HTTPStatus.NOT_FOUND, "there is only /drpc/<function>; the arguments are the body")
    size = head.one("content-length") or ""
    if not size.isdecimal():
        raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a POST says its Content-Length")
    if len(size) > _MAX_DIGITS or int(size) > _MAX_BODY:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {_MAX_BODY} bytes")
    return _text(function), (await wire.exactly(int(size))).decode()


class _Head:
    """The fields of a request's head."""

    def __init__(self, lines: list[str]) -> None:
        self._fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]

    def one(self, name: str) -> str | None:
        """Return the value of a field that is there once; None if it is not, or is there more often."""
        found = [value for each, value in self._fields if each == name]
        return found[0] if len(found) == 1 else None

    def __contains__(self, name: str) -> bool:
        return any(each == name for each, _ in self._fields)


def _check_origin(head: _Head, hosts: Collection[str]) -> None:
    """Refuse a request that a page of another site causes in a browser."""
    host = head.one("host") or ""
    if not _is_known(host, hosts):
        raise _Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"the Host {host!r} is no name of this server: use localhost or an address, or name it (http_hosts)",
        )
    if "origin" in head and _place(head.one("origin") or "") != host:
        raise _Refused(HTTPStatus.FORBIDDEN, "the page of another site may not call functions here")
    if "sec-fetch-site" in head and head.one("sec-fetch-site") not in ("same-origin", "none"):
        raise _Refused(HTTPStatus.FORBIDDEN, "the page of another site may not call functions here")


def _place(address: str) -> str | None:
    """Return the host of an address, with its port; None if it is no address."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


def _is_known(host: str, hosts: Collection[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ip_address(name)
    except ValueError:
        return name in hosts
    return True  # no name, which somebody could have pointed here


def _text(part: str) -> str:
    """Return part of a path, which was read as latin-1, as text: percent-encoded, or plain UTF-8 (as curl sends it)."""
    return unquote_to_bytes(part.encode("latin-1")).decode("utf-8", "replace")
