"""Accept connections so that nobody keeps others out by connecting: the listener of every server here.

A *stranger* is a connection that has not shown yet what makes it known: a secret, a token, a whole message. Strangers are
bounded, and one that has sent nothing gives way to a new one before one that has, the oldest first. Who is known gives way
to nobody while something is done for it; while it rests, it does where there is no stranger, the longest at rest first.

What has sent nothing costs a place in a list and no task, so that many such connections are accepted in one turn of the
event loop; of those that have sent something there is one in a turn, and what came on the others is read in between: so
whoever sends at once is known before many others have come, however fast they connect.
"""

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
        self.rank: dict[Guest, None] = {}  # the list of its listener that it is in

    def known(self) -> bool:
        """Note that it is known and something is done for it; False if it was ended, or as many are known as may be."""
        listener = self._listener
        if self not in self.rank:
            return False
        if self.rank is listener.silent or self.rank is listener.strangers:
            if listener.most_known is not None and len(listener.known) + len(listener.resting) >= listener.most_known:
                return False
            if self.timer is not None:
                self.timer.cancel()
        self.move(listener.known)
        return True

    def rest(self) -> None:
        """Note that nothing is done for it any more: known as it is, it gives way where there is no stranger."""
        if self in self._listener.known:
            self.move(self._listener.resting)

    def move(self, rank: dict[Guest, None]) -> None:
        """Put it behind all others of a list of its listener, out of the one that it was in."""
        self.rank.pop(self, None)
        self.rank = rank
        rank[self] = None


class Listener:
    """Accepts connections, in the thread of an event loop.

    Args:
        listening: The socket, which listens already.
        serve: Serves a connection until it ends, and closes it. It may end sooner for one that is not to be counted any more.
        strangers: The largest number of connections that are not known; for one more, one of them is ended.
        known: The largest number of those that are known; None: any number.
        in_all: The largest number of all; for one more, a stranger is ended, without one a known one at rest, and without
            one the new one. None: strangers and known.
        stranger_secs: Seconds after which a stranger is ended; None: never.
        tell: Told why no connection can be accepted.
        peers: The listeners of this process, which share its descriptors: where those end, the most strangers give way.

    Attributes:
        silent: The strangers that have sent nothing, the oldest first, as in each of these.
        strangers: Those that have.
        resting: The connections that are known, and for which nothing is done.
        known: Those for which something is.
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
        tell: Callable[[object], object] = lambda _why: None,
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
        self.silent: dict[Guest, None] = {}
        self.strangers: dict[Guest, None] = {}
        self.resting: dict[Guest, None] = {}
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
        tasks = [guest.task for guest in self._all() if guest.task is not None]
        if tasks and secs:
            await asyncio.wait(tasks, timeout=secs)
        for guest in self._all():
            self._end(guest)
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Accept no more."""
        self._loop.remove_reader(self._listening)
        if self._pause is not None:
            self._pause.cancel()

    def _all(self) -> list[Guest]:
        return [*self.silent, *self.strangers, *self.resting, *self.known]

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
            if not self._has_room():
                sock.close()
                return
            sock.setblocking(False)
            guest = Guest(self, sock)
            if self._stranger_secs is not None:
                guest.timer = self._loop.call_later(self._stranger_secs, self._end, guest)
            guest.move(self.silent)
            self._loop.add_reader(sock, self._look, guest)
            if self._look(guest):
                return

    def _has_room(self) -> bool:
        """Return whether one more has room, after one that it is to replace was ended."""
        strangers = len(self.silent) + len(self.strangers)
        if self._in_all is not None and strangers + len(self.resting) + len(self.known) >= self._in_all:
            if self._end_first(self.silent, self.strangers, self.resting):
                return True
            self._tell(f"for each of {self._in_all} something is done already")
            return False
        return strangers < self._most_strangers or self._end_first(self.silent, self.strangers)

    def _no_descriptor(self, error: OSError) -> None:
        """Let a stranger give way, which holds a descriptor, or accept nothing for a while."""
        self._tell(error)
        peer = max(self._peers, key=lambda each: len(each.silent) + len(each.strangers))
        if not peer._end_first(peer.silent, peer.strangers):
            self._loop.remove_reader(self._listening)
            self._pause = self._loop.call_later(_PAUSE_SECS, self._watch)

    def _look(self, guest: Guest) -> bool:
        """Begin to serve one that has sent nothing until now, if it has; return whether."""
        try:
            sent = guest.sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            sent = b""
        if not sent:  # it is gone
            self._end(guest)
            return False
        self._loop.remove_reader(guest.sock)
        guest.move(self.strangers)
        guest.task = self._loop.create_task(self._served(guest))
        guest.task.add_done_callback(partial(self._over, guest))
        return True

    async def _served(self, guest: Guest) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):  # the other side is gone, or was ended
            await self._serve(guest.sock, guest)

    def _over(self, guest: Guest, _task: asyncio.Task[None]) -> None:
        self._forget(guest)
        if guest.end is None:
            guest.sock.close()

    def _end_first(self, *ranks: dict[Guest, None]) -> bool:
        """End the oldest of the first list that has one; False if none has."""
        for rank in ranks:
            for guest in rank:
                self._end(guest)
                return True
        return False

    def _end(self, guest: Guest) -> None:
        self._forget(guest)
        if guest.task is None:
            self._loop.remove_reader(guest.sock)
            guest.sock.close()
            return
        if guest.end is not None:
            guest.end()
        guest.task.cancel()

    def _forget(self, guest: Guest) -> None:
        guest.rank.pop(guest, None)
        if guest.timer is not None:
            guest.timer.cancel()
