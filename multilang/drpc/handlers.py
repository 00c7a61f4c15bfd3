"""The handlers of a DRPC server's connections: of clients, of topologies, and of clients over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from multilang.drpc import thrift
from multilang.drpc.errors import INTERNAL_ERROR, DRPCExecutionException
from multilang.drpc.http import answer_http

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from multilang.drpc.requests import Requests
    from multilang.drpc.wires import Wire

_EXECUTE = "execute"
_QUOTED = 100  # characters of an unknown method's name


class Handlers:
    """Serves connections. Its methods run in the server's own thread, and end with EOFError when the other side does.

    Args:
        requests: The requests that wait.
        orphan_secs: Seconds that requests may wait for their results after the connection of their spout has ended.
        http_hosts: The names by which HTTP may be called, besides addresses.
    """

    def __init__(self, requests: Requests, orphan_secs: float, http_hosts: Collection[str] = ()) -> None:
        self._requests = requests
        self.orphan_secs = orphan_secs
        self._http_hosts = http_hosts

    async def client(self, wire: Wire) -> None:
        """Answer a client until it hangs up."""
        head: asyncio.Future[bytes] = asyncio.ensure_future(wire.head())
        try:
            while True:
                called = _called(await wire.message(await head))  # and keep the message no longer
                head = asyncio.ensure_future(wire.head())
                answer = called if isinstance(called, bytes) else await self._execute(*called, head)
                if answer is None:
                    return
                await wire.send(answer)
                del answer, called
        finally:
            head.cancel()
            if head.done() and not head.cancelled():
                head.exception()  # so that asyncio does not log it

    async def _execute(self, serial: int, function: str, arguments: str, head: asyncio.Future[bytes]) -> bytes | None:
        """Return the answer to a call; None if the client has disconnected."""
        result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            id = self._add(function, arguments, result)
            await asyncio.wait((result, head), return_when=asyncio.FIRST_COMPLETED)
            if not result.done() and head.exception() is not None:
                self._requests.forget(id)
                return None
            return thrift.encode(thrift.REPLY, _EXECUTE, serial, {0: await result})
        except DRPCExecutionException as problem:
            return thrift.encode(thrift.REPLY, _EXECUTE, serial, {1: thrift.fields_of(problem)})

    def _add(self, function: str, arguments: str, result: asyncio.Future[str]) -> str:
        """Add a request, from the server's own thread.

        Args:
            function: The function's name.
            arguments: Its arguments, as text.
            result: The future that gets the result or the error.

        Returns:
            The request's id.

        Raises:
            DRPCExecutionException: The request can't be taken.
        """
        if not function:
            raise DRPCExecutionException("a request must name a function", INTERNAL_ERROR)
        loop = asyncio.get_running_loop()

        def done(text: str | None, problem: DRPCExecutionException | None) -> None:
            try:
                loop.call_soon_threadsafe(_settle, result, text, problem)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        return self._requests.add(function, arguments, done)

    async def topology(self, wire: Wire) -> None:
        """Give requests to a topology, and take their results, until it hangs up."""
        owner = object()
        try:
            while True:
                head = await wire.head()
                await wire.send(self._invocation(await wire.message(head), owner))  # and keep neither
        finally:
            self._requests.lost(owner, self.orphan_secs)

    def _invocation(self, message: thrift.ThriftMessage, owner: object) -> bytes:
        name, fields = message.name, message.fields
        answer: dict[int, Any] = {}
        if name == "fetchRequest":
            id, arguments = self._requests.fetch(_text(fields, 1), owner) or ("", "")
            answer = {0: {1: arguments, 2: id}}
        elif name == "result":
            self._requests.result(_text(fields, 1), _text(fields, 2))
        elif name == "failRequest":
            self._requests.fail(_text(fields, 1))
        elif name == "failRequestV2":
            problem = fields.get(2)
            self._requests.fail(_text(fields, 1), thrift.exception_of(problem) if isinstance(problem, dict) else None)
        else:
            return _unknown(message)
        return thrift.encode(thrift.REPLY, name, message.serial, answer)

    async def http(self, wire: Wire) -> None:
        """Answer one request over HTTP."""

        async def execute(function: str, arguments: str) -> str:
            result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            id = self._add(function, arguments, result)
            gone = asyncio.ensure_future(_until_end(wire.reader))
            try:
                await asyncio.wait((result, gone), return_when=asyncio.FIRST_COMPLETED)
                if not result.done():
                    raise EOFError("the client hung up")
                return await result
            finally:
                gone.cancel()
                self._requests.forget(id)

        await answer_http(wire, execute, self._http_hosts)


async def _until_end(reader: asyncio.StreamReader) -> None:
    """Wait until the client closes the connection; ignore what else it sends."""
    try:
        while await reader.read(1 << 16):
            pass
    except OSError:
        pass


def _settle(future: asyncio.Future[str], text: str | None, problem: DRPCExecutionException | None) -> None:
    if future.done():
        return
    if problem is not None:
        future.set_exception(problem)
    else:
        future.set_result(text or "")


def _text(fields: dict[int, Any], number: int) -> str:
    """Return a field that should be text; an empty one if it is missing or something else."""
    value = fields.get(number)
    return value if isinstance(value, str) else ""


def _called(message: thrift.ThriftMessage) -> tuple[int, str, str] | bytes:
    """Return a call's serial number, function and arguments, and nothing else of it; the answer, if it calls another method."""
    if message.name != _EXECUTE:
        return _unknown(message)
    return message.serial, _text(message.fields, 1), _text(message.fields, 2)


def _unknown(message: thrift.ThriftMessage) -> bytes:
    reason = {1: f"this port has no method {message.name[:_QUOTED]!r}", 2: thrift.UNKNOWN_METHOD}
    return thrift.encode(thrift.EXCEPTION, message.name, message.serial, reason)
