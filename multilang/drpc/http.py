"""The HTTP interface: ``POST /drpc/<function>`` with the arguments as the body.

Storm's has ``GET /drpc/<function>/<args>``, too. Any page that a browser shows may cause a GET, so that a GET executes
nothing here. A page may also cause a POST, or point a name of its own to this machine: ``Origin`` and
``Sec-Fetch-Site`` of a request have its source, and ``Host`` its target.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from multilang.drpc.errors import DRPCExecutionException
from multilang.listening.checks import asks_for, is_from_elsewhere
from multilang.listening.http import Refused, answer, unquoted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from multilang.drpc.wires import Wire
    from multilang.listening.http import Head

_MAX_BODY = 16384000  # bytes, Thrift's bound


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
        head = await wire.http_head()
        function = _function(head, hosts)
        body = await wire.exactly(head.size(_MAX_BODY))
        await wire.send(await _answer(function, body, execute))
    except Refused as refused:
        await wire.send(refused.answer())
        await wire.take_rest()
    except asyncio.IncompleteReadError:
        await wire.send(answer(HTTPStatus.BAD_REQUEST, "the body is cut short"))


async def _answer(function: str, body: bytes, execute: Callable[[str, str], Awaitable[str]]) -> bytes:
    try:
        return answer(HTTPStatus.OK, await execute(function, body.decode()))
    except UnicodeDecodeError:
        return answer(HTTPStatus.BAD_REQUEST, "the arguments are no text in UTF-8")
    except DRPCExecutionException as problem:
        timed_out = problem.kind == "SERVER_TIMEOUT"
        status = HTTPStatus.GATEWAY_TIMEOUT if timed_out else HTTPStatus.INTERNAL_SERVER_ERROR
        return answer(status, f"{problem.kind}: {problem.message}")


def _function(head: Head, hosts: Collection[str]) -> str:
    """Return the function that a request calls. Raises Refused."""
    if not asks_for(head.fields, hosts):
        raise Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"the Host {head.fields.get('host', '')!r} is no name of this server: use localhost or an address, or name it "
            "(http_hosts)",
        )
    if is_from_elsewhere(head.fields):
        raise Refused(HTTPStatus.FORBIDDEN, "the page of another site may not call functions here")
    root, _, function = head.path.lstrip("/").partition("/")
    if root != "drpc" or not function:
        raise Refused(HTTPStatus.NOT_FOUND, "there is only /drpc/<function>")
    if head.method != "POST":
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use POST, with the arguments as the body: a GET executes nothing")
    if "/" in function:
        raise Refused(HTTPStatus.NOT_FOUND, "there is only /drpc/<function>; the arguments are the body")
    return unquoted(function)
