"""The DRPC server, which stands between clients that call functions and topologies that answer (Storm's DRPC daemon).

It speaks Storm's Thrift interface on two ports, so that Storm's clients, spouts and bolts can use it, and HTTP on a
third.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from multilang.drpc import thrift
from multilang.drpc.connection import CLIENT_PORT, HTTP_PORT, INVOCATIONS_PORT
from multilang.drpc.errors import INTERNAL_ERROR, DRPCConnectionError, DRPCExecutionException
from multilang.drpc.http import answer_http, until_end
from multilang.drpc.requests import MAX_WAITING, TIMEOUT_SECS, Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType
    from typing import Any

_LOOK_SECS = 0.25  # between two looks for requests that are too old
_BACKLOG = 1024
ORPHAN_SECS = 5.0  # how long a request may wait for its result after its spout's connection has ended


class DRPCServer:
    """A DRPC server, which runs in a thread of its own from ``start`` to ``close``, or as a context manager.

    It asks nobody for a password: keep it on loopback, or in a network that you trust.

    Args:
        host: The address to listen on.
        port: The port for clients. For each port, 0 takes a free one, and the attribute then has its number.
        invocations_port: The port for topologies.
        http_port: The port for HTTP; None: no HTTP.
        timeout_secs: Seconds that a request may take.
        max_waiting: The largest number of requests of a function that wait to be fetched; more are refused.
        orphan_secs: Seconds that requests may wait for their results after the connection of their spout has ended;
            then they fail.

    Attributes:
        requests: The requests that wait.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = CLIENT_PORT,
        invocations_port: int = INVOCATIONS_PORT,
        http_port: int | None = HTTP_PORT,
        *,
        timeout_secs: float = TIMEOUT_SECS,
        max_waiting: int = MAX_WAITING,
        orphan_secs: float = ORPHAN_SECS,
    ) -> None:
        self.orphan_secs = orphan_secs
        self.host = host
        self.port = port
        self.invocations_port = invocations_port
        self.http_port = http_port
        self.requests = Requests(timeout_secs, max_waiting)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._problem: BaseException | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    @property
    def conf(self) -> dict[str, Any]:
        """The conf that a topology needs to answer here."""
        return {
            "drpc.servers": [self.host],
            "drpc.port": self.port,
            "drpc.invocations.port": self.invocations_port,
        }

    def start(self) -> DRPCServer:
        """Listen for clients and topologies.

        Returns:
            The server itself.

        Raises:
            DRPCConnectionError: A port is taken.
        """
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="multilang drpc", daemon=True)
        self._thread.start()
        started.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._problem
        return self

    def close(self) -> None:
        """Fail all open requests, and end."""
        self.requests.close()
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            stop = self._stop
            assert stop is not None
            self._loop.call_soon_threadsafe(stop.set)
            self._thread.join()

    def __enter__(self) -> DRPCServer:  # noqa: PYI034 - Self is not in Python 3.10
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the thread ----

    def _run(self, started: threading.Event) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:  # noqa: BLE001 - start() raises it
            self._problem = error
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        servers: list[asyncio.Server] = []
        try:
            for name, talk in (("port", self._client), ("invocations_port", self._topology), ("http_port", self._http)):
                if getattr(self, name) is not None:
                    servers.append(await self._listen(name, talk))
            started.set()
            while not self._stop.is_set():
                self.requests.expire()
                try:
                    await asyncio.wait_for(self._stop.wait(), min(_LOOK_SECS, self.requests.timeout_secs / 2))
                except asyncio.TimeoutError:
                    pass
            await asyncio.sleep(0)  # so that the last errors are sent
        finally:
            for server in servers:
                server.close()
            open_ones = list(self._connections)
            if open_ones:
                await asyncio.wait(open_ones, timeout=0.2)  # some have answers to send
            for task in open_ones:
                task.cancel()
            await asyncio.gather(*open_ones, return_exceptions=True)

    async def _listen(self, name: str, talk: Callable[..., Coroutine[Any, Any, None]]) -> asyncio.Server:
        port = getattr(self, name)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            try:
                await talk(reader, writer)
            except (OSError, EOFError, asyncio.CancelledError):
                pass  # the other side is gone, or does not speak Thrift
            finally:
                self._connections.discard(task)
                writer.close()

        try:
            server = await asyncio.start_server(connected, self.host, port, backlog=_BACKLOG)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise DRPCConnectionError(f"the DRPC server can't listen on {self.host}:{port}: {why}") from error
        setattr(self, name, server.sockets[0].getsockname()[1])
        return server

    # ---- one connection ----

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head: asyncio.Future[bytes] = asyncio.ensure_future(reader.readexactly(4))
        try:
            while True:
                message = thrift.decode(await reader.readexactly(thrift.frame_size(await head)))
                head = asyncio.ensure_future(reader.readexactly(4))
                if message.name == "execute":
                    answer = await self._execute(message, head)
                    if answer is None:
                        return
                    writer.write(answer)
                else:
                    writer.write(_unknown(message))
                await writer.drain()
        finally:
            head.cancel()
            if head.done() and not head.cancelled():
                head.exception()  # so that asyncio does not log it

    async def _execute(self, message: thrift.ThriftMessage, head: asyncio.Future[bytes]) -> bytes | None:
        """Return the answer to a call; None if the client is gone."""
        name, serial, fields = message.name, message.serial, message.fields
        result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            id = self.add(_text(fields, 1), _text(fields, 2), result)
            await asyncio.wait((result, head), return_when=asyncio.FIRST_COMPLETED)
            if not result.done() and head.exception() is not None:
                self.requests.forget(id)
                return None
            return thrift.encode(thrift.REPLY, name, serial, {0: await result})
        except DRPCExecutionException as problem:
            return thrift.encode(thrift.REPLY, name, serial, {1: thrift.fields_of(problem)})

    def add(self, function: str, arguments: str, result: asyncio.Future[str]) -> str:
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

        return self.requests.add(function, arguments, done)

    async def _topology(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        owner = object()
        try:
            while True:
                message = thrift.decode(await reader.readexactly(thrift.frame_size(await reader.readexactly(4))))
                writer.write(self._invocation(message, owner))
                await writer.drain()
        finally:
            self.requests.lost(owner, self.orphan_secs)

    def _invocation(self, message: thrift.ThriftMessage, owner: object) -> bytes:
        name, fields = message.name, message.fields
        answer: dict[int, Any] = {}
        if name == "fetchRequest":
            id, arguments = self.requests.fetch(_text(fields, 1), owner) or ("", "")
            answer = {0: {1: arguments, 2: id}}
        elif name == "result":
            self.requests.result(_text(fields, 1), _text(fields, 2))
        elif name == "failRequest":
            self.requests.fail(_text(fields, 1))
        elif name == "failRequestV2":
            problem = fields.get(2)
            self.requests.fail(_text(fields, 1), thrift.exception_of(problem) if isinstance(problem, dict) else None)
        else:
            return _unknown(message)
        return thrift.encode(thrift.REPLY, name, message.serial, answer)

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def execute(function: str, arguments: str) -> str:
            result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            id = self.add(function, arguments, result)
            gone = asyncio.ensure_future(until_end(reader))
            try:
                await asyncio.wait((result, gone), return_when=asyncio.FIRST_COMPLETED)
                if not result.done():
                    raise EOFError("the client hung up")
                return await result
            finally:
                gone.cancel()
                self.requests.forget(id)

        await answer_http(reader, writer, execute)


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


def _unknown(message: thrift.ThriftMessage) -> bytes:
    reason = {1: f"this port has no method {message.name!r}", 2: thrift.UNKNOWN_METHOD}
    return thrift.encode(thrift.EXCEPTION, message.name, message.serial, reason)
