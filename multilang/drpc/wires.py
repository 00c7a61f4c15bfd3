"""The connections of a DRPC server, bounded: how many, how many bytes they hold in all, how long a frame may take."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from multilang.drpc import thrift
from multilang.listening.http import read_head, take_rest

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.listening.http import Head

MAX_BYTES = 256 * 1024 * 1024  # of the frames that come and go at any time; as much again of the requests that wait
FRAME_SECS = 30.0
_COUNTED = 65536  # bytes; smaller frames hold nothing that counts
_PART = 65536


class Bounds:
    """The bounds that all connections of a server share.

    Args:
        max_bytes: Bytes of the frames that are on their way, in both directions.
        frame_secs: Seconds from the beginning of a frame to its end.
        clock: Returns the current time, in seconds.
    """

    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        frame_secs: float = FRAME_SECS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_bytes = max_bytes
        self.frame_secs = frame_secs
        self.clock = clock
        self.held = 0
        self.wires: set[Wire] = set()

    def end_overdue(self) -> None:
        """End the connections on which a frame takes too long."""
        now = self.clock()
        for wire in [each for each in self.wires if each.due is not None and each.due < now]:
            wire.abort()

    def hold(self, size: int) -> None:
        """Count bytes that come or go. Raises EOFError."""
        if self.held + size > self.max_bytes:
            raise EOFError(f"{self.held} of {self.max_bytes} bytes are taken")
        self.held += size


class Wire:
    """One connection.

    Args:
        reader: Where bytes come from.
        writer: Where they go to.
        bounds: The bounds of the server's connections.
        admit: Called when a whole frame has come.
        rest: Called when a frame has been sent: nothing more is to be done.

    Attributes:
        due: The time by which the frame that comes or goes must be through; None: there is none.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        bounds: Bounds,
        admit: Callable[[], object] = lambda: None,
        rest: Callable[[], object] = lambda: None,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._admit = admit
        self._rest = rest
        self._bounds = bounds
        self._coming: float | None = None  # until when the frame that comes must be here
        self._going: float | None = None

    @property
    def due(self) -> float | None:
        dues = [each for each in (self._coming, self._going) if each is not None]
        return min(dues, default=None)

    async def head(self) -> bytes:
        """Wait for the next frame, and return its first four bytes, of which the last must come in time."""
        first = await self.reader.readexactly(1)
        self._coming = self._soon()
        return first + await self.reader.readexactly(3)

    async def http_head(self) -> Head:
        """Return the head of a request over HTTP, which must come in time. Raises Refused."""
        self._coming = self._soon()
        return await read_head(self.reader)

    async def message(self, head: bytes) -> thrift.ThriftMessage:
        """Return the message of the frame that begins so.

        Raises:
            DRPCConnectionError: It is no Thrift.
            EOFError: The connection ended, or the server holds too much already.
        """
        size = thrift.frame_size(head)
        return thrift.decode(await self.exactly(size))

    async def exactly(self, size: int) -> bytes:
        """Return so many bytes, which must come in time. Raises EOFError."""
        counted = size if size > _COUNTED else 0
        self._bounds.hold(counted)
        self._coming = self._coming or self._soon()
        try:
            found = await self.reader.readexactly(size)
            self._admit()
            return found
        finally:
            self._bounds.held -= counted
            self._coming = None

    async def send(self, data: bytes) -> None:
        """Send a frame, which the other side must take in time. Raises OSError, EOFError."""
        counted = len(data) if len(data) > _COUNTED else 0
        self._bounds.hold(counted)
        self._going = self._soon()
        try:
            parts = memoryview(data)
            for begin in range(0, len(data), _PART):  # what is not on its way yet is kept once
                self.writer.write(parts[begin : begin + _PART])
                await self.writer.drain()
            self._rest()
        finally:
            self._bounds.held -= counted
            self._going = None

    async def take_rest(self) -> None:
        """Read the rest of a refused request."""
        self._going = self._soon()
        await take_rest(self.reader, self.writer)

    def _soon(self) -> float:
        return self._bounds.clock() + self._bounds.frame_secs

    async def close(self) -> None:
        """Close the connection once the other side has taken what was sent, which it must do in time."""
        self._coming, self._going = None, self._soon()
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass  # it was broken before
        except asyncio.CancelledError:
            self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self._coming = self._going = None
        self.writer.transport.abort()
