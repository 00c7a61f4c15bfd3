"""A network between a client and a server that can be cut and healed."""

from __future__ import annotations

import socket
import threading
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


class Proxy:
    """Listens on ``port`` of loopback, and passes on what comes to ``server``, another port there; a context manager.

    While it is cut, nothing gets through in either direction and no connection is made, and nobody is told; what was under way
    arrives when it is healed.

    Attributes:
        delay_secs: How long everything is under way.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._requests: list[_Requests] = []
        self._loses = False
        self.delay_secs = 0.0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """From now on nothing gets through."""
        self._open.clear()

    def heal(self) -> None:
        """Everything gets through again, and what waited does now."""
        self._open.set()

    def lose_answer(self) -> None:
        """The next answer does not arrive, and its connection ends: what was asked for is done."""
        self._loses = True

    def sever(self) -> None:
        """End all connections, in the midst of what is under way."""
        for each in self._sockets:
            _end(each)

    def hold(self) -> None:
        """Hold what is sent over the connections of now, also when their clients are gone; new ones are free."""
        for each in self._requests:
            each.free.clear()

    def let_go(self) -> None:
        """Let what was held arrive at the server."""
        held = [each for each in self._requests if not each.free.is_set()]
        for each in held:
            each.free.set()
        for each in held:
            each.thread.join()

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
            self._requests.append(_Requests(self, client, server))
            threading.Thread(target=self.pass_on, args=(server, client, self._lost), daemon=True).start()

    def _clients(self) -> Iterator[socket.socket]:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # it is closed
            self._open.wait()
            yield client

    def _lost(self) -> bool:
        loses, self._loses = self._loses, False
        return loses

    def pass_on(self, source: socket.socket, target: socket.socket, lost: Callable[[], bool]) -> None:
        """Pass on what comes, until one side ends or something is lost."""
        try:
            while data := source.recv(65536):
                self._open.wait()
                if self.delay_secs:
                    sleep(self.delay_secs)
                if lost():
                    break
                target.sendall(data)
        except OSError:
            pass
        self._open.wait()
        for each in (source, target):
            _end(each)


class _Requests:
    """The requests of one client."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.free = threading.Event()
        self.free.set()
        self.thread = threading.Thread(target=proxy.pass_on, args=(client, server, self._wait), daemon=True)
        self.thread.start()

    def _wait(self) -> bool:
        self.free.wait()
        return False


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
