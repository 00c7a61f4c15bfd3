"""The server of pages: NiceGUI, behind the guard, on one port."""

from __future__ import annotations

import os
import socket
import tempfile
from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.component.listening import BACKLOG
from multilang.extras import imported

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TRIES = 100  # ports from the given one on
_RECONNECT_SECS = 20.0  # for a browser, or a busy machine, before the page begins anew, and with it its open dialogs


def free_socket(host: str, port: int) -> socket.socket:
    """Return a socket at a port or, where that is taken, at one of the next 99; 0: any free port.

    Raises:
        ConfigError: None is free, or there is no such address.
    """
    last: OSError | None = None
    for candidate in range(port, min(port + TRIES, 65536)) if port else (0,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, candidate), family=family, backlog=BACKLOG)
        except OSError as error:
            last = error
    raise ConfigError(f"no free port for the page from {port} on at {host}: {last}")


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
        os.environ["NICEGUI_STORAGE_PATH"] = folder  # nothing is kept, and no folder made where the user stands
        ui = imported("nicegui", "page", "the page").ui
        import asyncio

        import uvicorn
        from fastapi import FastAPI

        from multilang.page.guard import Guard
        from multilang.page.strangers import Strangers

        listening = free_socket(host, port)
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
            proxy_headers=False,  # they would say who the client is
            log_level="error",  # warnings are of what strangers send
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)

        async def run() -> None:
            serving = asyncio.create_task(server.serve(sockets=[]))
            while not server.started and not serving.done():
                await asyncio.sleep(0.02)
            strangers = Strangers(server, listening)
            guard.known = strangers.forget
            ready(f"http://{address}:{listening.getsockname()[1]}/?token={guard.token}")
            beside = asyncio.create_task(begin(server))
            await asyncio.wait([serving, beside], return_when=asyncio.FIRST_COMPLETED)
            await strangers.close()
            server.should_exit = True
            beside.cancel()
            await asyncio.gather(serving, beside, return_exceptions=True)

        asyncio.run(run())
