"""The server of pages: NiceGUI, behind the guard, on one port."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.listening.accepting import Connection, Listener, bind
from multilang.page.guard import ADMIT, Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    import uvicorn

TRIES = 100  # ports from the given one on
_RECONNECT_SECS = 20.0  # for a browser, or a busy machine, before the page loads again and its open dialogs are lost
MAX_ANONYMOUS = 64  # connections that have not shown the token; a browser opens six
ANONYMOUS_SECS = 10.0  # until a connection has shown the token


def _names(host: str) -> set[str]:
    """Return the names of what listens at an address."""
    own = (
        set() if host in ("127.0.0.1", "::1", "localhost") else {socket.gethostname().lower(), socket.getfqdn().lower()}
    )
    return {"localhost", host.lower(), *own}


def serve(
    host: str, port: int, build: Callable[[], None], ready: Callable[[str], object], begin: Callable[[Any], Any]
) -> None:
    """Serve pages until ``begin`` has returned, or a signal ends the process.

    Args:
        host: The address to listen at.
        port: The port; when it is taken, one of the next 99; 0 for any free one.
        build: Declares the pages.
        ready: Called with the page's address, token and all, once it can be opened.
        begin: A coroutine function that is run beside the server and given it: its end is the server's.

    Raises:
        ConfigError: No port is free, or NiceGUI is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="multilang-page-") as folder:
        os.environ["NICEGUI_STORAGE_PATH"] = folder  # nothing is stored, and no folder is made in the working directory
        ui = imported("nicegui", "page", "the page").ui
        import uvicorn
        from fastapi import FastAPI

        try:
            listening = bind(host, port, TRIES)
        except OSError as error:
            raise ConfigError(f"no free port for the page from {port} on at {host}: {error}") from None
        guarded = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        build()
        ui.run_with(
            guarded,
            title="storm-multilang",
            show_welcome_message=False,
            dark=None,
            reconnect_timeout=_RECONNECT_SECS,
        )
        guard = Guard(guarded, _names(host))
        address = f"[{host}]" if ":" in host else host
        config = uvicorn.Config(
            guard,
            http="h11",
            proxy_headers=False,  # they would set the client's address
            log_level="error",  # warnings are of requests without authentication
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)

        async def run() -> None:
            serving = asyncio.create_task(server.serve(sockets=[]))
            while not server.started and not serving.done():
                await asyncio.sleep(0.02)
            listener = Listener(listening, _serve_by(server), anonymous=MAX_ANONYMOUS, anonymous_secs=ANONYMOUS_SECS)
            ready(f"http://{address}:{listening.getsockname()[1]}/?token={guard.token}")
            beside = asyncio.create_task(begin(server))
            await asyncio.wait([serving, beside], return_when=asyncio.FIRST_COMPLETED)
            await listener.close()  # those that have shown the token are the server's
            server.should_exit = True
            beside.cancel()
            await asyncio.gather(serving, beside, return_exceptions=True)

        asyncio.run(run())


def _serve_by(server: uvicorn.Server) -> Callable[[socket.socket, Connection], Coroutine[Any, Any, None]]:
    """Return what serves a connection by a server of uvicorn's until it has shown the token, or is closed.

    It reads by h11, which bounds the head of a request; httptools, which uvicorn prefers, does not.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    async def serve_one(sock: socket.socket, connection: Connection) -> None:
        over = asyncio.Event()
        state = {**server.lifespan.state, ADMIT: over.set}

        class Counted(H11Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                over.set()

        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Counted(server.config, server.server_state, state), sock
        )
        connection.end = transport.abort
        await over.wait()

    return serve_one
