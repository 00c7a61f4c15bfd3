"""Connections that have not shown the page's token: few at a time, and not for long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from typing import Any

MAX_STRANGERS = 64  # connections; a browser opens six
STRANGER_SECS = 10.0  # until a connection has shown the token


class Strangers:
    """The open connections that have not shown the token, the oldest first.

    For one more than there may be, the oldest is ended, so that nobody can keep others out by connecting alone.

    Args:
        most: Their largest number.
        secs: Seconds until one of them is ended.
    """

    def __init__(self, most: int = MAX_STRANGERS, secs: float = STRANGER_SECS) -> None:
        self._most = most
        self._secs = secs
        self._here: dict[Any, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def protocol(self) -> type[H11Protocol]:
        """Return a protocol for uvicorn whose connections are counted.

        It reads by h11, which bounds the head of a request; httptools, which uvicorn prefers, does not.
        """
        strangers = self

        class Counted(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                strangers.came(self.client, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                strangers.forget(self.client)

        return Counted

    def came(self, client: object, transport: asyncio.Transport) -> None:
        """Count a new connection."""
        self.forget(client)  # an ended one of the same port, which was handed on to another protocol
        if len(self._here) >= self._most:
            self._end(next(iter(self._here)))
        self._here[client] = transport, asyncio.get_running_loop().call_later(self._secs, self._end, client)

    def forget(self, client: object) -> None:
        """Count a connection no more: it has shown the token, or is gone."""
        if client in self._here:
            self._here.pop(client)[1].cancel()

    def _end(self, client: object) -> None:
        transport, timer = self._here.pop(client)
        timer.cancel()
        transport.abort()
