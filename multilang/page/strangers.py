"""Connections to the page: those that have not shown its token are few at a time, and not there for long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

from multilang.component.listening import Guest, Listener

if TYPE_CHECKING:
    import socket

    import uvicorn

MAX_STRANGERS = 64  # connections; a browser opens six
STRANGER_SECS = 10.0  # until a connection has shown the token


class Strangers:
    """Accepts the connections of a server of uvicorn's, which serves them.

    It reads by h11, which bounds the head of a request; httptools, which uvicorn prefers, does not.

    Args:
        server: The server, whose ``http`` is the protocol by h11, and which listens nowhere itself.
        listening: The socket that listens.
    """

    def __init__(self, server: uvicorn.Server, listening: socket.socket) -> None:
        self._server = server
        self._here: dict[object, asyncio.Event] = {}  # strangers by their addresses
        self._listener = Listener(listening, self._serve, strangers=MAX_STRANGERS, stranger_secs=STRANGER_SECS)

    def forget(self, client: object) -> None:
        """Count a connection no more: it has shown the token, or is gone."""
        if client in self._here:
            self._here.pop(client).set()

    async def close(self) -> None:
        """Accept no more, and end the strangers; those who have shown the token are the server's."""
        await self._listener.close()

    async def _serve(self, sock: socket.socket, guest: Guest) -> None:
        over = asyncio.Event()
        client = sock.getpeername()[:2]
        self.forget(client)  # an ended one of the same port, which was handed on to another protocol
        self._here[client] = over
        server, forget = self._server, self.forget

        class Counted(H11Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                forget(client)

        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Counted(server.config, server.server_state, server.lifespan.state), sock
        )
        guest.end = transport.abort
        try:
            await over.wait()
        finally:
            if self._here.get(client) is over:
                del self._here[client]
