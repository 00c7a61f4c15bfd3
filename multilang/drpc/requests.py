"""The requests that wait for a result: what a DRPC server knows, without its sockets (Storm's DRPC).

Any thread may call; what is to be told is told in the thread that caused it.
"""

from __future__ import annotations

import time
from collections import deque
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from multilang.drpc.errors import (
    FAILED_REQUEST,
    INTERNAL_ERROR,
    SERVER_SHUTDOWN,
    SERVER_TIMEOUT,
    DRPCExecutionException,
)
from multilang.drpc.thrift import check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import TypeAlias

    Done: TypeAlias = Callable[["str | None", "DRPCExecutionException | None"], object]

TIMEOUT_SECS = 600.0  # Storm's drpc.request.timeout.secs
MAX_WAITING = 10_000  # requests of one function that no topology has fetched

SERVICES: dict[str, Requests] = {}
"""The LocalDRPCs of this process, by the id that stands for a host in a request's return-info."""


class Request:
    """``done`` is called once, with the result or the error; ``owner``: who fetched it."""

    __slots__ = ("arguments", "deadline", "done", "fetched", "function", "id", "owner")

    def __init__(self, id: str, function: str, arguments: str, deadline: float, done: Done) -> None:
        self.id = id
        self.function = function
        self.arguments = arguments
        self.deadline = deadline
        self.done = done
        self.fetched = False
        self.owner: Hashable = None


class Requests:
    """Takes requests and gives them to whoever fetches for their function; each ends once.

    ``timeout_secs`` from its arrival a request fails. ``max_waiting``: of one function that nobody fetched; more are refused.
    """

    def __init__(
        self,
        timeout_secs: float = TIMEOUT_SECS,
        max_waiting: int = MAX_WAITING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.timeout_secs = timeout_secs
        self.max_waiting = max_waiting
        self._clock = clock
        self._lock = Lock()
        self._ids = count(time.time_ns() // 1000)  # no request is mistaken for one of an earlier server's
        self._waiting: dict[str, deque[str]] = {}
        self._open: dict[str, Request] = {}  # by id, the oldest first
        self._owned: dict[Hashable, dict[str, None]] = {}  # who fetched which, of those that are open
        self._orphans: dict[str, float] = {}  # whose spout is gone: until when they wait for a result, the first first
        self.fetched_for: set[str] = set()  # functions that somebody asked for
        self.refusal: Callable[[str], str | None] = lambda _: None  # why no request of a function is taken
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def waiting(self) -> dict[str, int]:
        """How many requests of each function nobody fetched yet."""
        with self._lock:
            return {name: len(ids) for name, ids in self._waiting.items()}

    def add(self, function: str, arguments: str, done: Done) -> str:
        """A request; its id. Raises DRPCExecutionException when it can't be taken, or be sent to any topology."""
        check_size("the arguments", arguments)
        why = self.refusal(function)
        with self._lock:
            if self._closed:
                raise DRPCExecutionException("the DRPC server shuts down", SERVER_SHUTDOWN)
            if why is not None:
                raise DRPCExecutionException(why, INTERNAL_ERROR)
            ids = self._waiting.setdefault(function, deque())
            if len(ids) >= self.max_waiting:
                raise DRPCExecutionException(
                    f"{len(ids)} requests of {function!r} wait already, and no topology takes them", INTERNAL_ERROR
                )
            id = str(next(self._ids))
            ids.append(id)
            self._open[id] = Request(id, function, arguments, self._clock() + self.timeout_secs, done)
        return id

    def fetch(self, function: str, owner: Hashable = None) -> tuple[str, str] | None:
        """The next request of a function, as (id, arguments); None when none waits. ``owner``: see ``lost``."""
        with self._lock:
            self.fetched_for.add(function)
            ids = self._waiting.get(function)
            if not ids:
                return None
            id = ids.popleft()
            if not ids:
                del self._waiting[function]
            request = self._open[id]
            request.fetched = True
            if owner is not None:
                request.owner = owner
                self._owned.setdefault(owner, {})[id] = None
            return id, request.arguments

    def result(self, id: str, result: str) -> None:
        """The result of a request, which fails by one that can't be sent; of one that is over already nothing happens."""
        try:
            check_size("the result", result)
        except DRPCExecutionException as problem:
            self._end(id, None, problem)
        else:
            self._end(id, result, None)

    def fail(self, id: str, cause: str | DRPCExecutionException | None = None) -> None:
        """A request failed; the client is told the cause."""
        if cause is None:
            request = self._open.get(id)
            of = "" if request is None else f" of {request.function!r}"
            cause = f"the topology failed the request{of} and gave no cause"
        self._end(id, None, DRPCExecutionException(cause, FAILED_REQUEST) if isinstance(cause, str) else cause)

    def lost(self, owner: Hashable, grace_secs: float = 0.0) -> None:
        """Who fetched is gone, and would not hear of a failure: what it fetched fails, after a time for what is under way."""
        with self._lock:
            due = self._clock() + grace_secs
            for id in self._owned.pop(owner, ()):
                self._orphans[id] = due
        if not grace_secs:
            self.expire()

    def fail_all(self, hopeless: Callable[[str], str | None]) -> None:
        """Fail each request for whose function ``hopeless`` has a reason."""
        with self._lock:
            found = [(id, hopeless(request.function)) for id, request in self._open.items()]
        for id, why in found:
            if why is not None:
                self._end(id, None, DRPCExecutionException(why, FAILED_REQUEST))

    def forget(self, id: str) -> None:
        """Whoever asked is gone."""
        self._take(id)

    def expire(self) -> None:
        """Fail what is older than the timeout, and what has waited long enough for a spout that is gone."""
        now = self._clock()
        while self._orphans:
            with self._lock:
                id, due = next(iter(self._orphans.items()), ("", 0.0))
                request = self._open.get(id)
                if due > now:
                    break
                self._orphans.pop(id, None)
            if request is not None:
                why = (
                    f"{request.function!r} failed: the spout that fetched the request is gone, and no result came; "
                    "ask again"
                )
                self._end(id, None, DRPCExecutionException(why, FAILED_REQUEST))
        while True:
            with self._lock:
                oldest = next(iter(self._open.values()), None)
            if oldest is None or oldest.deadline > now:
                return
            message = f"no result of {oldest.function!r} within {self.timeout_secs:g} seconds"
            self._end(oldest.id, None, DRPCExecutionException(message, SERVER_TIMEOUT))

    def close(self) -> None:
        """Fail all that is open, and take no more."""
        with self._lock:
            self._closed = True
            ids = list(self._open)
        for id in ids:
            self._end(id, None, DRPCExecutionException("the DRPC server shuts down", SERVER_SHUTDOWN))

    def _end(self, id: str, result: str | None, problem: DRPCExecutionException | None) -> None:
        request = self._take(id)
        if request is not None:
            request.done(result, problem)

    def _take(self, id: str) -> Request | None:
        with self._lock:
            request = self._open.pop(id, None)
            if request is not None and request.owner is not None:
                self._orphans.pop(id, None)
                owned = self._owned.get(request.owner)
                if owned is not None:
                    owned.pop(id, None)
                    if not owned:
                        del self._owned[request.owner]
            if request is not None and not request.fetched:
                ids = self._waiting[request.function]
                ids.remove(id)
                if not ids:
                    del self._waiting[request.function]
            return request
