"""The DRPC server, which stands between clients that call functions and topologies that answer (Storm's DRPC daemon).

It speaks Storm's Thrift interface on two ports, so that Storm's clients, spouts and bolts can use it, and HTTP on a
third, if that is wanted.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

from multilang.drpc import addresses
from multilang.drpc.connection import CLIENT_PORT, INVOCATIONS_PORT
from multilang.drpc.errors import DRPCConnectionError
from multilang.drpc.handlers import Handlers
from multilang.drpc.requests import MAX_BYTES, MAX_WAITING, TIMEOUT_SECS, Requests
from multilang.drpc.wires import FRAME_SECS, Bounds, Wire
from multilang.listening.accepting import Connection, Listener
from multilang.listening.http import stream
from multilang.listening.loops import LoopThread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from types import TracebackType
    from typing import Any

_LOOK_SECS = 0.25  # between two looks for requests that are too old
_LAST_SECS = 0.2  # that connections have at the end, since some have answers to send
_WARN_SECS = 60.0  # between two warnings that no connection can be accepted
MAX_CONNECTIONS = 1000
_log = logging.getLogger(__name__)
ORPHAN_SECS = 5.0  # how long a request may wait for its result after its spout's connection has ended


class DRPCServer:
    """A DRPC server, which runs in a thread of its own from ``start`` to ``close``, or as a context manager.

    It asks nobody for a password: whoever reaches its ports may call functions, and answer them. Keep it on loopback, or
    in a network that you trust; where other accounts of the machine are not to be trusted, give it Unix sockets.

    Args:
        host: The address to listen on, or ``"unix:"`` and a folder for Unix sockets, which this user alone may enter.
        port: The port for clients. For each port, 0 takes a free one, and the attribute then has its number.
        invocations_port: The port for topologies.
        http_port: The port for HTTP; None: no HTTP.
        timeout_secs: Seconds that a request may take.
        max_waiting: The largest number of requests of a function that wait to be fetched; more are refused.
        orphan_secs: Seconds that requests may wait for their results after the connection of their spout has ended;
            then they fail.
        max_bytes: Bytes that all open requests may take, and as many again for the messages on their way.
        max_connections: The largest number of connections to each port. For one more, the oldest that has sent no whole
            message is closed; where there is none, the one that has waited longest since its last answer; and where each
            waits for an answer, the new one, which is logged.
        frame_secs: Seconds from the beginning of a message to its end; then its connection is closed.
        http_hosts: Further names by which HTTP may be called, besides localhost and addresses.

    Attributes:
        requests: The requests that wait.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = CLIENT_PORT,
        invocations_port: int = INVOCATIONS_PORT,
        http_port: int | None = None,
        *,
        timeout_secs: float = TIMEOUT_SECS,
        max_waiting: int = MAX_WAITING,
        orphan_secs: float = ORPHAN_SECS,
        max_bytes: int = MAX_BYTES,
        max_connections: int = MAX_CONNECTIONS,
        frame_secs: float = FRAME_SECS,
        http_hosts: Sequence[str] = (),
    ) -> None:
        self.host = host
        self.port = port
        self.invocations_port = invocations_port
        self.http_port = http_port
        self.max_connections = max_connections
        self.requests = Requests(timeout_secs, max_waiting, max_bytes)
        self._bounds = Bounds(max_bytes, frame_secs)
        self._handlers = Handlers(
            self.requests, orphan_secs, {each.lower() for each in ("localhost", host, *http_hosts)}
        )
        self._loop: LoopThread | None = None
        self._listeners: list[Listener] = []
        self._sockets: list[socket.socket] = []
        self._warned_at = float("-inf")

    @property
    def orphan_secs(self) -> float:
        """Seconds that requests may wait for their results after the connection of their spout has ended."""
        return self._handlers.orphan_secs

    @orphan_secs.setter
    def orphan_secs(self, secs: float) -> None:
        self._handlers.orphan_secs = secs

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
            DRPCConnectionError: A port is taken, or the folder of the Unix sockets is not this user's alone.
        """
        self._loop = LoopThread("multilang drpc")
        try:
            self._loop.run(self._open())
        except BaseException:
            self._loop.close(self._end)
            raise
        return self

    def close(self) -> None:
        """Fail all open requests, and end."""
        self.requests.close()
        if self._loop is not None:
            self._loop.close(self._end)

    def __enter__(self) -> DRPCServer:  # noqa: PYI034 - Self is not in Python 3.10
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the thread ----

    async def _open(self) -> None:
        handlers = self._handlers
        for name, handle in (
            ("port", handlers.client),
            ("invocations_port", handlers.topology),
            ("http_port", handlers.http),
        ):
            if getattr(self, name) is not None:
                self._sockets.append(self._listen(name))
                Listener(
                    self._sockets[-1],
                    partial(self._serve, handle),
                    anonymous=self.max_connections,
                    in_all=self.max_connections,
                    tell=self._tell,
                    peers=self._listeners,
                )
        self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """End requests that take too long, until the server ends."""
        while True:
            self.requests.expire()
            self._bounds.end_overdue()
            await asyncio.sleep(min(_LOOK_SECS, self.requests.timeout_secs / 2))

    async def _end(self) -> None:
        await asyncio.sleep(0)  # so that the last errors are sent
        for each in self._listeners:
            each.stop()
        for listening in self._sockets:
            addresses.close_listening(listening)
        await asyncio.gather(*(each.close(_LAST_SECS) for each in self._listeners))

    def _listen(self, name: str) -> socket.socket:
        port = getattr(self, name)
        try:
            listener = addresses.listen(self.host, port)
        except DRPCConnectionError:
            raise
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            where = f"{self.host}:{port}"
            raise DRPCConnectionError(f"the DRPC server can't listen on {where}: {why}") from error
        if addresses.folder_of(self.host) is None:
            setattr(self, name, listener.getsockname()[1])
        return listener

    def _tell(self, why: object) -> None:
        """Log that no connection could be accepted, once in a while: there are a thousand a second when descriptors end."""
        now = time.monotonic()
        if now - self._warned_at > _WARN_SECS:
            self._warned_at = now
            _log.warning("the DRPC server on %s can't accept connections for now: %s", self.host, why)

    async def _serve(
        self, handle: Callable[[Wire], Coroutine[Any, Any, None]], sock: socket.socket, connection: Connection
    ) -> None:
        wire = Wire(*await stream(sock), self._bounds, connection.admit, connection.rest)
        connection.end = wire.abort
        self._bounds.wires.add(wire)
        try:
            await handle(wire)
        finally:
            await wire.close()
            self._bounds.wires.discard(wire)
