"""A client of a DRPC server for asyncio, with many calls at once."""

from __future__ import annotations

import asyncio
import socket
from itertools import count
from typing import TYPE_CHECKING

from multilang import transport
from multilang.drpc import addresses, thrift
from multilang.drpc.connection import CLIENT_PORT, CONNECT_SECS, opened
from multilang.drpc.errors import DRPCConnectionError, DRPCExecutionException, DRPCTimeoutError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, TypeAlias

    Pipe: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncDRPCClient:
    """A client for asyncio. Use it in one event loop.

    Each call in flight has a connection of its own.

        async with AsyncDRPCClient("localhost") as client:
            print(await asyncio.gather(*(client.execute("reach", url) for url in urls)))

    Args:
        host: The server's host, or "unix:" and the folder of its sockets.
        port: The server's port for clients.
        timeout: Seconds that an answer may take; None: as long as the server allows.
        connections: The largest number of connections; more calls wait for a free one.
        conf: Entries of a storm.yaml for the login (``storm.thrift.transport``, ``drpc.thrift.transport``,
            ``java.security.auth.login.config``); None: no login.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = CLIENT_PORT,
        timeout: float | None = None,
        connections: int = 100,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.timeout = timeout
        self._transport = transport.drpc(conf or {})
        self._free: list[Pipe] = []
        self._places = asyncio.Semaphore(connections)
        self._serials = count(1)

    async def execute(self, function: str, arguments: str) -> str:
        """Call a function.

        Args:
            function: The function's name.
            arguments: Its arguments, as text.

        Returns:
            The function's result.

        Raises:
            DRPCExecutionException: The request failed.
            DRPCConnectionError: The server can't be reached, or broke off.
            DRPCTimeoutError: There was no answer within the client's timeout.
            TypeError: The function or the arguments are no text.
            ValueError: A text has no UTF-8 form.
        """
        async with self._places:
            pipe = await self._pipe()
            try:
                result = await asyncio.wait_for(self._call(pipe, function, arguments), self.timeout)
            except DRPCExecutionException:
                self._free.append(pipe)
                raise
            except BaseException as error:
                pipe[1].close()
                if isinstance(error, DRPCConnectionError):
                    raise
                if isinstance(error, asyncio.TimeoutError) and self.timeout is not None:
                    raise DRPCTimeoutError(f"no answer of {self} within {self.timeout:g} seconds") from None
                if isinstance(error, OSError | EOFError):
                    raise DRPCConnectionError(f"{self} closed the connection without an answer") from error
                raise
            self._free.append(pipe)
            return result

    async def close(self) -> None:
        """Close all connections."""
        while self._free:
            _, writer = self._free.pop()
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                pass  # the connection was broken before

    async def _pipe(self) -> Pipe:
        while self._free:
            reader, writer = self._free.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()  # the server was restarted since
        return await self._open()

    async def _open(self) -> Pipe:
        try:
            if self._transport is transport.PLAIN:
                return await asyncio.wait_for(self._connect(), CONNECT_SECS)
            wire = await asyncio.get_running_loop().run_in_executor(None, self._logged_in)
            wire.setblocking(False)
            return await asyncio.open_connection(sock=wire)
        except DRPCConnectionError:
            raise
        except (OSError, asyncio.TimeoutError) as error:
            why = getattr(error, "strerror", None) or "no answer"
            raise DRPCConnectionError(f"{self}: {why}; does a DRPC server run there?") from error

    async def _connect(self) -> Pipe:
        path = addresses.checked_path_of(self.host, self.port)
        if path is None:
            return await asyncio.open_connection(self.host, self.port)
        return await asyncio.open_unix_connection(path)

    def _logged_in(self) -> socket.socket:
        """Return a connection after the login, which blocks."""
        wire = addresses.connect(self.host, self.port, CONNECT_SECS)
        return opened(wire, self.host, self._transport, str(self))

    async def _call(self, pipe: Pipe, function: str, arguments: str) -> str:
        reader, writer = pipe
        serial = next(self._serials) & 0x7FFFFFFF
        writer.write(thrift.encode(thrift.CALL, "execute", serial, thrift.request(function, arguments)))
        await writer.drain()
        size = thrift.frame_size(await reader.readexactly(4))
        message = thrift.decode(await reader.readexactly(size))
        return str(thrift.answer_of(message, "execute", serial))

    def __str__(self) -> str:
        return addresses.shown(self.host, self.port)

    async def __aenter__(self) -> AsyncDRPCClient:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
