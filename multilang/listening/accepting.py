"""Sockets that listen, and connections that are accepted within bounds."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

BACKLOG = 1024  # connections that wait to be accepted
_BATCH = 16  # connections that are accepted in one turn, as long as they have sent nothing
_PAUSE_SECS = 0.2  # after no connection could be accepted, and none could be ended


def bind(host: str, port: int, tries: int = 1) -> socket.socket:
    """Return a socket that listens at an address.

    Args:
        host: The address.
        port: The port; 0: any free one.
        tries: The number of ports, from ``port`` on, of which the first free one is taken.

    Raises:
        OSError: No port is free, or there is no such address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem = OSError(f"{port} is no port")
    for candidate in range(port, min(port + tries, 65536)) if port else (0,):
        try:
            return socket.create_server((host, candidate), family=family, backlog=BACKLOG)
        except OSError as error:
            problem = error
    raise problem


class Connection:
    """A connection that was accepted.

    Attributes:
        end: Ends it at once; None: its task does, and its socket is closed then.
    """

    def __init__(self, listener: Listener, sock: socket.socket) -> None:
        self._listener = listener
        self.sock = sock
        self.end: Callable[[], object] | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.rank: dict[Connection, None] = {}  # the list of its listener that it is in

    def admit(self) -> bool:
        """Admit it, and mark it as busy; False if it was ended, or as many are admitted as may be."""
        listener = self._listener
        if self not in self.rank:
            return False
        if self.rank is listener.silent or self.rank is listener.anonymous:
            if listener.most_admitted is not None and len(listener.busy) + len(listener.idle) >= listener.most_admitted:
                return False
            if self.timer is not None:
                self.timer.cancel()
        self.move(listener.busy)
        return True

    def rest(self) -> None:
        """Mark it as idle: it may be ended for a new connection where there is no anonymous one."""
        if self in self._listener.busy:
            self.move(self._listener.idle)

    def move(self, rank: dict[Connection, None]) -> None:
        """Put it behind all others of a list of its listener, out of the one that it was in."""
        self.rank.pop(self, None)
        self.rank = rank
        rank[self] = None


