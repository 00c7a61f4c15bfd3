"""The DRPC server, which stands between clients that call functions and topologies that answer (Storm's DRPC daemon).

It speaks Storm's Thrift interface on two ports, so that Storm's clients, spouts and bolts can use it, and HTTP on a
third.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from multilang.drpc.connection import CLIENT_PORT, HTTP_PORT, INVOCATIONS_PORT
from multilang.drpc.errors import DRPCConnectionError
from multilang.drpc.requests import MAX_WAITING, TIMEOUT_SECS, Requests
from multilang.drpc.talks import Conversations

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
        self.host = host
        self.port = port
        self.invocations_port = invocations_port
        self.http_port = http_port
        self.requests = Requests(timeout_secs, max_waiting)
        self._talks = Conversations(self.requests, orphan_secs)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._problem: BaseException | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    @property
    def orphan_secs(self) -> float:
        """Seconds that requests may wait for their results after the connection of their spout has ended."""
        return self._talks.orphan_secs

    @orphan_secs.setter
    def orphan_secs(self, secs: float) -> None:
        self._talks.orphan_secs = secs

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
            talks = self._talks
            for name, talk in (("port", talks.client), ("invocations_port", talks.topology), ("http_port", talks.http)):
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
