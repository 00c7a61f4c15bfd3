"""Accept connections so that nobody keeps others out by connecting: the listener of every server here.

A *stranger* is a connection that has not shown yet what makes it known: a secret, a token, a whole message. Strangers are
bounded, and the oldest gives way to a new one; who is known is never ended for another. One connection is accepted in each
turn of the event loop, and what came on the others is read in between: so whoever sends at once is known before many others
have come, however fast they connect.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine
    from typing import Any

BACKLOG = 1024  # connections that wait to be accepted
_PAUSE_SECS = 0.2  # after no connection could be accepted, and none could be ended


class Guest:
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

    def known(self) -> bool:
        """Note that it is known, and gives way to nobody; False if it was ended, or as many are known as may be."""
        listener = self._listener
        if self in listener.known:
            return True
        if self not in listener.strangers or (
            listener.most_known is not None and len(listener.known) >= listener.most_known
        ):
            return False
        del listener.strangers[self]
        listener.known[self] = None
        if self.timer is not None:
            self.timer.cancel()
        return True


class Listener:
    """Accepts connections, in the thread of an event loop.

    Args:
        listening: The socket, which listens already.
        serve: Serves a connection until it ends, and closes it. It may end sooner for one that is not to be counted any more.
        strangers: The largest number of connections that are not known; for one more, the oldest of them is ended.
        known: The largest number of those that are known; None: any number.
        in_all: The largest number of all; for one more, the oldest stranger is ended, and without one the new one. None:
            strangers and known.
        stranger_secs: Seconds after which a stranger is ended; None: never.
        tell: Told why no connection can be accepted.
        peers: The listeners of this process, which share its descriptors: where those end, the most strangers give way.

    Attributes:
        strangers: The connections that are not known, the oldest first.
        known: Those that are.
    """

    def __init__(
        self,
        listening: socket.socket,
        serve: Callable[[socket.socket, Guest], Coroutine[Any, Any, None]],
        *,
        strangers: int,
        known: int | None = None,
        in_all: int | None = None,
        stranger_secs: float | None = None,
        tell: Callable[[OSError], object] = lambda _error: None,
        peers: list[Listener] | None = None,
    ) -> None:
        self._listening = listening
        self._serve = serve
        self._most_strangers = strangers
        self.most_known = known
        self._in_all = in_all
        self._stranger_secs = stranger_secs
        self._tell = tell
        self._peers = [] if peers is None else peers
        self._peers.append(self)
        self._pause: asyncio.TimerHandle | None = None
        self.strangers: dict[Guest, None] = {}
        self.known: dict[Guest, None] = {}
        self._loop = asyncio.get_running_loop()
        listening.setblocking(False)
        self._watch()

    async def close(self, secs: float = 0.0) -> None:
        """Accept no more, and end all connections.

        Args:
            secs: Seconds that those have which end by themselves.
        """
        self.stop()
        tasks = [guest.task for guest in (*self.strangers, *self.known) if guest.task is not None]
        if tasks and secs:
            await asyncio.wait(tasks, timeout=secs)
        for guest in (*self.strangers, *self.known):
            self._end(guest)
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Accept no more."""
        self._loop.remove_reader(self._listening)
        if self._pause is not None:
            self._pause.cancel()

    def _watch(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        """Accept one connection: the event loop calls this once in each turn while some wait."""
        try:
            sock, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._tell(error)
            # Descriptors are missing: a stranger that holds one gives way.
            if not max(self._peers, key=lambda each: len(each.strangers))._end_oldest():
                self._loop.remove_reader(self._listening)
                self._pause = self._loop.call_later(_PAUSE_SECS, self._watch)
            return
        is_full = self._in_all is not None and len(self.strangers) + len(self.known) >= self._in_all
        if (is_full or len(self.strangers) >= self._most_strangers) and not self._end_oldest():
            sock.close()
            return
        sock.setblocking(False)
        guest = Guest(self, sock)
        self.strangers[guest] = None
        if self._stranger_secs is not None:
            guest.timer = self._loop.call_later(self._stranger_secs, self._end, guest)
        guest.task = self._loop.create_task(self._served(sock, guest))
        guest.task.add_done_callback(partial(self._over, guest))

    async def _served(self, sock: socket.socket, guest: Guest) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):  # the other side is gone, or was ended
            await self._serve(sock, guest)

    def _over(self, guest: Guest, _task: asyncio.Task[None]) -> None:
        self._forget(guest)
        if guest.end is None:
            guest.sock.close()

    def _end_oldest(self) -> bool:
        """End the oldest stranger; False if there is none."""
        for guest in self.strangers:
            self._end(guest)
            return True
        return False

    def _end(self, guest: Guest) -> None:
        self._forget(guest)
        if guest.end is not None:
            guest.end()
        if guest.task is not None:
            guest.task.cancel()

    def _forget(self, guest: Guest) -> None:
        self.strangers.pop(guest, None)
        self.known.pop(guest, None)
        if guest.timer is not None:
            guest.timer.cancel()