class Listener:
    """Accepts connections, in the thread of an event loop.

    Args:
        listening: The socket, which listens already.
        serve: Serves a connection until it ends, and closes it. It may end sooner for one that is not to be counted any more.
        anonymous: The largest number of anonymous connections; for one more, one of them is ended.
        admitted: The largest number of those that are admitted; None: any number.
        in_all: The largest number of all; for one more, an anonymous one is ended, without one an idle one, and without
            one the new one. None: anonymous and admitted.
        anonymous_secs: Seconds after which an anonymous connection is ended; None: never.
        greets: Whether ``serve`` speaks first; otherwise it begins when a connection has sent something.
        tell: Called with the reason why no connection can be accepted.
        peers: The listeners of this process, which share its descriptors: without a free one, the listener with the most
            anonymous connections ends one.

    Attributes:
        silent: The anonymous connections that have sent nothing, the oldest first, as in each of these.
        anonymous: Those that are served.
        idle: The admitted connections for which nothing is done.
        busy: Those for which something is.
    """

    def __init__(
        self,
        listening: socket.socket,
        serve: Callable[[socket.socket, Connection], Coroutine[Any, Any, None]],
        *,
        anonymous: int,
        admitted: int | None = None,
        in_all: int | None = None,
        anonymous_secs: float | None = None,
        greets: bool = False,
        tell: Callable[[object], object] = lambda _why: None,
        peers: list[Listener] | None = None,
    ) -> None:
        self._listening = listening
        self._serve = serve
        self._most_anonymous = anonymous
        self.most_admitted = admitted
        self._in_all = in_all
        self._anonymous_secs = anonymous_secs
        self._greets = greets
        self._tell = tell
        self._peers = [] if peers is None else peers
        self._peers.append(self)
        self._pause: asyncio.TimerHandle | None = None
        self.silent: dict[Connection, None] = {}
        self.anonymous: dict[Connection, None] = {}
        self.idle: dict[Connection, None] = {}
        self.busy: dict[Connection, None] = {}
        self._loop = asyncio.get_running_loop()
        listening.setblocking(False)
        self._watch()

    async def close(self, secs: float = 0.0) -> None:
        """Accept no more, and end all connections.

        Args:
            secs: Seconds that those have which end by themselves.
        """
        self.stop()
        tasks = [connection.task for connection in self._all() if connection.task is not None]
        if tasks and secs:
            await asyncio.wait(tasks, timeout=secs)
        for connection in self._all():
            self._end(connection)
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Accept no more, so that the socket may be closed."""
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
        if self._pause is not None:
            self._pause.cancel()

    def _all(self) -> list[Connection]:
        return [*self.silent, *self.anonymous, *self.idle, *self.busy]

    def _watch(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        """Accept connections: the event loop calls this once in each turn while some wait."""
        for _ in range(_BATCH):
            try:
                sock, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._no_descriptor(error)
                return
            if not self._is_below_limits():
                sock.close()
                return
            sock.setblocking(False)
            connection = Connection(self, sock)
            if self._anonymous_secs is not None:
                connection.timer = self._loop.call_later(self._anonymous_secs, self._end, connection)
            if self._greets:
                self._begin(connection)
                return
            connection.move(self.silent)
            self._loop.add_reader(sock, self._look, connection)
            if self._look(connection):
                return

    def _is_below_limits(self) -> bool:
        """Return whether one more may be accepted, after another one was ended for it if need be."""
        anonymous = len(self.silent) + len(self.anonymous)
        if self._in_all is not None and anonymous + len(self.idle) + len(self.busy) >= self._in_all:
            if self._end_first(self.silent, self.anonymous, self.idle):
                return True
            self._tell(f"for each of {self._in_all} something is done already")
            return False
        return anonymous < self._most_anonymous or self._end_first(self.silent, self.anonymous)

    def _no_descriptor(self, error: OSError) -> None:
        """End an anonymous connection, which holds a descriptor, or accept nothing for a while."""
        self._tell(error)
        peer = max(self._peers, key=lambda each: len(each.silent) + len(each.anonymous))
        if not peer._end_first(peer.silent, peer.anonymous):
            self._loop.remove_reader(self._listening)
            self._pause = self._loop.call_later(_PAUSE_SECS, self._watch)

    def _look(self, connection: Connection) -> bool:
        """Begin to serve one that has sent nothing until now, if it has; return whether."""
        try:
            sent = connection.sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            sent = b""
        if not sent:  # the client has closed it
            self._end(connection)
            return False
        self._loop.remove_reader(connection.sock)
        self._begin(connection)
        return True

    def _begin(self, connection: Connection) -> None:
        connection.move(self.anonymous)
        connection.task = self._loop.create_task(self._served(connection))
        connection.task.add_done_callback(partial(self._over, connection))

    async def _served(self, connection: Connection) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):  # the other side has closed it, or it was ended
            await self._serve(connection.sock, connection)

    def _over(self, connection: Connection, _task: asyncio.Task[None]) -> None:
        self._forget(connection)
        if connection.end is None:
            connection.sock.close()

    def _end_first(self, *ranks: dict[Connection, None]) -> bool:
        """End the oldest of the first list that has one; False if none has."""
        for rank in ranks:
            for connection in rank:
                self._end(connection)
                return True
        return False

    def _end(self, connection: Connection) -> None:
        self._forget(connection)
        if connection.task is None:
            self._loop.remove_reader(connection.sock)
            connection.sock.close()
            return
        if connection.end is not None:
            connection.end()
        connection.task.cancel()

    def _forget(self, connection: Connection) -> None:
        connection.rank.pop(connection, None)
        if connection.timer is not None:
            connection.timer.cancel()
