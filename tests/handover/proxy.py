"""A network between a client and a server that can be cut and healed."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


class Proxy:
    """Listens on ``port`` of loopback, and passes on what comes to ``server``, another port there; a context manager.

    While it is cut, nothing gets through in either direction and no connection is made, and nobody is told; what was under way
    arrives when it is healed.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """From now on nothing gets through."""
        self._open.clear()

    def heal(self) -> None:
        """Everything gets through again, and what waited does now."""
        self._open.set()

    def __enter__(self) -> Proxy:  # noqa: PYI034  # Self is not in typing of Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; closing alone does not
        self._accepting.join()
        self._listener.close()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        for client in self._clients():
            try:
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:
                client.close()
                continue
            self._sockets += client, server
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _clients(self) -> Iterator[socket.socket]:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # it is closed
            self._open.wait()
            yield client

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._open.wait()
                target.sendall(data)
        except OSError:
            pass
        self._open.wait()
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
