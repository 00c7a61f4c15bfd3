"""The requests that wait for a result: a DRPC server without its sockets (Storm's DRPC).

Any thread may call. Callbacks run in the thread that caused them.
"""

from __future__ import annotations

import time
from collections import deque
from secrets import token_hex
from sys import getsizeof
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
MAX_BYTES = 256 * 1024 * 1024  # of the functions' names and arguments of all open requests
_OVERHEAD = 1024  # bytes of memory that a request takes besides its texts
_MAX_FETCHED_FOR = 1_000_000  # bytes of the functions' names

MAX_NAME = 4096  # bytes of a function's name: errors quote it

SERVICES: dict[str, Requests] = {}
"""The LocalDRPCs of this process, by the id that stands for a host in a request's return-info."""


class Request:
    """A request. ``done`` is called once, with the result or the error; ``owner`` is whoever fetched it."""

    __slots__ = ("arguments", "deadline", "done", "fetched", "function", "id", "owner", "size")

    def __init__(self, id: str, function: str, arguments: str, deadline: float, done: Done, size: int) -> None:
        self.id = id
        self.function = function
        self.arguments = arguments
        self.deadline = deadline
        self.done = done
        self.size = size
        self.fetched = False
        self.owner: Hashable = None


class Requests:
    """The requests of a server, each of which ends once. A topology fetches those of its function.

    Args:
        timeout_secs: Seconds after its arrival at which a request fails.
        max_waiting: The largest number of requests of a function that wait to be fetched; more are refused.
        max_bytes: Bytes that all open requests may take; more are refused.
        clock: Returns the current time, in seconds.
    """

    def __init__(
        self,
        timeout_secs: float = TIMEOUT_SECS,
        max_waiting: int = MAX_WAITING,
        max_bytes: int = MAX_BYTES,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.timeout_secs = timeout_secs
        self.max_waiting = max_waiting
        self.max_bytes = max_bytes
        self._clock = clock
        self._lock = Lock()
        self._bytes = 0
        self._waiting: dict[str, deque[str]] = {}
        self._open: dict[str, Request] = {}  # by id, the oldest first
        self._owned: dict[Hashable, dict[str, None]] = {}  # owner -> ids of its open requests
        self._orphans: dict[str, float] = {}  # requests of lost spouts -> until when they wait, in this order
        self.fetched_for: set[str] = set()  # functions whose requests somebody has asked for
        self._fetched_bytes = 0
        self.refusal: Callable[[str], str | None] = lambda _: None  # the reason to refuse requests of a function
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def waiting(self) -> dict[str, int]:
        """The number of requests of each function that wait to be fetched."""
        with self._lock:
            return {name: len(ids) for name, ids in self._waiting.items()}

    def add(self, function: str, arguments: str, done: Done) -> str:
        """Add a request, and return its id.

        Raises:
            DRPCExecutionException: It can't be taken, or no message could carry it.
        """
        if _is_long(function):
            raise DRPCExecutionException(f"a function's name has at most {MAX_NAME} bytes", INTERNAL_ERROR)
        check_size("the arguments", arguments)
        size = getsizeof(arguments) + getsizeof(function) + _OVERHEAD
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
            if self._bytes + size > self.max_bytes:
                if not ids:
                    del self._waiting[function]
                raise DRPCExecutionException(
                    f"{len(self._open)} requests take {self._bytes} of {self.max_bytes} bytes already; ask again later",
                    INTERNAL_ERROR,
                )
            id = token_hex(16)  # whoever knows an id may give the result, so that nobody may guess it
            self._bytes += size
            ids.append(id)
            self._open[id] = Request(id, function, arguments, self._clock() + self.timeout_secs, done, size)
        return id

    def fetch(self, function: str, owner: Hashable = None) -> tuple[str, str] | None:
        """Return the next request of a function, as (id, arguments); None if no request waits.

        ``owner`` is whoever fetches it; see ``lost``.
        """
        if _is_long(function):
            return None
        with self._lock:
            if function not in self.fetched_for:
                size = getsizeof(function)
                if self._fetched_bytes + size <= _MAX_FETCHED_FOR:
                    self._fetched_bytes += size
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
        """End a request with its result, or with an error if no message could carry that.

        Nothing happens if it is over.
        """
        try:
            check_size("the result", result)
        except DRPCExecutionException as problem:
            self._end(id, None, problem)
        else:
            self._end(id, result, None)

    def fail(self, id: str, cause: str | DRPCExecutionException | None = None) -> None:
        """End a request with an error, whose cause the client gets."""
        if cause is None:
            request = self._open.get(id)
            of = "" if request is None else f" of {request.function!r}"
            cause = f"the topology failed the request{of} and gave no cause"
        self._end(id, None, DRPCExecutionException(cause, FAILED_REQUEST) if isinstance(cause, str) else cause)

    def lost(self, owner: Hashable, grace_secs: float = 0.0) -> None:
        """Note that an owner has ended and can't fail its requests any more: they fail after ``grace_secs``.

        The time is for results that are on their way.
        """
        with self._lock:
            due = self._clock() + grace_secs
            for id in self._owned.pop(owner, ()):
                self._orphans[id] = due
        if not grace_secs:
            self.expire()

    def fail_all(self, hopeless: Callable[[str], str | None]) -> None:
        """Fail the requests of each function for which ``hopeless`` returns a reason."""
        with self._lock:
            found = [(id, hopeless(request.function)) for id, request in self._open.items()]
        for id, why in found:
            if why is not None:
                self._end(id, None, DRPCExecutionException(why, FAILED_REQUEST))

    def forget(self, id: str) -> None:
        """Drop a request: its client has disconnected."""
        self._take(id)

    def expire(self) -> None:
        """Fail requests that are older than the timeout, and those whose spout ended long enough ago."""
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
        """Fail all open requests, and take no more."""
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
            if request is not None:
                self._bytes -= request.size
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


def _is_long(function: str) -> bool:
    return len(function) > MAX_NAME or len(function.encode("utf-8", "surrogatepass")) > MAX_NAME
